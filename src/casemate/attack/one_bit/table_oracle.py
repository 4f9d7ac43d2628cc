"""A table behind yes/no answers about weighted totals of a private column.

Source     Source document 000, section 2: a secret w in [0, 1]^D, an answer w . q, noise on it, and
           one bit that says whether it is above a threshold.
Reduction  Records are put into groups by public columns. A statement weighs each group by a number
           between 0 and 1, SUM(weight * x), with the same weight for all records of a group. Values
           scale to [0, 1] by the bounds of the column, so w has one coordinate for each group: the
           mean of its scaled values. A query has the weight times the number of records times the
           range, all of which is public: w . q is the total, in the column's own unit, above the
           least that it could be. Nothing is lost: the total is `total(q, w . q)` exactly.
Departure  Queries are not scaled to [0, 1] in turn. Learners that need no angles do not care, and
           the noise stays in the unit in which people speak of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.laws import Law, parse_law
from casemate.attack.one_bit.oracle import Floats, NoisyOracle
from casemate.attack.plan.language import Axis, Language, Span, read_language
from casemate.attack.subjects import private_column
from casemate.errors import Misconfigured
from casemate.query.engines import PROTECTED
from casemate.query.language import NUMBERS
from casemate.query.records import Records
from casemate.table import Column, Policy, Table, opened_table
from casemate.table.sources import Series, quote_name

# Groups that everybody can name: ranges of public columns, as even as they can be ---------------
#
# All records are one group. The largest group is cut in two, again and again, until there are
# enough: along the public column of which it has most values, where the two parts come nearest to
# the same number of records. Columns have their order, values theirs (a missing one comes first),
# and ties go to the first, so that the same table always has the same groups. Groups whose records
# agree in every public column are not cut. It takes one pass over the records of a group for each
# column and cut.


Places = NDArray[np.int64]

MISSING_PLACE = -1
"""The place of a missing value, before all others."""

MOST_NAMED_VALUES = 3
"""How many values of a category a name lists."""


@dataclass(frozen=True, eq=False, repr=False)
class RecordGroups:
    """The group of each record, and how groups are called."""

    codes: Places
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> Places:
        """How many records each group has."""
        return np.bincount(self.codes, minlength=len(self)).astype(np.int64)

    def __repr__(self) -> str:
        """How many there are."""
        return f"<Groups: {len(self)} of {len(self.codes)} records>"


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some records, and the values of each column that a record of this group may have."""

    records: Places
    spans: Mapping[int, Span]


def group_records(language: Language, most: int) -> RecordGroups:
    """At most so many groups; fewer where the public columns do not tell enough records apart."""
    if most < 1:
        raise ValueError(f"need at least one group, got {most}")
    pieces = [_Piece(np.arange(language.count), {})]
    whole: set[int] = set()  # pieces that cannot be cut, by their first record
    while len(pieces) < most:
        open_ = [i for i, each in enumerate(pieces) if int(each.records[0]) not in whole]
        if not open_:
            break
        place = max(open_, key=lambda i: len(pieces[i].records))
        parts = _cut(pieces[place], language.axes)
        if parts is None:
            whole.add(int(pieces[place].records[0]))
        else:
            pieces[place : place + 1] = parts
    codes = np.empty(language.count, np.int64)
    for place, piece in enumerate(pieces):
        codes[piece.records] = place
    return RecordGroups(codes, tuple(_name(each.spans, language.axes) for each in pieces))


def _cut(piece: _Piece, axes: Sequence[Axis]) -> list[_Piece] | None:
    """Two halves along the column of most values; None where all records are alike."""
    seen = [_count_places(axis.places[piece.records], axis.last) for axis in axes]
    values = [len(found) for found, _ in seen]
    if max(values, default=0) < 2:
        return None
    number = values.index(max(values))
    last = _half(*seen[number])
    lower = axes[number].places[piece.records] <= last
    first, end = piece.spans.get(number, (MISSING_PLACE, axes[number].last))
    return [
        _Piece(piece.records[lower], {**piece.spans, number: (first, last)}),
        _Piece(piece.records[~lower], {**piece.spans, number: (last + 1, end)}),
    ]


