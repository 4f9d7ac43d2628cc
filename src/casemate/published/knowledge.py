"""What everybody knows before anything is published: types, bounds, single values, and links.

The rank of the equations alone protects against somebody who thinks any number possible. Types and
bounds are public, so they always enter (`box_of`), and so does what ties the secrets of one record
together (`links`, `region_of`); `read_knowledge` reads what else is known as people write it, in
options and a CSV of records.
"""

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np

from casemate.errors import Misconfigured, shown_name
from casemate.exact import Bound, Box, Region, System, is_empty
from casemate.published.cell_secrets import integer_array
from casemate.published.equation_system import Equations
from casemate.published.people import People
from casemate.published.shown import exact
from casemate.query.language import Scalar
from casemate.query.records import Category, Cut, next_whole
from casemate.table import ColumnType, Policy


@dataclass(frozen=True)
class IntegerConstraint:
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


def links(secret: LinkedColumns, box: Box, present: Range | None) -> Iterator[IntegerConstraint]:
    """What holds among the columns of one secret; `present` is about its number.

    The values of a category exclude each other. A number past a cut is past every cut below it, and
    it lies between the cuts around it; one that is missing is 0 here and past no cut.
    """
    if len(secret.values) > 1:
        yield IntegerConstraint(secret.values, (1,) * len(secret.values), Fraction(0), Fraction(1))
    for (_, first), (_, second) in pairwise(secret.cuts):
        yield IntegerConstraint((first, second), (1, -1), Fraction(0), None)
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
    return next_whole(value, cut.strict) if whole else value


def last(cut: Cut, whole: bool) -> Fraction:
    """The greatest number that is not past a cut, or where those end."""
    return first(cut, whole) - 1 if whole else cut.value or Fraction(0)


def _between(
    number: int, columns: Sequence[int], pieces: Sequence[Piece]
) -> Iterator[IntegerConstraint]:
    """That a number lies in the piece that its cuts say, from below and from above."""
    for sign, ends in ((1, [low for low, _ in pieces]), (-1, [high for _, high in pieces])):
        known = [end for end in ends if end is not None]
        if len(known) < len(ends):
            continue
        scale = math.lcm(*(end.denominator for end in known))
        steps = [int((after - before) * scale) for before, after in pairwise(known)]
        used = [(column, -sign * step) for column, step in zip(columns, steps, strict=True) if step]
        yield IntegerConstraint(
            (number, *(column for column, _ in used)),
            (sign * scale, *(step for _, step in used)),
            sign * known[0] * scale,
            None,
        )


# The range and type of every secret -------------------------------------------------------------


@dataclass(frozen=True)
class Knowledge:
    """What is known beside the policy: other bounds, whole numbers, and ranges of records."""

    low: Fraction | None = None
    high: Fraction | None = None
    integer: bool = False
    known: Mapping[Scalar, tuple[Bound, Bound]] = field(default_factory=dict, repr=False)


def box_of(equations: Equations, policy: Policy, knowledge: Knowledge) -> Box:
    """The range and type of every secret before any answer is used."""
    about = _about(equations, knowledge)
    ends = [_prior(equations, column, policy, about) for column in range(equations.system.columns)]
    lows, highs, whole = zip(*ends, strict=True) if ends else ((), (), ())
    return Box(tuple(lows), tuple(highs), tuple(whole))


def _about(equations: Equations, knowledge: Knowledge) -> dict[str, Knowledge]:
    names = {unknown.column for unknown in equations.unknowns}
    return {name: about_people(name, knowledge, equations.people) for name in names}


def _present(
    equations: Equations, column: int, policy: Policy, about: Mapping[str, Knowledge]
) -> Range:
    """Between what the number of a column's record lies, where it is there."""
    name = equations.unknowns[equations.unknown[column]].column
    return Range(*prior_of(name, record_name(equations, column), policy, about[name]))


def _prior(
    equations: Equations, column: int, policy: Policy, about: Mapping[str, Knowledge]
) -> tuple[Bound, Bound, bool]:
    unknown = equations.unknowns[equations.unknown[column]]
    if isinstance(unknown.category, Category):
        return Fraction(0), Fraction(1), True
    present = _present(equations, column, policy, about)
    declared = policy.column(unknown.column)
    known = record_name(equations, column) in about[unknown.column].known
    missing = declared is not None and declared.nullable and not known
    if unknown.category is None:
        return (*(with_zero(present) if missing else (present.low, present.high)), present.whole)
    return (*reach(unknown.category, present, missing), True)


def about_people(name: str, knowledge: Knowledge, people: People) -> Knowledge:
    """What is known of the records, by their own names, as far as one column is concerned.

    Where the column is constant for each person, what is known of one row is known of all rows of
    the person.
    """
    owners = people.owners(name)
    found: dict[int, tuple[Bound, Bound]] = {}
    for record, (low, high) in knowledge.known.items():
        place = people.place(record)
        if place is None:
            raise Misconfigured(
                f"what is known is about record {shown_name(str(record))}, a record that is not in "
                f"the table; {_names_of_records(people)}"
            )
        for row in (place,) if owners is None else people.copies(name, int(owners[place])).tolist():
            before = found.get(row, (None, None))
            found[row] = tighter(before[0], low, max), tighter(before[1], high, min)
    return replace(knowledge, known={people.record(row): ends for row, ends in found.items()})


def _names_of_records(people: People) -> str:
    """What records are called."""
    first = people.record(0) if len(people.records) else None
    if first == 1:
        return f"records are rows below the header, from 1 to {len(people.records):,}"
    return "records are called by the table's key"


