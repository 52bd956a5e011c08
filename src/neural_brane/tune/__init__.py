"""A method's parameters by grid search: the search, the grids, and what was found."""
