"""Models of quality and cost over the encoded space."""
