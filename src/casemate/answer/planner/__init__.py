"""Which way to spend a budget answers questions best: predicted errors of every strategy."""
