"""How it is taken: what published numbers, or well-chosen questions, tell about one record."""
