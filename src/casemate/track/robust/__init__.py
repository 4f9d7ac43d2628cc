"""Trackers whose sites keep their coins secret: source document 001 to the letter, and tuned."""
