"""Graphs whose nodes have attributes, and the conversion of any input to such a graph."""

from neural_brane.graph.attributed import AttributedGraph

__all__ = ["AttributedGraph"]
