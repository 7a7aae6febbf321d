"""Pixels to feature vectors, and reading of picture files."""
