"""Deterministic trackers: every site's count lies in a window that the server knows."""
