"""What the paper reports, to set beside what is measured here."""
