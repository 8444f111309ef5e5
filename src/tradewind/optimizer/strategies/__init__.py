"""How trials are chosen: see `tradewind.strategies` for the public names."""
