"""What training draws at random: the same for a seed, whatever the number of threads."""
