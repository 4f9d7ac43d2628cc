"""Windows for some sites and sampling for the others: one protocol for every load."""
