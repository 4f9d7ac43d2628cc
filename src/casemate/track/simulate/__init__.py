"""Simulations: what a protocol sends and how far it is off, item by item."""
