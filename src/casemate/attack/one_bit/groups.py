"""Records in groups that everybody can name: ranges of public columns, as even as they can be.

Method     All records are one group. The largest group is cut in two, again and again, until there
           are enough: along the public column of which it has most values, where the two parts
           come nearest to the same number of records. Columns have their order, values theirs (a
           missing one comes first), and ties go to the first, so that the same table always has
           the same groups. Groups whose records agree in every public column are not cut.
Cost       One pass over the records of a group for each column and cut.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan.language import Axis, Language, Span

Places = NDArray[np.int64]

MISSING = -1
"""The place of a missing value, before all others."""

MOST_NAMED = 3
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


def grouped(language: Language, most: int) -> RecordGroups:
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
    seen = [_counted(axis.places[piece.records], axis.last) for axis in axes]
    values = [len(found) for found, _ in seen]
    if max(values, default=0) < 2:
        return None
    number = values.index(max(values))
    last = _half(*seen[number])
    lower = axes[number].places[piece.records] <= last
    first, end = piece.spans.get(number, (MISSING, axes[number].last))
    return [
        _Piece(piece.records[lower], {**piece.spans, number: (first, last)}),
        _Piece(piece.records[~lower], {**piece.spans, number: (last + 1, end)}),
    ]


def _counted(places: Places, last: int) -> tuple[Places, Places]:
    """The places that occur, in order, and how often each does."""
    if last > 4 * len(places):  # counting them all would take longer than sorting these
        return np.unique(places, return_counts=True)
    counts = np.bincount(places - MISSING)
    found = np.flatnonzero(counts)
    return found + MISSING, counts[found]


def _half(places: Places, counts: Places) -> int:
    """The last value of the lower half: that after which the records are most evenly parted."""
    before = np.cumsum(counts)
    return int(places[np.argmin(np.abs(2 * before[:-1] - before[-1]))])


# Names ----------------------------------------------------------------------------------------


def _name(spans: Mapping[int, Span], axes: Sequence[Axis]) -> str:
    """A group in words, column by column.

    A value that no record of the group has may belong to it all the same.
    """
    return ", ".join(_range(axes[i], *spans[i]) for i in sorted(spans)) or "everybody"


def _range(axis: Axis, first: int, last: int) -> str:
    name, missing = axis.column.name, first == MISSING and axis.has_null
    if last == MISSING:
        return f"{name} missing"
    said = " or ".join(_between(axis, max(first, 0), last))
    return f"{said} or missing" if missing else said


def _between(axis: Axis, first: int, last: int) -> Iterator[str]:
    name, values = axis.column.name, axis.values
    if first == 0 and last == axis.last:
        yield f"any {name}"
    elif first == last:
        yield f"{name} = {values[first]}"
    elif not axis.ordered and last - first < MOST_NAMED:
        yield f"{name} = {values[first]}"
        yield from map(str, values[first + 1 : last + 1])
    elif not axis.ordered:
        yield f"{name} from {values[first]} to {values[last]}"
    elif first == 0:
        yield f"{name} <= {values[last]}"
    else:
        upper = "" if last == axis.last else f" <= {values[last]}"
        yield f"{values[first - 1]} < {name}{upper}" if upper else f"{name} > {values[first - 1]}"
