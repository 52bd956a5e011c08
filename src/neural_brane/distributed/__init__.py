"""Train on many machines: under torchrun, each rank owns a range of the nodes and a range of the attributes."""
