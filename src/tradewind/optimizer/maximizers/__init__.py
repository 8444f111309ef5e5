"""Searching the space for the configuration with the highest score."""
