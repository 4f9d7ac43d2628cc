"""The tuned robust tracker: secret coins at the sites, phases of noisy length at the server."""
