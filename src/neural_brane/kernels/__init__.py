"""The arithmetic of training, arrays in and arrays out. `reference`, `cpu` and `gpu` have the same functions."""
