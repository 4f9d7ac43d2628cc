"""Extremes, medians and comparisons beside sums: what they give away together."""
