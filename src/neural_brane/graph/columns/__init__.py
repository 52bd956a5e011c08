"""Columns of a table of nodes to attributes: what each column is, and how its values become attributes."""

from neural_brane.graph.columns.column import Column, read_kinds
from neural_brane.graph.columns.encoder import Encoder
from neural_brane.graph.columns.infer import infer_columns

__all__ = ["Column", "Encoder", "infer_columns", "read_kinds"]
