"""Private answers to a stream of questions: only surprises are paid for."""
