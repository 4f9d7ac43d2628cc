"""Second tables: the proof, for everybody who is not exposed, that another value is possible."""
