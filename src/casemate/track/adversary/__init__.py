"""Adversaries: who decides which site receives the next item."""
