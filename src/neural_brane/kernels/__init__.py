"""The arithmetic of training: arrays in, arrays out, one module per backend with the same functions."""
