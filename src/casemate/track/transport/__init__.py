"""Transports: how reports and orders travel."""
