"""Graphs in files, one module per format."""
