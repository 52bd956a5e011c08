"""Train on many machines: ranks under torchrun that each own a range of nodes and of attributes."""
