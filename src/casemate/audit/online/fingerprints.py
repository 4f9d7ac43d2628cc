"""The records of a table known by secret fingerprints that the engine adds up beside an answer.

A record is named by a keyed hash of its identity, 56 bits, which only the engine computes. The
fingerprint of its unknown in private column c is that number times a secret random factor of the
column, so that one sum in SQL serves every column.

Assumes    That the hash of records xor a secret key is like random numbers to whoever does not know
           the key, in this sense: a combination of records that is not zero adds up to 0 modulo a
           prime with a chance near 1/p. Nobody sees a fingerprint or a total, only decisions. On
           DuckDB it is the engine's own fast hash (a mixing of 64 bits made for hash tables, not
           for cryptography); elsewhere the one of `query.sketch_hash`. Where the assumption fails,
           a question that would expose somebody could be taken for one that follows from earlier
           ones; records chosen without knowing the key do not make it fail.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.audit.online.summed_space import Names
from casemate.errors import Misconfigured
from casemate.exact import WIDE, RandomBytes, random_below
from casemate.query import Join
from casemate.query.engines import Key, grouped, pieces, rows, values
from casemate.query.language import TRUE, Expression
from casemate.query.sketch import HALF, HashKeys, hashed
from casemate.table.sources import Frame, Source

BITS = 56
"""Bits of a record's number; those above it in a name say which column is meant."""

MOST_COLUMNS = 2 ** (62 - BITS)
SAMPLE = 4096
"""About so many records are named one by one whenever a question adds them up."""

MOST_KNOWN = 256
"""So many scans are remembered."""

_ALL = 2**BITS
_MASK = _ALL - 1


Place = tuple[tuple[Join, ...], Expression, tuple[Expression, ...]]
"""Joins, predicate and keys: what the sums of one scan share."""


@dataclass(frozen=True, eq=False, repr=False)
class CellTally:
    """One cell of a scan: the sum of its records' numbers, and those of the sample, in order."""

    numbers: int
    members: Names


class FingerprintedTable:
    """Reads records by their numbers; nothing private is ever among what it reads."""

    def __init__(
        self, source: Source, records: NDArray[np.generic], random: RandomBytes | None = None
    ) -> None:
        self.source = source
        self._whole = records.dtype == np.int64
        self._keys = HashKeys.drawn(random)
        self._factors: list[int] = [
            1 + random_below(2**WIDE - 1, random) for _ in range(MOST_COLUMNS)
        ]
        self.below = min(_ALL, _ALL * SAMPLE // max(1, len(records)))
        self.size = len(records)
        self.sample, _ = self.members((), f"v < {self.below}")
        self._known: dict[Place, dict[Key, CellTally]] = {
            ((), TRUE, ()): {(): CellTally(self._everybody(), self.sample)}
        }

    def fingerprint(self, name: int) -> int:
        """The secret random number of an unknown."""
        return self.scaled(name & _MASK, name >> BITS)

    def scaled(self, total: int, column: int) -> int:
        """The fingerprints of unknowns of one column whose records add up to this."""
        return self._factors[column] * total

    def numbered(self, inner: str, columns: Sequence[str]) -> str:
        """A SELECT of some columns and the number v of the records r of another SELECT."""
        kept = "".join(f"{column}, " for column in columns)
        if self.source.dialect == "duckdb":
            return f"SELECT {kept}{self._by_duckdb()} AS v FROM ({inner}) AS h"
        lanes = hashed(inner, self._keys, self.source.dialect, self._whole, columns)
        number = f"(y << {BITS - HALF}) + (w & {2 ** (BITS - HALF) - 1})"
        return f"SELECT {kept}{number} AS v FROM ({lanes}) AS l"

    def _by_duckdb(self) -> str:
        one, other = (int(each) for each in self._keys.lanes[:, 0])
        secret = (one << HALF) + other
        mixed = f"xor(r, {secret})" if self._whole else f"xor(hash(r), CAST({secret} AS UBIGINT))"
        return f"CAST(hash({mixed}) >> {64 - BITS} AS BIGINT)"

    # What earlier scans said ----------------------------------------------------------------------

    def known(self, place: Place) -> dict[Key, CellTally] | None:
        """The cells of a predicate and keys, where they were scanned before."""
        return self._known.get(place)

    def keep(self, place: Place, cells: dict[Key, CellTally]) -> None:
        """Remember the cells of a scan, and forget the oldest where there are many."""
        self._known[place] = cells
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _everybody(self) -> int:
        inner = self.numbered(rows(self.source, (), TRUE, {}), [])
        total = values(self.source.read(grouped(inner, [], {"t": "sum(v)"}))["t"])[0]
        return int(str(total or 0))

    def check(self, members: Iterable[Names]) -> None:
        """Refuse to go on where a scan has met records that the table did not have at first."""
        found = np.concatenate([self.sample[:0], *members])
        if not is_in(found, self.sample).all():
            raise Misconfigured(
                "the table's records are not those it had at first, and an audit is about one "
                "snapshot; start a new one"
            )

    # Single records -----------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> Names:
        """The number of every record, in the order of the records."""
        inner = rows(self.source, (), TRUE, {})
        frame = self.source.read(self.numbered(inner, ["r"]))
        found: Names = frame["v"].values[np.argsort(frame["r"].values, kind="stable")]
        return found

    def members(
        self, predicates: Sequence[Expression], condition: str, within: Expression = TRUE
    ) -> tuple[Names, NDArray[np.bool_]]:
        """Records of a condition on v, in order, and which of the predicates hold for each."""
        parts = [self._read(each, condition, within) for each in pieces([*predicates, TRUE])]
        names = np.sort(parts[0]["v"].values)
        found = np.zeros((len(names), 0), np.bool_)
        for part in parts:
            held = [_held(part, f"b{i}") for i in range(len(part) - 1)]
            order = np.argsort(part["v"].values, kind="stable")
            found = np.concatenate([found, np.stack(held, axis=1)[order]], axis=1)
        return names, found[:, : len(predicates)]

    def _read(self, predicates: Sequence[Expression], condition: str, within: Expression) -> Frame:
        columns = {f"b{i}": each for i, each in enumerate(predicates)}
        inner = self.numbered(rows(self.source, (), within, columns), list(columns))
        return self.source.read(f"SELECT * FROM ({inner}) AS n WHERE {condition}")


def is_in(names: Names, ordered: Names) -> NDArray[np.bool_]:
    """Which of some names are among others, which are in order."""
    if not len(ordered):
        return np.zeros(len(names), np.bool_)
    place = np.minimum(np.searchsorted(ordered, names), len(ordered) - 1)
    return np.asarray(ordered[place] == names, np.bool_)


def among(names: Names) -> str:
    """The condition on v for records of these names."""
    return f"v IN ({', '.join(map(str, names & _MASK))})"


def between(low: int, high: int) -> str:
    """The condition on v for records from one number to just below another."""
    return f"v >= {low} AND v < {high}"


def _held(frame: Frame, name: str) -> NDArray[np.bool_]:
    series = frame[name]
    held: NDArray[np.bool_] = series.values.astype(np.bool_) & ~series.missing
    return held
