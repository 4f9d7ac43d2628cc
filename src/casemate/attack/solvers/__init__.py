"""The solvers: least squares, convex and integer decoding, streaming methods, sampling."""
