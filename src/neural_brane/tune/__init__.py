"""A method's parameters by grid search, and those that were found."""