def _count_places(places: Places, last: int) -> tuple[Places, Places]:
    """The places that occur, in order, and how often each does."""
    if last > 4 * len(places):  # counting them all would take longer than sorting these
        return np.unique(places, return_counts=True)
    counts = np.bincount(places - MISSING_PLACE)
    found = np.flatnonzero(counts)
    return found + MISSING_PLACE, counts[found]


def _half(places: Places, counts: Places) -> int:
    """The last value of the lower half: that after which the records are most evenly parted."""
    before = np.cumsum(counts)
    return int(places[np.argmin(np.abs(2 * before[:-1] - before[-1]))])


# Names of groups --------------------------------------------------------------------------------


def _name(spans: Mapping[int, Span], axes: Sequence[Axis]) -> str:
    """A group in words, column by column.

    A value that no record of the group has may belong to it all the same.
    """
    return ", ".join(_range(axes[i], *spans[i]) for i in sorted(spans)) or "everybody"


def _range(axis: Axis, first: int, last: int) -> str:
    name, missing = axis.column.name, first == MISSING_PLACE and axis.has_null
    if last == MISSING_PLACE:
        return f"{name} missing"
    said = " or ".join(_between(axis, max(first, 0), last))
    return f"{said} or missing" if missing else said


def _between(axis: Axis, first: int, last: int) -> Iterator[str]:
    name, values = axis.column.name, axis.values
    if first == 0 and last == axis.last:
        yield f"any {name}"
    elif first == last:
        yield f"{name} = {values[first]}"
    elif not axis.ordered and last - first < MOST_NAMED_VALUES:
        yield f"{name} = {values[first]}"
        yield from map(str, values[first + 1 : last + 1])
    elif not axis.ordered:
        yield f"{name} from {values[first]} to {values[last]}"
    elif first == 0:
        yield f"{name} <= {values[last]}"
    else:
        upper = "" if last == axis.last else f" <= {values[last]}"
        yield f"{values[first - 1]} < {name}{upper}" if upper else f"{name} > {values[first - 1]}"


# The private column as a secret, and the oracle about it ----------------------------------------


Bounds = tuple[float, float]

DEFAULT_DIMENSIONS = 16


@dataclass(frozen=True, eq=False, repr=False)
class GroupTotals:
    """The private column of a table as a secret: one mean for each group, scaled to [0, 1]."""

    private: str
    bounds: Bounds
    groups: RecordGroups
    means: Floats  # w

    @classmethod
    def of(
        cls,
        table: Table,
        private: str | None = None,
        dimensions: int = DEFAULT_DIMENSIONS,
        bounds: Bounds | None = None,
    ) -> Self:
        """Read a table: its public columns for the groups, its private one for the secret.

        Numbers outside the bounds are moved to the nearest one; a missing number counts as 0, as
        in a sum, and is moved as well.
        """
        column = private_number(table.policy, private)
        low, high = bounds or _bounds(column)
        if not (np.isfinite([low, high]).all() and low < high):
            raise Misconfigured(
                f"the bounds {low:g}:{high:g} leave no range to scale by; give --bounds LO:HI with "
                f"LO below HI"
            )
        language = read_language(table.policy, table.source)
        _check(dimensions, language.count)
        groups = group_records(language, dimensions)
        read = Records(table.source).column(f"{quote_name(PROTECTED)}.{quote_name(column.name)}")
        scaled = (np.clip(_numbers(read), low, high) - low) / (high - low)
        means = np.bincount(groups.codes, scaled, minlength=len(groups)) / groups.sizes
        return cls(column.name, (low, high), groups, means)

    @property
    def range(self) -> float:
        """How far apart the bounds are."""
        return self.bounds[1] - self.bounds[0]

    @property
    def reach(self) -> Floats:
        """How much each group can add to a total at most, above the least."""
        return np.asarray(self.groups.sizes * self.range, np.float64)

    def total(self, q: Floats, answer: float) -> float:
        """What an answer w . q says about the total itself: SUM(weight * x)."""
        return answer + self.bounds[0] * float(np.sum(q)) / self.range

    def value(self, mean: float) -> float:
        """A mean of scaled values in the column's unit."""
        return self.bounds[0] + self.range * mean

    def __repr__(self) -> str:
        """How many groups there are; nothing about the secret."""
        return f"<GroupTotals: {len(self.groups)} groups of {len(self.groups.codes)} records>"


