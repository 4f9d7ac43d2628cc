"""Places for books, shared by the tests of ledgers."""

from privacy.places import books, file, place

__all__ = ["books", "file", "place"]
