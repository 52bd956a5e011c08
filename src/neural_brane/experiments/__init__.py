"""Trainings that are computed once and kept, and what is made of them: tuning, comparison, reproduction, estimates."""
