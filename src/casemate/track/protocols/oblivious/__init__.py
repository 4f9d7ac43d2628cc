"""Trackers that an adaptive adversary breaks; for red-teaming only."""
