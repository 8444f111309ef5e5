"""From a study to charts: one file per figure, and all that a page shows, as plain data."""
