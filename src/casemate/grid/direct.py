"""A statement measured on the protected table itself, not snapped to the grid.

Guarantee  Every number is a whole one: counts, and sums of what each row adds after it was rounded
           to a public unit and clamped to public bounds, in SQL; NULL adds nothing. Rows of one
           person are bounded first. The cells of a part are apart, so a person's rows move its
           numbers by no more than `Sensitivity` says. What is proven of a sum is about the rounded
           numbers; a unit is at most 2^-30 of the largest of them, or exact for whole numbers.
Cost       One grouped statement for each grouping, with the same size whatever the data.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

from casemate.grid.product import Product
from casemate.grid.question import Relation
from casemate.grid.readings import Estimate, Origin, Outcome, ProofSource
from casemate.grid.rows import SelectLayout, ShownTable, show
from casemate.query.engines import PROTECTED, engine_of, group_by, render, rows
from casemate.query.language import (
    TRUE,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    columns_of,
)
from casemate.query.snapping import (
    Condition,
    StepFunction,
    StepKeys,
    Summand,
    code,
    grouped_first,
    reference_to,
)
from casemate.table import ColumnType, Universe
from casemate.table.sources import Frame, Source, bound_contribution, quote_name

ONE = Literal(1, ColumnType.INTEGER)
ZERO = Literal(0, ColumnType.INTEGER)


@dataclass(frozen=True)
class MeasuredPart:
    """One part of a direct measurement: what is added up over which rows, by which groups.

    Without a summand rows are counted. With `ranked` they are counted by step of that column, too;
    rows that have none are left out.
    """

    keys: StepKeys
    condition: Condition
    summand: Summand | None = None
    unit: Fraction = Fraction(1)
    ranked: StepFunction | None = None

    @property
    def coded(self) -> tuple[StepFunction, ...]:
        """What rows are grouped by: keys as numbers, and the step that is ranked by."""
        return (*self.keys.functions, *([] if self.ranked is None else [self.ranked]))

    @property
    def width(self) -> int:
        """How many cells a group has."""
        steps = () if self.ranked is None else self.ranked.results
        return 1 + max((each for each in steps if isinstance(each, int)), default=0)

    @property
    def size(self) -> int:
        """How many cells there are; public."""
        return len(self.keys.groups) * self.width

    @property
    def reads(self) -> frozenset[str]:
        """The columns that it depends on."""
        added = () if self.summand is None else columns_of(self.summand.expression)
        functions = (*self.coded, *self.condition.functions)
        return frozenset(
            [*(each.name for each in functions), *(each.column.name for each in added)]
        )

    @property
    def span(self) -> tuple[int, int]:
        """The least and the most that one row adds to a cell, nothing included."""
        if self.summand is None:
            return 0, 1
        return min(self.summand.low, 0), max(self.summand.high, 0)


@dataclass(frozen=True)
class Sensitivity:
    """How far one person moves the cells of a part: in all, and in squared Euclidean distance."""

    in_all: Fraction
    squared: Fraction

    @classmethod
    def of(cls, part: MeasuredPart, relation: Relation) -> "Sensitivity":
        """Rows that come or go change one cell each; rows that become others change two, or one
        by the whole span."""
        low, high = part.span
        largest, most = max(-low, high, 1), relation.rows
        if not relation.exchanged:
            return cls(Fraction(most * largest), Fraction(most * largest) ** 2)
        inside = max(high - low, 1)
        if part.size == 1:
            return cls(Fraction(most * inside), Fraction(most * inside) ** 2)
        apart = 2 * largest**2
        return cls(Fraction(2 * most * largest), Fraction(most**2 * max(apart, inside**2)))


@dataclass(frozen=True)
class Spread:
    """What is known of the noise on a number: its typical size, and what it stays within."""

    error: float
    width: float | None = None
    session: float | None = None


Noise = Callable[[int, int], Spread]
"""By part and by how many of its noised cells were added up."""


@dataclass(frozen=True)
class PartSource:
    """The measured part that a part of the rows is read from, and what its unit is worth there.

    Without a part it is zero in all its cells: a direct measurement leaves no slack.
    """

    part: int | None
    size: int
    worth: Fraction = Fraction(1)


EXACT_ZERO = Estimate(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, proof=ProofSource.NOISE)


@dataclass(frozen=True, eq=False)
class Direct:
    """A statement as parts to be measured, and the way back to its rows.

    `origins` says where each part that rows are made of comes from. `on_grid` has for each
    measured part, where it counts whole cells of the grid, what each of its cells counts there.
    """

    universe: Universe
    relation: Relation
    parts: tuple[MeasuredPart, ...]
    together: int
    origins: tuple[PartSource, ...] = field(repr=False)
    layouts: tuple[SelectLayout, ...] = field(repr=False)
    on_grid: tuple[tuple[Product, ...] | None, ...] = field(repr=False, default=())
    notes: tuple[str, ...] = ()
    limit: int | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of cells of each part; public."""
        return tuple(part.size for part in self.parts)

    @property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """How far one person moves each part."""
        return tuple(Sensitivity.of(part, self.relation) for part in self.parts)

    @property
    def reads(self) -> frozenset[str]:
        """The columns that it depends on."""
        return frozenset[str]().union(*(part.reads for part in self.parts))

    def cells(self, source: Source, key: bytes | None = None) -> list[list[int]]:
        """The exact cells of each part: never an answer."""
        kept = bound_contribution(self.universe, source, key)
        batches: dict[object, list[int]] = defaultdict(list)
        for place, part in enumerate(self.parts):
            batches[part.keys, part.ranked].append(place)
        found: dict[int, list[int]] = {}
        for batch in batches.values():
            parts = [self.parts[place] for place in batch]
            frame = kept.read(_statement(parts, kept))
            places = _places(frame, parts[0])
            for i, (place, part) in enumerate(zip(batch, parts, strict=True)):
                found[place] = _scatter_sums(frame, f"n{i}", places, part.size)
        return [found[place] for place in range(len(self.parts))]

    def outcome(self, noised: Sequence[Sequence[int]], noise: Noise) -> Outcome:
        """Estimates of each part from its noised cells; those of ranks are added up along them."""
        if [len(each) for each in noised] != list(self.sizes):
            raise ValueError("there must be a noised number for each cell of each part")
        parts = []
        for place, (part, cells) in enumerate(zip(self.parts, noised, strict=True)):
            spreads = [noise(place, added) for added in range(1, part.width + 1)]
            parts.append(tuple(_estimates(cells, spreads)))
        return Outcome(tuple(parts), Origin.MEASURED)

    def rows(self, outcome: Outcome, *, all_groups: bool = True) -> ShownTable:
        """The rows of the statement, from an outcome of these parts."""
        estimates = [
            [EXACT_ZERO] * each.size
            if each.part is None
            else [_scale(number, each.worth) for number in outcome.parts[each.part]]
            for each in self.origins
        ]
        return show(self.layouts, self.limit, estimates, all_groups=all_groups)


