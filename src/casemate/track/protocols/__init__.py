"""The protocols, one folder or module each: the rule and its design; `modes` lists them once."""
