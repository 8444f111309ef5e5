"""Where a study remembers what has happened."""
