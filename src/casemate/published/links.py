"""What ties the secrets of one record together, whatever is published.

The values of a category exclude each other. A number past a cut is past every cut below it, and
it lies between the cuts around it; one that is missing is 0 here and past no cut.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from casemate.exact import Bound, Box
from casemate.published.system import Equations
from casemate.query.records import Category, Cut


@dataclass(frozen=True)
class Link:
    """A whole combination of columns that lies between two numbers (None: has no end)."""

    columns: tuple[int, ...]
    coefficients: tuple[int, ...]
    low: Bound
    high: Bound


@dataclass(frozen=True)
class Range:
    """Between what a number lies where it is there, and whether it is whole."""

    low: Bound
    high: Bound
    whole: bool


def with_zero(present: Range) -> tuple[Bound, Bound]:
    """Between what a number lies that counts as 0 where it is missing."""
    low = None if present.low is None else min(present.low, Fraction(0))
    high = None if present.high is None else max(present.high, Fraction(0))
    return low, high


def reach(cut: Cut, present: Range, missing: bool) -> tuple[Fraction, Fraction]:
    """Whether a number in its range may be before a cut (0) or past it (1)."""
    before = missing or (cut.value is not None and not _all_past(cut, present))
    past = cut.value is None or present.high is None or first(cut, present.whole) < present.high
    past = past or cut.holds(present.high)
    return Fraction(not before), Fraction(past)


def _all_past(cut: Cut, present: Range) -> bool:
    return present.low is not None and cut.holds(present.low)


@dataclass(frozen=True)
class LinkedColumns:
    """The columns of one secret of one record."""

    values: tuple[int, ...]
    cuts: tuple[tuple[Cut, int], ...]
    number: int | None


def secrets(equations: Equations) -> list[LinkedColumns]:
    """The columns by the secret and the record that they are about; cuts in their order."""
    found: dict[tuple[int, str], list[int]] = {}
    pairs = zip(equations.record.tolist(), equations.unknown.tolist(), strict=True)
    for column, (record, which) in enumerate(pairs):
        found.setdefault((record, equations.unknowns[which].column), []).append(column)
    return [_secret(equations, columns) for columns in found.values() if len(columns) > 1]


def _secret(equations: Equations, columns: Sequence[int]) -> LinkedColumns:
    kinds = [(equations.unknowns[int(equations.unknown[c])].category, c) for c in columns]
    cuts = [(kind, column) for kind, column in kinds if isinstance(kind, Cut)]
    return LinkedColumns(
        tuple(column for kind, column in kinds if isinstance(kind, Category)),
        tuple(sorted(cuts, key=lambda pair: order(pair[0]))),
        next((column for kind, column in kinds if kind is None), None),
    )


def order(cut: Cut) -> tuple[bool, Fraction, bool]:
    """Where a cut stands among the others: being there at all comes first."""
    return cut.value is not None, cut.value or Fraction(0), cut.strict


def links(secret: LinkedColumns, box: Box, present: Range | None) -> Iterator[Link]:
    """What holds among the columns of one secret; `present` is about its number."""
    if len(secret.values) > 1:
        yield Link(secret.values, (1,) * len(secret.values), Fraction(0), Fraction(1))
    for (_, first), (_, second) in pairwise(secret.cuts):
        yield Link((first, second), (1, -1), Fraction(0), None)
    open_cuts = [pair for pair in secret.cuts if box.low[pair[1]] != box.high[pair[1]]]
    if secret.number is not None and present is not None and open_cuts:
        pieces = _pieces(open_cuts, present)
        columns = [column for _, column in open_cuts]
        yield from _between(secret.number, columns, pieces)


Piece = tuple[Bound, Bound]


def _pieces(cuts: Sequence[tuple[Cut, int]], present: Range) -> list[Piece]:
    """The least and the greatest number before the first cut, and from each cut to the next."""
    missing = any(cut.value is None for cut, _ in cuts)
    starts = [_start(cut, present) for cut, _ in cuts]
    ends = [last(cut, present.whole) for cut, _ in cuts if cut.value is not None]
    lows = [Fraction(0) if missing else present.low, *starts]
    highs = [*([Fraction(0)] if missing else []), *ends, present.high]
    return list(zip(lows, highs, strict=True))


def _start(cut: Cut, present: Range) -> Bound:
    """The least number past a cut that is possible."""
    if cut.value is None or present.low is None:
        return present.low if cut.value is None else first(cut, present.whole)
    return max(present.low, first(cut, present.whole))


def first(cut: Cut, whole: bool) -> Fraction:
    """The least number past a cut, or where those begin."""
    value = cut.value or Fraction(0)
    return Fraction(next_whole(value, cut.strict)) if whole else value


def next_whole(value: Fraction, past: bool) -> int:
    """The first whole number that is at least a value, or past it."""
    return math.floor(value) + 1 if past else math.ceil(value)


def last(cut: Cut, whole: bool) -> Fraction:
    """The greatest number that is not past a cut, or where those end."""
    return first(cut, whole) - 1 if whole else cut.value or Fraction(0)


def _between(number: int, columns: Sequence[int], pieces: Sequence[Piece]) -> Iterator[Link]:
    """That a number lies in the piece that its cuts say, from below and from above."""
    for sign, ends in ((1, [low for low, _ in pieces]), (-1, [high for _, high in pieces])):
        known = [end for end in ends if end is not None]
        if len(known) < len(ends):
            continue
        scale = math.lcm(*(end.denominator for end in known))
        steps = [int((after - before) * scale) for before, after in pairwise(known)]
        used = [(column, -sign * step) for column, step in zip(columns, steps, strict=True) if step]
        yield Link(
            (number, *(column for column, _ in used)),
            (sign * scale, *(step for _, step in used)),
            sign * known[0] * scale,
            None,
        )
