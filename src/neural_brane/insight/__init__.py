"""Explain vectors, score and suggest links, find groups and name them."""
