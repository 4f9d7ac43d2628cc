"""Arithmetic: exact linear algebra, bounds, order and integer programs; it knows no tables."""
