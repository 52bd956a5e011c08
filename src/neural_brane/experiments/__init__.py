"""Run trainings once, keep them, and use them to tune, compare, reproduce and estimate."""
