"""Randomness with a price: mechanisms take numbers and give numbers; none of them knows SQL."""
