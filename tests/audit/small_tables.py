"""Tables of a few records with whole numbers and a category, and every table they could be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from casemate.table import Table

VALUES = ("no", "flu", "gout")
Row = tuple[int, str]
"""What is secret about a record: its number and its category."""


@dataclass(frozen=True)
class Asked:
    """A statement about some records, and what it shows of a table."""

    sql: str
    kind: str
    members: tuple[int, ...]
    weights: tuple[int, ...]

    def answer(self, rows: Sequence[Row]) -> Any:
        numbers = [rows[i][0] for i in self.members]
        if self.kind == "count":
            return sum(rows[i][1] == "flu" for i in self.members)
        if self.kind == "sum":
            return sum(w * n for w, n in zip(self.weights, numbers, strict=True))
        return (
            median(numbers)
            if self.kind == "median"
            else (max if self.kind == "max" else min)(numbers)
        )


@dataclass(frozen=True)
class Small:
    """A table, the largest number a record may have, and statements about it."""

    rows: tuple[Row, ...]
    most: int
    asked: tuple[Asked, ...]

    def possible(self) -> Iterator[tuple[Row, ...]]:
        """Every table with the same answers."""
        shown = [each.answer(self.rows) for each in self.asked]
        one = list(product(range(self.most + 1), VALUES))
        for table in product(one, repeat=len(self.rows)):
            if [each.answer(table) for each in self.asked] == shown:
                yield table

    def exposed(self) -> set[tuple[int, str]]:
        """Whose number or category is the same in all of them, by record from 1 and column."""
        tables, found = list(self.possible()), set()
        for place in range(len(self.rows)):
            for which, name in enumerate(("pay", "ill")):
                if len({table[place][which] for table in tables}) == 1:
                    found.add((place + 1, name))
        return found

    def asked_about(self) -> set[tuple[int, str]]:
        names = {"count": "ill"}
        return {(i + 1, names.get(a.kind, "pay")) for a in self.asked for i in a.members}

    @property
    def log(self) -> list[str]:
        return [each.sql for each in self.asked]

    def open(self, folder: Path, rows: Sequence[Row] | None = None) -> Table:
        lines = [f"{i},{n},{c}" for i, (n, c) in enumerate(rows or self.rows, start=1)]
        (folder / "t.csv").write_text("\n".join(["id,pay,ill", *lines]) + "\n")
        (folder / "t.toml").write_text(
            f'[table]\nsource = "t.csv"\n[columns.id]\nrole = "public"\n'
            f'[columns.pay]\nrole = "private"\nmin = 0\nmax = {self.most}\n'
            f'[columns.ill]\nrole = "private"\nvalues = ["no", "flu", "gout"]\n'
        )
        return Table.open(str(folder / "t.toml"))


def small(rng: Random, kinds: Sequence[str] = ("sum", "sum", "count")) -> Small:
    size, most = rng.randint(2, 4), rng.choice([1, 2, 3])
    rows = tuple(
        (rng.choice([0, most, rng.randint(0, most)]), rng.choice(VALUES)) for _ in range(size)
    )
    asked = tuple(_asked(rng, size, rng.choice(kinds)) for _ in range(rng.randint(1, 4)))
    return Small(rows, most, asked)


def _asked(rng: Random, size: int, kind: str) -> Asked:
    members = tuple(sorted(rng.sample(range(size), rng.randint(1, size))))
    where = f"id IN ({', '.join(str(i + 1) for i in members)})"
    if kind == "count":
        sql = f"SELECT COUNT(*) FROM t WHERE ill = 'flu' AND {where}"
        return Asked(sql, kind, members, (1,) * len(members))
    if kind == "sum" and rng.random() < 0.5:
        weights = tuple(2 * (i + 1) - 3 for i in members)
        return Asked(f"SELECT SUM((2 * id - 3) * pay) FROM t WHERE {where}", kind, members, weights)
    sql = f"SELECT {kind.upper()}(pay) FROM t WHERE {where}"
    return Asked(sql, kind, members, (1,) * len(members))
