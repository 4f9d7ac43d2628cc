"""Claims: whose incomes a thousand sums give away, decided exactly among ten million people.

Conjunctions of two to four conditions on thirteen columns of `population`, each over at least five
people, and some of them a second time without a few. Every claim "exposed" is proved: a certificate
is checked in integers at every record. A smaller table stands beside peers in the same run: records
with equal signatures taken together and reduced by python-flint modulo a prime of 61 bits, and the
float SVD, which calls exposed whose leverage is 1 up to 1e-9.
CPU seconds of the work itself: kernels are compiled, columns loaded and SQL parsed before the clock
starts; one thread.
"""

import os
import random
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.claims import Claim, show
from casemate.exact import Proved, determine_sketched, random_prime
from casemate.query.language import TRUE
from casemate.query.parse import parse
from casemate.query.records import membership
from casemate.query.sketch import CodedRecords, Selection
from casemate.table import ColumnType, Table
from casemate.table.sources import Frame, Source

SUMS = 1_000
TARGETS = {1_000_000: "<= 1.5", 10_000_000: "<= 10"}
FEWEST = 5
TRACKED = 0.6  # share of sums that are asked a second time, without a few people
SMALL = 50_000, 300  # records and sums for the peers
RANGES = {"age": 100, "hours": 80, "area": 20_000, "household_size": 8}
STARTS = {"area": 10_000}


class Loaded:
    """A source whose answers are kept, so that columns are read before the clock starts."""

    def __init__(self, source: Source) -> None:
        self._source, self._kept = source, dict[str, Frame]()
        self.dialect = source.dialect

    def relation(self, public: str | None = None) -> str:
        return self._source.relation(public)

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        return self._source.fields(public)

    def read(self, sql: str) -> Frame:
        if sql not in self._kept:
            self._kept[sql] = self._source.read(sql)
        return self._kept[sql]

    def close(self) -> None:
        self._kept.clear()


def predicates(table: Table, count: int) -> list[str]:
    """Ranges of numbers and one or two values of categories."""
    chance = random.Random(1)
    categories = {
        column.name: [str(value) for value in column.values]
        for column in table.policy.columns
        if column.type is ColumnType.TEXT and column.role == "public" and column.values
    }

    def atom() -> str:
        if chance.random() < 0.7:
            name, width = chance.choice(list(RANGES.items()))
            low = STARTS.get(name, 0) + chance.randrange(width)
            return f"{name} BETWEEN {low} AND {low + chance.randrange(1, width)}"
        name, listed = chance.choice(list(categories.items()))
        chosen = chance.sample(listed, min(len(listed) - 1, chance.randint(1, 2)))
        return f"{name} IN ({', '.join(repr(value) for value in chosen)})"

    found: list[str] = []
    while len(found) < count:
        found.append(" AND ".join(atom() for _ in range(chance.randint(2, 4))))
        if chance.random() < TRACKED:
            found.append(f"{found[-1]} AND NOT ({narrow(categories, chance)})")
    return found


def narrow(categories: Mapping[str, list[str]], chance: random.Random) -> str:
    """A condition on which hardly anybody is left: whoever is, two such sums give away."""
    hours, age = chance.randrange(80), chance.randrange(18, 70)
    few = [f"hours BETWEEN {hours} AND {hours + 5} AND age BETWEEN {age} AND {age + 2}"]
    for name in ("region", "occupation", "education")[: chance.randint(0, 3)]:
        few.append(f"{name} = {chance.choice(categories[name])!r}")
    return " AND ".join(few)


def selections(records: int, count: int) -> list[Selection]:
    """Sums over at least five people each, as far as a million of them show."""
    with Table.open(f"population:{min(records, 1_000_000)}") as table:
        texts = [f"SELECT COUNT(*) FROM t WHERE {each}" for each in predicates(table, 2 * count)]
        asked = [parse(text, table.policy)[0] for text in texts]
        sizes = membership(asked, table.source).sizes()
    enough = [each for each, size in zip(asked, sizes, strict=True) if size >= FEWEST]
    return [Selection(each.predicate) for each in enough[:count]]


