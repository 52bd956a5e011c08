"""Read and write graphs, vectors, models and checkpoints."""