def _estimates(cells: Sequence[int], spreads: Sequence[Spread]) -> list[Estimate]:
    """The numbers of one part, group after group."""
    width = len(spreads)
    found = []
    for start in range(0, len(cells), width):
        sums = accumulate(cells[start : start + width])
        found += [_estimate(value, spread) for value, spread in zip(sums, spreads, strict=True)]
    return found


def _estimate(value: int, spread: Spread) -> Estimate:
    def around(width: float | None) -> tuple[float | None, float | None]:
        return (None, None) if width is None else (value - width, value + width)

    session = around(spread.session)
    return Estimate(
        float(value), *around(spread.width), spread.error, *session, proof=ProofSource.NOISE
    )


def _scale(estimate: Estimate, unit: Fraction) -> Estimate:
    if unit == 1:
        return estimate
    worth, numbers = float(unit), {**vars(estimate), "proof": None, "ratio": None}.items()
    scaled: dict[str, Any] = {n: None if each is None else each * worth for n, each in numbers}
    return replace(Estimate(**scaled), proof=estimate.proof)


# Reading ----------------------------------------------------------------------------------------


def _statement(parts: Sequence[MeasuredPart], source: Source) -> str:
    """What is added up by numbers of keys; columns of few values are grouped first, coded after."""
    coded = {f"k{i}": each for i, each in enumerate(parts[0].coded)}
    first = grouped_first(list({each.name: each.pieces for each in coded.values()}.values()))
    few = {each.name: f"v{i}" for i, each in enumerate(first)}
    by: dict[str, Expression] = {few[each.name]: reference_to(each) for each in first}
    by |= {name: _code(each) for name, each in coded.items() if each.name not in few}
    shared = all(part.condition == parts[0].condition for part in parts)
    added, totals = _totals(parts, shared)
    where = parts[0].condition.expression if shared else TRUE
    by_value = group_by(rows(source, (), where, {**by, **added}), list(by), totals)
    if not few:
        return by_value
    after = {
        name: name if each.name not in few else _code_after(each, few[each.name], source)
        for name, each in coded.items()
    }
    return _merge_groups(by_value, after, list(totals))


