"""Show all nodes on a map in a browser, from a server on this machine or from one file."""
