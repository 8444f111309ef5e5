"""The commands: their arguments, options and help. What they do is imported when they run."""
