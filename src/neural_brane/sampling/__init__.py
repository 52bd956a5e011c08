"""Draw triplets, walks and pairs from counter-based random numbers: draw k is the same whoever asks for it."""
