"""A protected table of parities on disk, whose pairs of columns say nothing about all three.

The stand-in starts from pairs, so questions about three columns are surprises and others are not.
"""

import random
from collections.abc import Sequence
from pathlib import Path

COLUMNS = ("a", "b", "c")
PEOPLE = 5_000
EPSILON = 8


def write_policy(
    folder: Path,
    ledger: str | None = None,
    settings: Sequence[str] = (),
    *,
    strategy: str = "warm",
    people: int = PEOPLE,
) -> Path:
    """The table and its policy; `settings` are further lines of its section [answer]."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "parity.csv").write_text("\n".join(["a,b,c", *_rows(people)]) + "\n")
    lines = ["[table]", 'source = "parity.csv"']
    for name in COLUMNS:
        lines += [f"[columns.{name}]", 'role = "private"', "values = [0, 1]"]
    lines += ["[budget]", f"epsilon = {EPSILON}", "delta = 1e-6"]
    lines += [] if ledger is None else [f'ledger = "{ledger}"']
    lines += ["[answer]", f'strategy = "{strategy}"', *settings]
    path = folder / "casemate.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _rows(people: int) -> list[str]:
    random_bits = random.Random(5)
    pairs = [(random_bits.getrandbits(1), random_bits.getrandbits(1)) for _ in range(people)]
    return [f"{one},{other},{one ^ other}" for one, other in pairs]
