"""Extremes and medians beside sums: whose values they give away together.

Source     Source document 002, "Beyond linear queries"; the engines are `casemate.solve.order`.
Guarantee  An exposed value is proved; whoever is neither exposed nor shown to be free by a second
           table within the limit is undecided, and counts as not safe.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.audit.cells import exact, shown_cells
from casemate.audit.equations import Equations
from casemate.audit.knowledge import Knowledge, prior_of, record_of
from casemate.audit.publication import Column
from casemate.audit.truth import column_values
from casemate.query.aggregate import Aggregate, Function
from casemate.query.answers import Key
from casemate.query.expression import Scalar
from casemate.query.lineage import Cell, Lineage, lineage
from casemate.solve.order import audit_order
from casemate.solve.order_limit import Limit
from casemate.solve.order_question import Domain, Kind, Question
from casemate.solve.order_verdict import Exposed, Undecided
from casemate.table.schema import Policy
from casemate.table.source import Source

KINDS: dict[Function, Kind] = {
    Function.MIN: "min",
    Function.MAX: "max",
    Function.MEDIAN: "median",
}


@dataclass(frozen=True, eq=False)
class Ordered:
    """What extremes and medians add: values by record, with their proofs, and who is undecided."""

    column: str
    exposed: Mapping[int, tuple[Fraction, str]]
    undecided: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class OrderAudit:
    """The published extremes and medians, and the sums beside them, of one table."""

    columns: tuple[Column, ...]
    equations: Equations
    policy: Policy
    knowledge: Knowledge
    source: Source

    def run(self, limit: Limit | None = None) -> list[Ordered]:
        """Audit each private number of which an extreme or a median was published."""
        return [self._audit(name, limit) for name in dict.fromkeys(map(_name, self.columns))]

    def _audit(self, name: str, limit: Limit | None) -> Ordered:
        columns = [column for column in self.columns if _name(column) == name]
        needed = list(dict.fromkeys(map(_aggregate, columns)))
        found = lineage(needed, self.source)
        questions = list(sums(name, self.equations))
        places = range(len(found.records))
        records = [record_of(found.records, place) for place in places]
        known = column_values(name, self.source)
        truth = [exact(known[record] or 0) for record in records]
        members = _Members(needed, found)
        for column in columns:
            questions += _questions(column, members, truth, self.source)
        verdicts = audit_order(questions, self._domain(name, records), truth, limit=limit)
        asked = {int(each) for question in questions for each in question.members}
        exposed = {
            place: (Fraction(verdict.value), verdict.proof)
            for place, verdict in enumerate(verdicts.records)
            if isinstance(verdict, Exposed) and place in asked
        }
        undecided = tuple(place for place in verdicts.positions(Undecided) if place in asked)
        return Ordered(name, exposed, undecided)

    def _domain(self, name: str, records: Sequence[Scalar]) -> Domain:
        priors = [prior_of(name, record, self.policy, self.knowledge) for record in records]
        low = tuple(prior[0] for prior in priors)
        high = tuple(prior[1] for prior in priors)
        return Domain(low, high, integer=all(prior[2] for prior in priors))


def _name(column: Column) -> str:
    (name,) = _aggregate(column).private_argument
    return name


def _aggregate(column: Column) -> Aggregate:
    return column.select.aggregates[column.form.weights[0][0]]


def sums(name: str, equations: Equations) -> Iterable[Question]:
    """The equations that are about this private number alone, as questions."""
    system = equations.system
    mine = np.array([u.column == name and u.category is None for u in equations.unknowns])
    ours = mine[equations.unknown] if len(equations.unknown) else np.zeros(0, np.bool_)
    order = np.argsort(system.row, kind="stable")
    ends = np.searchsorted(system.row[order], np.arange(system.rows + 1))
    for row in range(system.rows):
        entries = order[ends[row] : ends[row + 1]]
        columns = system.column[entries]
        if len(columns) and ours[columns].all():
            factors = np.array([int(each) for each in system.value[entries]], object)
            low, high = equations.low[row], equations.high[row]
            yield Question("sum", equations.record[columns], low, high, coefficients=factors)


class _Members:
    """The records behind each cell of some aggregates."""

    def __init__(self, aggregates: Sequence[Aggregate], found: Lineage) -> None:
        self._aggregates, self._found = aggregates, found
        self._places = {cell: place for place, cell in enumerate(found.cells)}

    def of(self, aggregate: Aggregate, key: Key) -> NDArray[np.int64]:
        """The positions of the records in one cell."""
        place = self._places.get(Cell(self._aggregates.index(aggregate), key), -1)
        found: NDArray[np.int64] = self._found.record[self._found.cell == place]
        return found


def _questions(
    column: Column, members: _Members, truth: Sequence[Fraction], source: Source
) -> Iterable[Question]:
    """One question for each shown cell; its answer is what was given, or what the table gives."""
    aggregate, table = _aggregate(column), np.array(truth, object)
    for cell in shown_cells(column.select, source):
        inside = members.of(aggregate, cell.key)
        if len(inside):
            # of a single record every one of these is its value
            kind = KINDS[aggregate.function] if len(inside) > 1 else "max"
            asked = Question(kind, inside, 0, 0)
            given = asked.answer(table) if column.answer is None else column.answer
            shown = exact(given)
            yield replace(asked, low=shown, high=shown)
