"""Neural-Brane's kernels on an NVIDIA GPU, in Triton."""
