"""What is asked: SQL text to aggregates, and which records each of them touches."""
