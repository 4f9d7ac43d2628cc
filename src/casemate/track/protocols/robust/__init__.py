"""The robust tracker of source document 001, as it is written, and what its theorem leaves open."""
