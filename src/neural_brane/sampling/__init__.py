"""Draw triplets, walks and pairs from counter-based random numbers: draw k depends on the seed and k alone."""
