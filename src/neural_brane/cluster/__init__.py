"""Training past one machine: ranks under torchrun that each own a range of nodes and of attributes."""
