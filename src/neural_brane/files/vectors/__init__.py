"""Vectors in files, one module per format."""
