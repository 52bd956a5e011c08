"""Pages for a browser: one HTML file that needs nothing else, neither files nor a network."""
