"""The front door: `Study`, creating and loading studies, results, tables, replay and progress."""
