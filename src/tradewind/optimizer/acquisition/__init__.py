"""What a prediction is worth: acquisitions of quality, and rules that weigh it against cost."""
