"""Tables whose rows are pooled in bags and trained by Adam: definitions and fast versions."""