class TableOracle:
    """Says whether a weighted total of a table's private column, plus noise, is above a threshold.

    One call of `above` is one statement `SELECT SUM(weight * x) > threshold`, answered with noise
    on the sum; `law` None is an oracle without noise. Learners see `dimension`, `query` and bits.

    >>> oracle = TableOracle.of("hospital", dimensions=2)
    >>> oracle.dimension, oracle.totals.groups.names
    (2, ('ZIP <= 32453', 'ZIP > 32453'))
    >>> q = oracle.query([1, 1])
    >>> [oracle.above(q, total - oracle.totals.total(q, 0)) for total in (32, 33)]
    [True, False]
    """

    def __init__(
        self, totals: GroupTotals, law: Law | None, random: np.random.Generator | None = None
    ) -> None:
        self.totals, self.law = totals, law
        self._oracle = NoisyOracle(totals.means, law, random or np.random.default_rng())

    @classmethod
    def of(
        cls,
        table: Table | Policy | str | Path,
        *,
        private: str | None = None,
        noise: Law | str | None = None,
        dimensions: int = DEFAULT_DIMENSIONS,
        bounds: Bounds | None = None,
        random: np.random.Generator | None = None,
    ) -> Self:
        """An oracle over a table, which is read once; `noise` is a law or LAW:SCALE."""
        law = parse_law(noise) if isinstance(noise, str) else noise
        return cls(read_totals(table, private, dimensions, bounds), law, random)

    @property
    def dimension(self) -> int:
        """How many groups there are, at most as many as were asked for."""
        return len(self.totals.groups)

    def query(self, weights: Floats | Sequence[float]) -> Floats:
        """The query of a weight between 0 and 1 for each group."""
        given = np.asarray(weights, np.float64)
        if given.shape != (self.dimension,) or not ((given >= 0) & (given <= 1)).all():
            raise ValueError(f"need {self.dimension} weights between 0 and 1, one for each group")
        return given * self.totals.reach

    def above(self, q: Floats, threshold: float) -> bool:
        """One call: one bit."""
        return self._oracle.above(q, threshold)

    def noisy(self, queries: Floats) -> Floats:
        """Noisy answers of a whole stream, for learners that run compiled and only compare them."""
        return self._oracle.noisy(queries)


def read_totals(
    table: Table | Policy | str | Path,
    private: str | None,
    dimensions: int = DEFAULT_DIMENSIONS,
    bounds: Bounds | None = None,
) -> GroupTotals:
    """The secret of a table, which is opened if it is a path."""
    names = () if private is None or isinstance(table, Table) else (private,)
    with opened_table(table, names) as opened:
        return GroupTotals.of(opened, private, dimensions, bounds)


def private_number(policy: Policy, private: str | None) -> Column:
    """The private column that is meant; it has to be a number."""
    column = private_column(policy, private)
    if column.type not in NUMBERS:
        raise Misconfigured(
            f"the private column {column.name!r} is not numeric, so it has no totals; name a "
            f"column of numbers"
        )
    return column


def _bounds(column: Column) -> Bounds:
    """The bounds that the policy declares."""
    ends = (column.low, column.high) if column.values is None else _ends(column)
    if ends[0] is None or ends[1] is None:
        raise Misconfigured(
            f"nothing says between which numbers {column.name!r} lies; give --bounds LO:HI, or "
            f"`min` and `max` in a policy"
        )
    return float(str(ends[0])), float(str(ends[1]))


def _ends(column: Column) -> tuple[float | None, float | None]:
    numbers = [float(str(value)) for value in column.values or ()]
    return min(numbers, default=None), max(numbers, default=None)


def _check(dimensions: int, records: int) -> None:
    if dimensions < 1:
        raise Misconfigured(f"--dimensions {dimensions} is no number of groups; give 1 or more")
    if records < dimensions:
        raise Misconfigured(
            f"the table has {records} records, fewer than the {dimensions} groups that were asked "
            f"for; give --dimensions {max(records, 1)} or less"
        )


def _numbers(series: Series) -> Floats:
    """Numbers as floats; 0 where one is missing."""
    values = np.where(series.missing, 0.0, series.values).astype(np.float64)
    return np.where(np.isnan(values), 0.0, values)
