"""The nearest nodes by cosine: `exact` looks at every vector."""
