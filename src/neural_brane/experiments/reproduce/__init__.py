"""The paper's experiments run again: plan, trainings, results beside the paper's numbers, and a report."""
