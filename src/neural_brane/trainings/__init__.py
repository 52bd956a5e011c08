"""Trainings that are computed once and kept: for the search of parameters, the reproduction and the benchmarks."""
