"""Which people could live in a small block, from published statistics alone."""
