"""The facts over classes as a linear program and as an integer program.

`ClassModel` has the rows, `Relaxation` proves bounds by multipliers, and `WholeModel` says where a
second table may be.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.audit.classes.changes import FactCheck
from casemate.audit.classes.propagation import Propagation
from casemate.exact import (
    Bound,
    Box,
    LinearProgram,
    Region,
    Scaled,
    Status,
    System,
    integer_array,
    load_highs,
    nearest_fractions,
)

SIMPLE_DENOMINATOR = 1000
"""The largest denominator of multipliers that are tried before exact ones."""

MOVED_TOLERANCE = 1e-4
"""A column that a program moves by more, in its doubles, is not worth a proof."""

WHOLE_MODEL_SIZE = 1000.0
"""The largest total is about this in a whole model's doubles."""

WHOLE_MODEL_TOLERANCE = 1e-6
"""A column moved by less did not move."""

Entries = dict[int, int | Fraction]


@dataclass(frozen=True, eq=False)
class ClassModel:
    """Totals, numbers of values, and how many have an extreme, as differences from the truth.

    Column c is the total of a class, column `count + c` how many of it have a value; `tops` and
    `bottoms` are the columns of how many are at its ends. The first rows are the linear facts, then
    come the extremes in `attained`.
    """

    count: int
    rows: tuple[tuple[Entries, Bound, Bound], ...]
    low: tuple[Bound, ...]
    high: tuple[Bound, ...]
    tops: dict[int, int]
    bottoms: dict[int, int]
    attained: tuple[int, ...]
    linear_rows: int

    @classmethod
    def of(
        cls,
        ranges: Propagation,
        check: FactCheck,
        reach: Fraction | None = None,
        *,
        as_there: bool = False,
    ) -> "ClassModel":
        """The model of all facts; with `reach` no range goes further from the truth than that.

        With `as_there` just those have a value who have one in the truth.
        """
        return _ModelBuilder(ranges, check, reach, as_there=as_there).model()

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.low)


class _ModelBuilder:
    """Puts the rows and columns of a model together."""

    def __init__(
        self, ranges: Propagation, check: FactCheck, reach: Fraction | None, *, as_there: bool
    ) -> None:
        self._ranges, self._classes, self._check = ranges, ranges.classes, check
        there = self._classes.there.tolist()
        self._least, self._most = (there, there) if as_there else (ranges.least, ranges.most)
        self._count = len(self._classes)
        self._width = 2 * self._count
        self._ends: dict[str, dict[int, int]] = {"max": {}, "min": {}}
        self._attained: list[int] = []
        self._low, self._high = list(ranges.low), list(ranges.high)
        if reach is not None:
            for which in range(self._count):
                low, high = self._low[which], self._high[which]
                value = self._classes.value(which) or Fraction(0)
                near = [each for each in (low, high, value) if each is not None]
                self._low[which] = min(near) - reach if low is None else low
                self._high[which] = max(near) + reach if high is None else high

    def model(self) -> ClassModel:
        """The rows of facts, then those of classes."""
        rows = [self._linear(number) for number in range(len(self._classes.rows))]
        rows += list(self._extremes())
        rows += [row for which in range(self._count) for row in self._class_rows(which)]
        low, high = self._box()
        return ClassModel(
            self._count,
            tuple(rows),
            tuple(low),
            tuple(high),
            self._ends["max"],
            self._ends["min"],
            tuple(self._attained),
            len(self._classes.rows),
        )

    def _linear(self, number: int) -> tuple[Entries, Bound, Bound]:
        row, entries = self._classes.rows[number], Entries()
        for which, alpha, beta in zip(row.classes.tolist(), row.alpha, row.beta, strict=True):
            if alpha:
                entries[which] = alpha
            if beta and self._classes.may_miss[which]:
                entries[self._count + which] = beta
        total = self._check.totals[number]
        low, high = (None if e is None else e - total for e in (row.fact.low, row.fact.high))
        return entries, low, high

    def _extremes(self) -> Iterator[tuple[Entries, Bound, Bound]]:
        """At least one of those who can has each extreme."""
        ranges = self._ranges
        for number, each in enumerate(self._classes.orders):
            kind = each.fact.kind
            if kind == "median" or not each.fact.exact:
                continue
            able = [which for which in each.classes.tolist() if ranges.attains(which, each)]
            if any(ranges.low[w] == ranges.high[w] and ranges.least[w] > 0 for w in able):
                continue  # somebody has it in any case
            self._attained.append(number)
            yield {self._end_column(kind, which): 1 for which in able}, Fraction(1), None

    def _end_column(self, kind: str, which: int) -> int:
        columns = self._ends[kind]
        if which not in columns:
            columns[which] = self._width
            self._width += 1
        return columns[which]

    def _class_rows(self, which: int) -> Iterator[tuple[Entries, Bound, Bound]]:
        """The total of a class is between its ends, and further from one for each at the other."""
        classes, low, high = self._classes, self._low[which], self._high[which]
        total, there = classes.total[which], int(classes.there[which])
        top, bottom = self._ends["max"].get(which), self._ends["min"].get(which)
        presence = self._count + which if classes.may_miss[which] else None
        for end, other, column, lower in ((low, high, top, True), (high, low, bottom, False)):
            if end is None or (presence is None and column is None):
                continue
            entries: Entries = {which: 1}
            if presence is not None:
                entries[presence] = -end
            if column is not None and other is not None:
                entries[column] = end - other
            bound = end * there - total
            yield entries, bound if lower else None, None if lower else bound
        used: Entries = {each: 1 for each in (top, bottom) if each is not None}
        if used and low != high:
            if presence is not None:
                used[presence] = -1
            yield used, None, Fraction(there)

    def _box(self) -> tuple[list[Bound], list[Bound]]:
        classes = self._classes
        low: list[Bound] = [Fraction(0)] * self._width
        high: list[Bound] = [Fraction(0)] * self._width
        for which in range(self._count):
            total, there = classes.total[which], int(classes.there[which])
            least, most = self._least[which], self._most[which]
            a, b = self._low[which], self._high[which]
            if most == 0:
                low[which] = high[which] = -total
            else:
                low[which] = None if a is None else min(a * least, a * most) - total
                high[which] = None if b is None else max(b * least, b * most) - total
            low[self._count + which] = Fraction(least - there)
            high[self._count + which] = Fraction(most - there)
        for columns in self._ends.values():
            for which, column in columns.items():
                high[column] = Fraction(int(classes.size[which]))
        return low, high


