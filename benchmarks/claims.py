"""What a benchmark prints: each claim, what was asked, and what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    what: str
    asked: str
    measured: str


def show(claims: Sequence[Claim]) -> None:
    """Print the claims as a table whose columns are as wide as they need to be."""
    rows = [("claim", "asked", "measured"), *((c.what, c.asked, c.measured) for c in claims)]
    first, second, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    for what, asked, measured in rows:
        print(f"{what:<{first}} | {asked:<{second}} | {measured}")
