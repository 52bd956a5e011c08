"""Fitted methods in files: written by `model.save`, opened by `load_model`."""

from neural_brane.models.file import load_model, save_model

__all__ = ["load_model", "save_model"]
