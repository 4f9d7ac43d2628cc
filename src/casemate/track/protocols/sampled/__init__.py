"""Sampled rounds: how long a round may be, and how likely a round is to fail."""
