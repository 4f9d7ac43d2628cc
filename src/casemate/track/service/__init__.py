"""A tracker as processes: a server, sites, and those who watch."""
