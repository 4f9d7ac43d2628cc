"""What extremes, medians and comparisons are about, and everything that they meet in sums.

A node is a secret of one record: a column of the equations, or a number that only extremes and
medians are about. Two nodes belong together when a sum, an extreme, a median or a comparison links
them; what is in no part with an extreme, a median or a comparison is decided without them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.published.knowledge import Knowledge, about_people, prior_of
from casemate.published.links import Range
from casemate.published.truth import true_values
from casemate.query.cuts import Cut
from casemate.query.linear import Unknown
from casemate.solve.box import Bound
from casemate.solve.order_question import Question
from casemate.solve.second import components
from casemate.solve.system import System


@dataclass(frozen=True)
class Node:
    """A secret of the record at a position, and its column in the equations, if it has one."""

    place: int
    unknown: Unknown
    column: int | None


@dataclass(frozen=True)
class Asked:
    """A question whose members are nodes, and the statement of an extreme or a median."""

    question: Question
    query: int | None = None


@dataclass(frozen=True)
class OpenRow:
    """Columns with their coefficients, and totals that they cannot have."""

    terms: tuple[tuple[int, int], ...]
    excluded: frozenset[Bound]


class Nodes:
    """The nodes of a case: its columns, and behind them the numbers that are added."""

    def __init__(self, case: Case) -> None:
        self.case, equations = case, case.equations
        self._count = equations.system.columns
        self._added: list[tuple[str, int]] = []
        self._about: dict[str, Knowledge] = {}
        names = [u.column if u.category is None else None for u in equations.unknowns]
        pairs = zip(equations.unknown.tolist(), equations.record.tolist(), strict=True)
        self._numbers = {
            (name, record): column
            for column, (which, record) in enumerate(pairs)
            if (name := names[which]) is not None
        }

    def __len__(self) -> int:
        return self._count + len(self._added)

    def number(self, name: str, place: int) -> int:
        """The node of a private number of the record at a position."""
        node = self._numbers.setdefault((name, place), len(self))
        if node == len(self):
            self._added.append((name, place))
        return node

    def node(self, which: int) -> Node:
        """What a node stands for."""
        if which >= self._count:
            name, place = self._added[which - self._count]
            return Node(place, Unknown(name), None)
        return Node(int(self.case.equations.record[which]), self.case.unknown(which), which)

    def of(self, name: str) -> list[int]:
        """The nodes that are this private number of some record."""
        return [node for (column, _), node in self._numbers.items() if column == name]

    def prior(self, which: int) -> Range:
        """What is known of a node before anything is published."""
        box, node = self.case.box, self.node(which)
        if node.column is not None:
            column = node.column
            return Range(box.low[column], box.high[column], box.integer[column])
        name = node.unknown.column
        if name not in self._about:
            people = self.case.equations.people
            self._about[name] = about_people(name, self.case.knowledge, people)
        record = self.case.equations.people.record(node.place)
        return Range(*prior_of(name, record, self.case.policy, self._about[name]))

    def true(self, column: int) -> Fraction:
        """The table's own value of a column."""
        return self._truth[column]

    @cached_property
    def _truth(self) -> dict[int, Fraction]:
        equations = self.case.equations
        return true_values(equations, range(equations.system.columns), self.case.source)

    # Comparisons ------------------------------------------------------------------------------

    @cached_property
    def cuts(self) -> list[int]:
        """The columns that say whether a number is past a cut, where bounds do not say it all.

        Whole numbers between bounds are tied to their cuts by linear equations. Of other numbers
        those leave open whether the cut itself is past.
        """
        box = self.case.box
        cut = np.array([_is_cut(each) for each in self.case.equations.unknowns], np.bool_)
        if not cut.any():
            return []
        found = []
        for column in np.flatnonzero(cut[self.case.equations.unknown]).tolist():
            number = self._number_of(column)
            bounded = box.low[number] is not None and box.high[number] is not None
            if not (box.integer[number] and bounded):
                found.append(column)
        return found

    def steps(self) -> Iterator[Asked]:
        """What the cuts say of their numbers; of a number that may be missing, nothing simple."""
        for column in self.cuts:
            number, cut = self._number_of(column), self.case.unknown(column).category
            if isinstance(cut, Cut) and cut.value is not None and not self.may_be_missing(number):
                yield Asked(Question.step(number, column, cut.value, cut.strict))

    @cached_property
    def _stepped(self) -> frozenset[int]:
        """The numbers that steps are about."""
        return frozenset(int(each.question.members[0]) for each in self.steps())

    def _number_of(self, column: int) -> int:
        place = int(self.case.equations.record[column])
        return self.number(self.case.secret(column), place)

    def may_be_missing(self, node: int) -> bool:
        """Whether a node is a number that counts as 0 where it is missing."""
        found = self.node(node)
        declared = self.case.policy.column(found.unknown.column)
        return found.unknown.category is None and declared is not None and declared.nullable

    # Parts ------------------------------------------------------------------------------------

    def parts(self, asked: Sequence[Asked]) -> NDArray[np.int64]:
        """The part of each node, or -1 where extremes, medians and comparisons do not reach."""
        system = self.case.region.system
        sizes = [len(each.question.members) for each in asked]
        rows = np.repeat(np.arange(system.rows, system.rows + len(asked)), sizes)
        members = [each.question.members for each in asked]
        column = np.concatenate([system.column, *members]).astype(np.int64)
        linked = System(
            system.rows + len(asked),
            len(self),
            np.concatenate([system.row, rows]).astype(np.int64),
            column,
            np.ones(len(column), np.int64),
        )
        label = components(linked, np.ones(len(self), np.bool_))
        touched = np.unique(np.concatenate([label[:0], *(label[each] for each in members)]))
        touched = np.union1d(touched, label[self.cuts])
        return np.where(np.isin(label, touched), label, -1)

    def sums(self, wanted: NDArray[np.bool_]) -> tuple[list[Asked], bool]:
        """The equations about wanted columns as questions, and whether one of them is none."""
        found, unsure = [], False
        region, published = self.case.region, self.case.equations.system.rows
        for row, columns, factors in self._rows(wanted):
            if row >= published and self._stepped.intersection(columns.tolist()):
                continue  # steps say the same, and more exactly
            low, high = region.low[row], region.high[row]
            if low is None:
                low = self._furthest(columns, factors, up=False)
            if high is None:
                high = self._furthest(columns, factors, up=True)
            if low is not None and high is not None:
                found.append(Asked(Question("sum", columns, low, high, coefficients=factors)))
            elif row < published:
                unsure = True
        return found, unsure

    def open_rows(self, wanted: NDArray[np.bool_]) -> list[OpenRow]:
        """The equations with an end that would have been shown as another number."""
        equations = self.case.equations
        found = []
        for row, columns, factors in self._rows(wanted):
            ends = (False, False)
            if row < equations.system.rows:
                ends = equations.open_ends[row]
            pair = zip((equations.low, equations.high), ends, strict=True)
            excluded = frozenset(side[row] for side, is_open in pair if is_open)
            if excluded:
                terms = tuple(zip(columns.tolist(), factors.tolist(), strict=True))
                found.append(OpenRow(terms, excluded))
        return found

    def _rows(
        self, wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[Any]]]:
        system = self.case.region.system
        order = np.argsort(system.row, kind="stable")
        ends = np.searchsorted(system.row[order], np.arange(system.rows + 1))
        for row in np.unique(system.row[wanted[system.column]]).tolist():
            entries = order[ends[row] : ends[row + 1]]
            yield row, system.column[entries], system.value[entries].astype(object)

    def _furthest(self, columns: NDArray[np.int64], factors: NDArray[Any], up: bool) -> Bound:
        """How far the bounds let an equation go."""
        box, total = self.case.box, Fraction(0)
        for column, factor in zip(columns.tolist(), factors.tolist(), strict=True):
            end = (box.high if (factor > 0) == up else box.low)[column]
            if end is None:
                return None
            total += factor * end
        return total


def _is_cut(unknown: Unknown) -> bool:
    return isinstance(unknown.category, Cut)
