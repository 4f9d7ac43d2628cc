"""The region of possible tables: its bounds, its whole points, and second solutions."""
