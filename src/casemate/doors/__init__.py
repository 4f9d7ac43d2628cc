"""The only two ways private data leaves, the gate and the measurement, and what left, in public."""
