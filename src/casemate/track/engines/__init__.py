"""Engines: what each protocol does at the server."""
