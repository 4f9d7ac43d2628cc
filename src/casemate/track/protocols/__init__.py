"""The protocols, one folder each: the rule, its design, and its simulation."""
