"""What a benchmark prints: each claim, what was asked, and what was measured."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


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


def real_table(name: str) -> Path | None:
    """A file of the folder CASEMATE_DATA; where there is none, it is said."""
    path = Path(os.environ.get("CASEMATE_DATA", "")) / name
    if path.is_file():
        return path
    print(f"set CASEMATE_DATA to a folder that holds {name} to measure this one")
    return None