def measure(listed: Sequence[Selection], source: Source) -> tuple[float, float, Proved]:
    """CPU seconds of coding the columns and of the audit, and what it found."""
    start = time.process_time()
    records = CodedRecords(listed, source)
    coded = time.process_time()
    found = determine_sketched(records)
    return coded - start, time.process_time() - coded, found


def warm(listed: Sequence[Selection], source: Source) -> None:
    """Compile the kernels."""
    determine_sketched(CodedRecords([*listed, Selection(TRUE)], source))


def ours(count: int) -> list[Claim]:
    listed = selections(count, SUMS)
    with Table.open(f"population:{count}") as table:
        source = Loaded(table.source)
        CodedRecords(listed, source)  # loads the columns
        coding, deciding, found = measure(listed, source)
    what = f"CPU seconds, {count:,} records x {SUMS:,} sums"
    return [
        Claim(what, TARGETS[count], f"{coding + deciding:.2f}"),
        Claim("  of which coding the columns", "stated", f"{coding:.2f}"),
        Claim(
            "  rank; exposed, each with a certificate",
            "all",
            f"{found.rank}; {len(found.by)}, {len(found.certificates)}",
        ),
    ]


# Peers ------------------------------------------------------------------------------------------


def collapsed(rows: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first record of each signature, and how many have it."""
    packed = np.ascontiguousarray(np.packbits(rows, axis=0).T)
    whole = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, counts = np.unique(whole, return_index=True, return_counts=True)
    return first, counts


def by_flint(rows: NDArray[np.bool_]) -> tuple[float, set[int]]:
    """Reduced echelon form; a row is a unit vector where a random image of it is one."""
    flint = import_module("flint")
    start = time.process_time()
    first, counts = collapsed(rows)
    prime = random_prime(61)
    entries: list[int] = rows[:, first].astype(np.int64).ravel().tolist()
    reduced, _ = flint.nmod_mat(len(rows), len(first), entries, prime).rref()
    marks = [int.from_bytes(os.urandom(7)) % prime for _ in first]
    images = reduced * flint.nmod_mat(len(first), 1, marks, prime)
    place = {mark: column for column, mark in enumerate(marks)}
    hits = (place.get(int(images[row, 0])) for row in range(len(rows)))
    found = {int(first[hit]) for hit in hits if hit is not None and counts[hit] == 1}
    return time.process_time() - start, found


def by_svd(rows: NDArray[np.bool_]) -> tuple[float, set[int]]:
    """Leverage: the squared length of each unit vector's part in the row space."""
    start = time.process_time()
    _, sizes, basis = np.linalg.svd(rows.astype(np.float64), full_matrices=False)
    kept = basis[sizes > sizes[0] * max(rows.shape) * np.finfo(np.float64).eps]
    leverage = (kept**2).sum(axis=0)
    return time.process_time() - start, set(np.flatnonzero(leverage > 1 - 1e-9).tolist())


def peers() -> list[Claim]:
    count, sums = SMALL
    listed = selections(count, sums)
    with Table.open(f"population:{count}") as table:
        source = Loaded(table.source)
        warm(listed, source)
        coding, deciding, found = measure(listed, source)
        rows = CodedRecords(listed, source).rows(np.arange(count))
    mine, who = coding + deciding, set(found.by)
    claims = [
        Claim(f"CPU seconds, {count:,} records x {sums} sums", "stated", f"{mine:.2f}"),
    ]
    svd, seen = by_svd(rows)
    claims.append(_beside("float SVD", svd, mine, seen, who))
    if find_spec("flint") is None:
        return [*claims, Claim("  collapse + python-flint", "stated", "not installed")]
    exact, seen = by_flint(rows)
    if seen != who:
        raise RuntimeError("python-flint finds other people exposed")
    return [*claims, _beside("collapse + python-flint", exact, mine, seen, who)]


def _beside(name: str, theirs: float, mine: float, seen: set[int], who: set[int]) -> Claim:
    same = "the same people" if seen == who else f"{len(seen ^ who)} people differ"
    return Claim(f"  {name}, and how many times more", "stated", f"{theirs:.2f}, "
                 f"{theirs / mine:.0f}; {same} of {len(who)}")  # fmt: skip


def main() -> None:
    claims: list[Any] = peers()
    for count in TARGETS:
        claims += ours(count)
    show(claims)


if __name__ == "__main__":
    main()
