"""What was said: a log of statements as equations in the secrets of records, and what is known."""
