"""The ways to be exposed, one module each: rank, ranges, whole numbers, groups, insiders."""
