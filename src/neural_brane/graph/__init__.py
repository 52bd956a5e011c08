"""Graphs whose nodes carry attributes, and how any input becomes one."""

from neural_brane.graph.attributed import AttributedGraph

__all__ = ["AttributedGraph"]
