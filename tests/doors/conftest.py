"""The places for books that the tests of ledgers have."""

from privacy.places import books

__all__ = ["books"]
