"""Distributed counts with few messages, right against somebody who adapts."""
