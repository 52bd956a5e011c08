"""Trainings that are computed once and kept: for the search, the comparison, the reproduction, benchmarks."""