class Relaxation:
    """The linear program of a model, in which numbers of people may be fractions."""

    def __init__(self, model: ClassModel) -> None:
        self._model = model
        self._scale = [
            math.lcm(1, *(Fraction(each).denominator for each in entries.values()))
            for entries, _, _ in model.rows
        ]
        scaled = list(zip(model.rows, self._scale, strict=True))
        row = np.repeat(np.arange(len(scaled)), [len(entries) for entries, _, _ in model.rows])
        column = np.array([c for entries, _, _ in model.rows for c in entries], np.int64)
        value = [
            int(each * scale) for (entries, _, _), scale in scaled for each in entries.values()
        ]
        low = tuple(None if end is None else end * scale for (_, end, _), scale in scaled)
        high = tuple(None if end is None else end * scale for (_, _, end), scale in scaled)
        system = System(len(scaled), model.width, row, column, integer_array(value))
        box = Box(model.low, model.high, (False,) * model.width)
        self._program = LinearProgram(Scaled.of(Region(system, box, low, high)))

    def multipliers(
        self, column: int, above: bool, deadline: float
    ) -> Iterator[tuple[dict[int, Fraction], dict[int, Fraction]]]:
        """Multipliers of linear facts and extremes for the least (or most) of a column.

        Simple ones first, then exact ones; none where the column can move.
        """
        costs = np.zeros(self._model.width)
        costs[column] = -1.0 if above else 1.0
        status, vertex = self._program.minimise(costs, deadline)
        if status is not Status.OPTIMAL or abs(vertex.value) > MOVED_TOLERANCE:
            return
        yield self._named(nearest_fractions(vertex.multipliers, SIMPLE_DENOMINATOR))
        exact = vertex.exact_multipliers({column: -1 if above else 1})
        if exact is not None:
            yield self._named(exact)

    def _named(
        self, multipliers: Sequence[Fraction]
    ) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
        """The multipliers of facts; those of ranges follow from them."""
        facts = [each * scale for each, scale in zip(multipliers, self._scale, strict=True)]
        linear = self._model.linear_rows
        extremes = zip(self._model.attained, facts[linear:], strict=False)
        return (
            {number: each for number, each in enumerate(facts[:linear]) if each},
            {number: each for number, each in extremes if each > 0},
        )


class WholeModel:
    """The same model with whole numbers of people, in doubles: where to look for second tables."""

    def __init__(self, model: ClassModel) -> None:
        self._model = model
        sizes = [
            abs(each) for side in (model.low, model.high) for each in side[: model.count] if each
        ]
        self.unit = float(max(sizes, default=1)) / WHOLE_MODEL_SIZE
        self._places = np.arange(model.width, dtype=np.int32)
        width, count = model.width, model.count
        factor = np.ones(width)
        factor[:count] = self.unit
        columns = np.array([c for entries, _, _ in model.rows for c in entries], np.int64)
        rows = np.repeat(np.arange(len(model.rows)), [len(entries) for entries, _, _ in model.rows])
        values = np.array([float(v) for entries, _, _ in model.rows for v in entries.values()])
        values = values * factor[columns]
        largest = np.ones(len(model.rows))
        np.maximum.at(largest, rows, np.abs(values))
        order = np.lexsort((rows, columns))
        starts = np.searchsorted(columns[order], np.arange(width + 1))
        ends = [
            np.array([absent if e is None else float(e) for e in side]) / scale
            for side, scale, absent in (
                (model.low, factor, -np.inf),
                (model.high, factor, np.inf),
                ([low for _, low, _ in model.rows], largest, -np.inf),
                ([high for _, _, high in model.rows], largest, np.inf),
            )
        ]
        self._highs = load_highs(
            np.zeros(width),
            (ends[0], ends[1], ends[2], ends[3]),
            (starts, rows[order], (values / largest[rows])[order]),
        )
        import highspy

        whole = np.arange(count, width, dtype=np.int32)
        kinds = np.full(len(whole), int(highspy.HighsVarType.kInteger), np.uint8)
        self._highs.changeColsIntegrality(len(whole), whole, kinds)

    def point(self, column: int, above: bool, seconds: float) -> NDArray[np.float64] | None:
        """A point in which a column is as far from the truth as found within some seconds."""
        costs = np.zeros(self._model.width)
        costs[column] = -1.0 if above else 1.0
        self._highs.changeColsCost(self._model.width, self._places, costs)
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + max(0.0, seconds))
        self._highs.run()
        found = self._highs.getSolution()
        point = np.array(found.col_value, np.float64)
        if not found.value_valid or abs(point[column]) < WHOLE_MODEL_TOLERANCE:
            return None
        return point
