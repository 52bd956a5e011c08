"""Training past one machine: the same model on TorchRec's sharded tables, under torchrun."""
