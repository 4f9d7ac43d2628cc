"""Small tables with a private number, logs about it, and everything that gives the same answers.

What an aggregate shows is said here once more, in a line of Python for each. Whole numbers between
bounds are decided by writing down every table; real numbers by one linear program for every order
of the values and every set of people who have one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import floor
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Literal

import numpy as np
from scipy.optimize import linprog

Flavour = Literal["plain", "compared", "category", "second", "known", "constant", "varying"]
Missing = Literal["none", "secret", "public"]
Values = tuple[Any, ...]
"""What a row has in x, y and c."""
X, Y, C = 0, 1, 2
COLUMNS = ("x", "y", "c")

MOST_TABLES = 3_000
STRICTLY_INSIDE, MOVED = 1e-6, 1e-5


@dataclass(frozen=True)
class Unknown:
    """One secret: the column, the rows that share it, and every value it may have."""

    column: int
    rows: tuple[int, ...]
    possible: tuple[Any, ...]

    @property
    def record(self) -> int:
        return self.rows[0] + 1


@dataclass(frozen=True)
class World:
    """Rows with two public columns, whose they are, and their private values."""

    flavour: Flavour
    missing: Missing
    high: int
    bounded: bool
    whole: bool
    public: tuple[tuple[str, str, str], ...]
    truth: tuple[Values, ...]
    known: dict[Any, tuple[Fraction, Fraction]] = field(default_factory=dict)

    @property
    def private(self) -> tuple[int, ...]:
        return {"second": (X, Y), "category": (X, C)}.get(self.flavour, (X,))

    def people(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for row, (_, _, who) in enumerate(self.public):
            found[who] = (*found.get(who, ()), row)
        return found

    def unknowns(self) -> list[Unknown]:
        shared = [*self.people().values()]
        rows = shared if self.flavour == "constant" else [(r,) for r in range(len(self.public))]
        return [Unknown(column, each, self._possible(column, each[0])) for column in self.private
                for each in rows]  # fmt: skip

    def _possible(self, column: int, row: int) -> tuple[Any, ...]:
        if column == C:
            return ("u", "v")
        low, high = self.known.get(row + 1, (Fraction(0), Fraction(self.high)))
        values = tuple(v for v in range(self.high + 1) if low <= v <= high)
        if column == Y or self.missing == "none" or row + 1 in self.known:
            return values
        if self.missing == "secret":
            return (*values, None)
        return values if self.truth[row][X] is not None else (None,)

    def policy(self, folder: Path) -> Path:
        """Write the table and its policy down."""
        source, policy = folder / "t.csv", folder / "t.toml"
        lines = [
            ",".join("" if each is None else str(each) for each in (*public, *values))
            for public, values in zip(self.public, self.truth, strict=True)
        ]
        source.write_text("a,b,who,x,y,c\n" + "\n".join(lines) + "\n")
        kind = "integer" if self.whole else "decimal"
        ends = f"min = 0\nmax = {self.high}" if self.bounded else "unbounded = true"
        table = f'[table]\nsource = "{source}"\n'
        if self.flavour in ("constant", "varying"):
            table += 'person = "who"\nrows_per_person = 9\n'
            ends += f'\nper_person = "{self.flavour}"'
        x = f'[columns.x]\nrole = "private"\ntype = "{kind}"\n{ends}\nmissing = "{self.missing}"\n'
        y = f'role = "private"\ntype = "integer"\nmin = 0\nmax = {self.high}\n'
        y = y if Y in self.private else 'role = "public"\n'
        c = 'role = "private"\nvalues = ["u", "v"]\n' if C in self.private else 'role = "public"\n'
        who = '[columns.who]\nrole = "identifier"\n'
        public = '[columns.a]\nvalues = ["k", "l", "m"]\n[columns.b]\nvalues = ["p", "q"]\n'
        policy.write_text(f"{table}{public}{who}{x}[columns.y]\n{y}[columns.c]\n{c}")
        return policy


def random_world(rng: Random, flavour: Flavour, *, whole: bool) -> World:
    """A table of which all others can be written down, or all orders of its values."""
    size = rng.randint(3, 6) if whole else rng.randint(3, 4)
    size += flavour in ("constant", "varying") and not (flavour == "varying" and not whole)
    high = rng.choice([1, 2, 3])
    missing: Missing = rng.choice(["none", "secret", "public"])
    people = [f"n{rng.randrange(max(2, size - 1))}" for _ in range(size)]
    if flavour not in ("constant", "varying"):
        people = [f"n{row}" for row in range(size)]
    public = tuple((rng.choice("klm"), rng.choice("pq"), who) for who in people)
    absent = 0.25 if missing != "none" else 0.0
    values: list[Any] = []
    for _ in range(size):
        x = None if rng.random() < absent else rng.randint(0, high)
        values.append((x, rng.randint(0, high), rng.choice("uv")))
    if flavour == "constant":
        values = [values[people.index(who)] for who in people]
    known = {}
    if flavour == "known":
        for row in rng.sample(range(size), rng.choice([1, 1, 2])):
            own = values[row][X]
            if own is not None:
                ends = rng.choice([(own, own), (0, own), (own, high), (max(0, own - 1), own)])
                known[row + 1] = (Fraction(ends[0]), Fraction(ends[1]))
    bounded = whole or rng.random() < 0.4
    world = World(flavour, missing, high, bounded, whole, public, tuple(values), known)
    count = 1
    for each in world.unknowns():
        count *= len(each.possible)
    return world if count <= MOST_TABLES else random_world(rng, flavour, whole=whole)


# Statements ---------------------------------------------------------------------------------------


def there(rows: Sequence[Values], column: int = X) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


def of_values(function: Callable[[list[Any]], Any], column: int = X) -> Callable[..., Any]:
    def shown(rows: Sequence[Values]) -> Any:
        values = there(rows, column)
        return function(values) if values else None

    return shown


def mean(values: list[Any]) -> Fraction:
    return Fraction(sum(values), len(values))


def rounded(value: Fraction) -> Fraction:
    """To one decimal, halves away from zero; no value is negative."""
    return Fraction(floor(value * 10 + Fraction(1, 2)), 10)


def both(rows: Sequence[Values]) -> Any:
    pairs = [row[X] + row[Y] for row in rows if row[X] is not None]
    return sum(pairs) if pairs else None


def two_sums(rows: Sequence[Values]) -> Any:
    return sum(there(rows)) + sum(there(rows, Y)) if there(rows) else None


Shown = Callable[[Sequence[Values]], Any]
NUMBER: dict[str, Shown] = {
    "MIN(x)": of_values(min),
    "MAX(x)": of_values(max),
    "MEDIAN(x)": of_values(lambda values: Fraction(median(map(Fraction, values)))),
    "AVG(x)": of_values(mean),
    "SUM(x)": of_values(sum),
    "COUNT(x)": lambda rows: len(there(rows)),
    "COUNT(*)": len,
    "ROUND(AVG(x), 1)": of_values(lambda values: rounded(mean(values))),
}
MORE: dict[Flavour, dict[str, Shown]] = {
    "compared": {
        "COUNT(*) FILTER (WHERE x >= 2)": lambda rows: sum(x >= 2 for x in there(rows)),
        "COUNT(*) FILTER (WHERE x < 2)": lambda rows: sum(x < 2 for x in there(rows)),
        "COUNT(*) FILTER (WHERE x = 1)": lambda rows: there(rows).count(1),
        "SUM(CASE WHEN x >= 2 THEN 1 ELSE 0 END)": lambda rows: (
            sum(x >= 2 for x in there(rows)) if rows else None
        ),
        "SUM(CASE WHEN x < 1 THEN 2 ELSE 1 END)": lambda rows: (
            len(rows) + there(rows).count(0) if rows else None
        ),
    },
    "category": {
        "COUNT(*) FILTER (WHERE c = 'u')": lambda rows: there(rows, C).count("u"),
        "SUM(x) + COUNT(*) FILTER (WHERE c = 'u')": lambda rows: (
            sum(there(rows)) + there(rows, C).count("u") if there(rows) else None
        ),
    },
    "second": {
        "SUM(x) + SUM(y)": two_sums,
        "SUM(x + y)": both,
        "MAX(y)": of_values(max, Y),
        "AVG(y)": of_values(mean, Y),
    },
}
CONDITIONS: dict[str, Callable[[tuple[str, str, str]], bool]] = {
    "": lambda _: True,
    " WHERE a <> 'k'": lambda row: row[0] != "k",
    " WHERE b = 'p'": lambda row: row[1] == "p",
}


Key = tuple[tuple[str, str], ...] | None
Cells = set[tuple[int, Key]] | None
"""Statements, counted from 1, with the keys of a row, or None for all; None for everything."""


@dataclass(frozen=True)
class Statement:
    """Aggregates over groups that public columns make."""

    keys: tuple[str, ...]
    aggregates: tuple[str, ...]
    where: str
    least: int  # rows that a group must have to be shown

    @property
    def sql(self) -> str:
        shown = ", ".join((*self.keys, *self.aggregates))
        grouped = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        having = f" HAVING COUNT(*) >= {self.least}" if self.least > 1 else ""
        return f"SELECT {shown} FROM t{self.where}{grouped}{having}"

    def cells(self, world: World) -> Iterator[tuple[Key, list[int]]]:
        found: dict[Any, list[int]] = {} if self.keys else {(): []}
        for row, public in enumerate(world.public):
            if CONDITIONS[self.where](public):
                key = tuple(public["ab".index(each)] for each in self.keys)
                found.setdefault(key, []).append(row)
        for key, rows in found.items():
            if not self.keys or len(rows) >= self.least:
                yield tuple(zip(self.keys, key, strict=True)) or None, rows


def random_log(rng: Random, flavour: Flavour) -> list[Statement]:
    """One to three statements."""
    log = []
    for _ in range(rng.randint(1, 3)):
        keys = rng.choice([(), ("a",), ("b",), ("a", "b")])
        names = [*NUMBER, *(2 * [*MORE.get(flavour, {})])]
        aggregates = tuple(dict.fromkeys(rng.sample(names, rng.randint(1, 3))))
        where = rng.choice(["", "", *CONDITIONS])
        log.append(Statement(keys, aggregates, where, rng.choice([1, 1, 2]) if keys else 1))
    return log


# Every table --------------------------------------------------------------------------------------


def shown_rows(
    world: World, log: Sequence[Statement], cells: Cells
) -> Iterator[tuple[Statement, list[int]]]:
    """The rows behind each of some cells."""
    for query, statement in enumerate(log, 1):
        for key, rows in statement.cells(world):
            if cells is None or {(query, key), (query, None)} & cells:
                yield statement, rows


def consistent_tables(
    world: World, log: Sequence[Statement], cells: Cells = None
) -> list[tuple[Values, ...]]:
    """Every table that types and bounds allow and that gives the same answers in some cells."""
    tables = list(_possible_tables(world))
    for statement, rows in shown_rows(world, log, cells):
        for name in statement.aggregates:
            show = {**NUMBER, **MORE.get(world.flavour, {})}[name]
            seen = show([world.truth[row] for row in rows])
            tables = [t for t in tables if show([t[row] for row in rows]) == seen]
    return tables


def _possible_tables(world: World) -> Iterator[tuple[Values, ...]]:
    unknowns = world.unknowns()
    for chosen in product(*(each.possible for each in unknowns)):
        table = [list(values) for values in world.truth]
        for unknown, value in zip(unknowns, chosen, strict=True):
            for row in unknown.rows:
                table[row][unknown.column] = value
        yield tuple(map(tuple, table))


Finding = tuple[int, str, Any]


def same_in_all(world: World, tables: Sequence[tuple[Values, ...]]) -> set[Finding]:
    """Whoever has the same value in all tables, though others were possible."""
    found = set()
    for unknown in world.unknowns():
        values = {table[unknown.rows[0]][unknown.column] for table in tables}
        if len(values) == 1 and len(unknown.possible) > 1:
            found.add((unknown.record, COLUMNS[unknown.column], values.pop()))
    return found


def totals_in_all(world: World, tables: Sequence[tuple[Values, ...]]) -> dict[int, int]:
    """By first record, what all rows of a person come to where that is the same in all tables."""
    found = {}
    for rows in world.people().values():
        totals = {sum(table[row][X] or 0 for row in rows) for table in tables}
        if len(rows) > 1 and len(totals) == 1:
            found[rows[0] + 1] = totals.pop()
    return found


# Every order of real numbers ----------------------------------------------------------------------


def same_in_all_orders(world: World, log: Sequence[Statement], cells: Cells = None) -> set[Finding]:
    """Whoever has the same value in all tables of real numbers that give the same answers."""
    return _Orders(world, log, cells).findings()


class _Orders:
    """One linear program for each order of the values and each set of people who have one."""

    def __init__(self, world: World, log: Sequence[Statement], cells: Cells) -> None:
        self._world, self._units = world, world.unknowns()
        owner = {row: place for place, unit in enumerate(self._units) for row in unit.rows}
        self._cells = [
            (name, [owner[row] for row in rows], NUMBER[name]([world.truth[row] for row in rows]))
            for statement, rows in shown_rows(world, log, cells)
            for name in statement.aggregates
            if name != "COUNT(*)"
        ]
        self._true = [world.truth[unit.rows[0]][X] for unit in self._units]
        self._free: set[int] = set()

    def findings(self) -> set[Finding]:
        for present in self._presences():
            for order in permutations([u for u, here in enumerate(present) if here]):
                self._try(order)
        return {
            (unit.record, "x", self._true[place])
            for place, unit in enumerate(self._units)
            if place not in self._free and unit.possible != (None,) and not self._is_known(place)
        }

    def _is_known(self, place: int) -> bool:
        low, high = self._world.known.get(self._units[place].record, (0, 1))
        return low == high

    def _presences(self) -> Iterator[tuple[bool, ...]]:
        own = [
            (True, False)
            if None in unit.possible and len(unit.possible) > 1
            else (true is not None,)
            for unit, true in zip(self._units, self._true, strict=True)
        ]
        return filter(self._counts_agree, product(*own))

    def _counts_agree(self, present: tuple[bool, ...]) -> bool:
        for name, units, shown in self._cells:
            count = sum(present[unit] for unit in units)
            if name == "COUNT(x)" and count != shown:
                return False
            if name != "COUNT(x)" and (shown is None) != (count == 0):
                return False
        return True

    def _try(self, order: tuple[int, ...]) -> None:
        program = self._program(order)
        if linprog(np.zeros(len(self._units)), **program).status != 0:
            return
        for place, true in enumerate(self._true):
            if (true is None) != (place not in order):
                self._free.add(place)
            elif true is not None and place not in self._free:
                costs = np.zeros(len(self._units))
                for costs[place] in (1.0, -1.0):
                    found = linprog(costs, **program)
                    if found.fun is None or abs(found.fun * costs[place] - true) > MOVED:
                        self._free.add(place)

    def _program(self, order: tuple[int, ...]) -> dict[str, Any]:
        equal, below = [], []
        for lower, upper in pairwise(order):
            below.append((self._row([lower], 1) - self._row([upper], 1), 0.0))
        for name, units, shown in self._cells:
            sorted_units = sorted((u for u in units if u in order), key=order.index)
            if not sorted_units or name == "COUNT(x)":
                continue
            row, value = self._shown(name, sorted_units), float(shown)
            if name.startswith("ROUND"):
                above = value - (0.05 if value else 0.05 - STRICTLY_INSIDE)
                below += [(row, value + 0.05 - STRICTLY_INSIDE), (-row, -above)]
            else:
                equal.append((row, value))
        return {
            "A_eq": [row for row, _ in equal] or None,
            "b_eq": [end for _, end in equal] or None,
            "A_ub": [row for row, _ in below] or None,
            "b_ub": [end for _, end in below] or None,
            "bounds": [self._range(place, order) for place in range(len(self._units))],
            "method": "highs",
        }

    def _range(self, place: int, order: tuple[int, ...]) -> tuple[Any, Any]:
        if place not in order:
            return 0, 0
        bounds = (0, self._world.high) if self._world.bounded else (None, None)
        low, high = self._world.known.get(self._units[place].record, bounds)
        return (low if low is None else float(low)), (high if high is None else float(high))

    def _shown(self, name: str, units: list[int]) -> Any:
        count = len(units)
        if name == "MEDIAN(x)":
            return self._row([units[(count - 1) // 2], units[count // 2]], 2)
        if name in ("MIN(x)", "MAX(x)"):
            return self._row([units[0 if name == "MIN(x)" else -1]], 1)
        return self._row(units, 1 if name == "SUM(x)" else count)

    def _row(self, units: list[int], divisor: int) -> Any:
        row = np.zeros(len(self._units))
        np.add.at(row, units, 1 / divisor)
        return row
