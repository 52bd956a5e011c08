"""Skip-gram with negative sampling: the definition and a fast version."""