def prior_of(
    name: str, record: Scalar, policy: Policy, knowledge: Knowledge
) -> tuple[Bound, Bound, bool]:
    """The range of a private number of a record, and whether it is whole."""
    declared = policy.column(name)
    low, high = knowledge.low, knowledge.high
    if low is None and declared is not None and declared.low is not None:
        low = exact(declared.low)
    if high is None and declared is not None and declared.high is not None:
        high = exact(declared.high)
    whole = knowledge.integer or (declared is not None and declared.type is ColumnType.INTEGER)
    known = knowledge.known.get(record)
    if known is not None:
        low, high = tighter(low, known[0], max), tighter(high, known[1], min)
    if low is not None and high is not None and is_empty(low, high, whole):
        raise Misconfigured(
            f"what is known of {name} contradicts its bounds, or itself; correct one of them"
        )
    return low, high, whole


def record_name(equations: Equations, column: int) -> Scalar:
    """The identity of the record whose secret a column is."""
    return equations.people.record(int(equations.record[column]))


def tighter(one: Bound, other: Bound, choose: Callable[..., Fraction]) -> Bound:
    """The stronger of two bounds, either of which may be absent."""
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)


def region_of(equations: Equations, box: Box, policy: Policy, knowledge: Knowledge) -> Region:
    """The published numbers, and what ties the secrets of one record together."""
    system, about = equations.system, _about(equations, knowledge)
    extra: list[IntegerConstraint] = []
    for secret in secrets(equations):
        column = secret.number
        present = None if column is None else _present(equations, column, policy, about)
        extra += links(secret, box, present)
    lengths = [len(link.columns) for link in extra]
    rows = np.repeat(np.arange(system.rows, system.rows + len(extra)), lengths)
    columns = np.array([column for link in extra for column in link.columns], np.int64)
    coefficients = integer_array([factor for link in extra for factor in link.coefficients])
    widened = System(
        system.rows + len(extra),
        system.columns,
        np.concatenate([system.row, rows.astype(np.int64)]),
        np.concatenate([system.column, columns]),
        np.concatenate([system.value, coefficients]),
    )
    low = (*equations.low, *(link.low for link in extra))
    high = (*equations.high, *(link.high for link in extra))
    return Region(widened, box, low, high)


# As people write it: options, and a CSV of records ----------------------------------------------


def read_knowledge(known: Path | None, bounds: str | None, integer: bool) -> Knowledge:
    """Knowledge from `--known`, `--bounds` and `--integer`."""
    low, high = (None, None) if bounds is None else read_bounds(bounds)
    return Knowledge(low, high, integer, {} if known is None else read_known(known))


def read_bounds(text: str) -> tuple[Bound, Bound]:
    """LO:HI, either of which may be left out.

    >>> read_bounds("3:10.5")
    (Fraction(3, 1), Fraction(21, 2))
    """
    low, separator, high = text.partition(":")
    if not separator:
        raise Misconfigured(f"--bounds {text} is not LO:HI; write for example --bounds 0:100")
    ends = _end(low, text), _end(high, text)
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        raise Misconfigured(f"--bounds {text} is empty: the first end must not be above the second")
    return ends


def _end(text: str, whole: str) -> Bound:
    if not text.strip():
        return None
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise Misconfigured(
            f"--bounds {whole} is not LO:HI; write for example --bounds 0:100"
        ) from None


def share(text: str) -> Fraction:
    """A share such as 10% or 0.1.

    >>> share("10%"), share("0.25")
    (Fraction(1, 10), Fraction(1, 4))
    """
    try:
        number = Fraction(text.strip().removesuffix("%"))
    except (ValueError, ZeroDivisionError):
        raise Misconfigured(f"--protect {text} is not a share; write for example 10%") from None
    found = number / 100 if text.strip().endswith("%") else number
    if found < 0:
        raise Misconfigured(f"--protect {text} must not be negative; write for example 10%")
    return found


def read_known(path: Path) -> dict[Scalar, tuple[Bound, Bound]]:
    """A CSV `record,value` or `record,lo,hi`; what stands in it is never quoted in a message."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"{path} cannot be read; expected a CSV record,value") from None
    header = [cell.strip().lower() for cell in lines[0]] if lines else []
    if header not in (["record", "value"], ["record", "lo", "hi"]):
        raise Misconfigured(f"{path} must begin with record,value or record,lo,hi")
    known: dict[Scalar, tuple[Bound, Bound]] = {}
    for line, cells in enumerate(lines[1:], start=2):
        if cells:
            record, ends = _known_line(cells, len(header), f"{path}, line {line}")
            known[record] = ends
    return known


def _known_line(cells: list[str], width: int, where: str) -> tuple[Scalar, tuple[Bound, Bound]]:
    if len(cells) != width:
        raise Misconfigured(f"{where} has {len(cells)} cells; expected {width}")
    try:
        ends = [Fraction(cell.strip()) if cell.strip() else None for cell in cells[1:]]
    except (ValueError, ZeroDivisionError):
        raise Misconfigured(f"{where} holds something that is not a number") from None
    if all(end is None for end in ends):
        raise Misconfigured(f"{where} has no value; give one, or leave the line out")
    record = cells[0].strip()
    digits = record.removeprefix("-")
    whole = digits.isdecimal() and digits.isascii() and str(int(record)) == record
    name: Scalar = int(record) if whole else record
    return name, (ends[0], ends[-1])
