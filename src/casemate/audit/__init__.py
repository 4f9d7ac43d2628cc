"""Who is exposed: what a set of published aggregates adds up to, decided exactly."""
