"""What happened to a study: its events, the state they imply, and the stores that keep them."""
