"""`brane explore`: every node on a map in a browser, by a server on this machine or as one file."""
