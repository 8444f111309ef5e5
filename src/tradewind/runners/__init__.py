"""Where objectives are evaluated."""
