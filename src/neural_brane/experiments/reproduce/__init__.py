"""Repeat the paper's experiments: plan and compute trainings, compare with the paper, and write a report."""