def _code(function: StepFunction, reference: ColumnRef | None = None) -> Expression:
    """The number that a row has; -1 for none."""
    labels = [each if isinstance(each, int) else -1 for each in function.results]
    return code(function.pieces, reference, labels)


def _code_after(function: StepFunction, name: str, source: Source) -> str:
    """The number of a group of rows, where the column goes by another name."""
    reference = reference_to(function.pieces)
    renamed = replace(reference, column=replace(reference.column, name=name))
    return render(_code(function, renamed), engine_of(source))


def _totals(
    parts: Sequence[MeasuredPart], shared: bool
) -> tuple[dict[str, Expression], dict[str, str]]:
    """What each row adds to the parts, and the totals of it; where rows add 1, they are counted."""
    added: dict[str, Expression] = {}
    totals: dict[str, str] = {}
    for i, part in enumerate(parts):
        if shared and part.summand is None:
            totals[f"n{i}"] = "count(*)"
        else:
            added[f"a{i}"] = _row_contribution(part, shared)
            totals[f"n{i}"] = f"coalesce(sum(a{i}), 0)"
    return added, totals


def _row_contribution(part: MeasuredPart, shared: bool) -> Expression:
    """What a row adds to a part; NULL for nothing."""
    units = ONE if part.summand is None else part.summand.units
    if shared:
        return units
    return Call(Operation.CASE, (part.condition.expression, units, ZERO), ColumnType.INTEGER)


def _merge_groups(by_value: str, keys: Mapping[str, str], totals: Sequence[str]) -> str:
    """The totals again, of groups that are one group once their keys are numbers."""
    shown = [f"{written} AS {name}" for name, written in keys.items()]
    inner = f"SELECT {', '.join([*shown, *totals])} FROM ({by_value}) AS {quote_name(PROTECTED)}"
    return group_by(inner, list(keys), {name: f"sum({name})" for name in totals})


def _places(frame: Frame, part: MeasuredPart) -> list[int | None]:
    """The cell of each row of an answer; None where it has none."""
    columns = [[int(each) for each in frame[f"k{i}"].values] for i in range(len(part.coded))]
    count = len(frame["n0"].values)
    steps = [0] * count if part.ranked is None else columns.pop()
    groups = {numbers: place for place, numbers in enumerate(part.keys.groups)}
    found = [groups.get(key) for key in zip(*columns, strict=True)] if columns else [0] * count
    return [
        None if group is None or step < 0 else group * part.width + step
        for group, step in zip(found, steps, strict=True)
    ]


def _scatter_sums(frame: Frame, name: str, places: Sequence[int | None], size: int) -> list[int]:
    cells = [0] * size
    for place, number in zip(places, frame[name].values, strict=True):
        if place is not None:
            cells[place] += int(number)
    return cells
