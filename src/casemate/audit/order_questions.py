"""Published extremes and medians as questions about nodes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order_nodes import Asked, Nodes
from casemate.audit.order_people import Copies
from casemate.published.cells import exact, shown_cells
from casemate.published.people import check_constant
from casemate.published.publication import Column
from casemate.published.truth import column_values
from casemate.query.aggregate import Aggregate, Function
from casemate.query.answers import Key
from casemate.query.lineage import Cell, Lineage, lineage
from casemate.solve.order_question import Kind, Question

KINDS: dict[Function, Kind] = {
    Function.MIN: "min",
    Function.MAX: "max",
    Function.MEDIAN: "median",
}


def name_of(column: Column) -> str:
    """The private number of which a column shows an extreme or a median."""
    (name,) = _aggregate(column).private_argument
    return name


def _aggregate(column: Column) -> Aggregate:
    return column.select.aggregates[column.form.weights[0][0]]


class Extremes:
    """The extremes and medians of one private number."""

    def __init__(self, name: str, nodes: Nodes) -> None:
        self.name, self._nodes, case = name, nodes, nodes.case
        people, known = case.equations.people, column_values(name, case.source)
        check_constant([name], people, case.policy, case.source)
        records = map(people.record, range(len(people.records)))
        self.truth = [exact(known[record] or 0) for record in records]
        self._copies = Copies(name, people)

    @property
    def tied(self) -> Mapping[int, int]:
        """The rows that repeat another row of the same person, in medians."""
        return self._copies.tied

    def questions(self) -> Iterator[Asked]:
        """What was published, and that a value that counts twice is the same twice."""
        case = self._nodes.case
        columns = [each for each in case.publication.ordered if name_of(each) == self.name]
        needed = list(dict.fromkeys(map(_aggregate, columns)))
        members = _Members(needed, lineage(needed, case.source), self._copies)
        for column in columns:
            for question in self._of(column, members):
                yield Asked(self._about_nodes(question), column.query)
        for tie in self._copies.ties():
            yield Asked(self._about_nodes(tie))

    def _of(self, column: Column, members: "_Members") -> Iterator[Question]:
        """One question for each shown cell, with the answer that was given, or the table's."""
        aggregate, table = _aggregate(column), np.array(self.truth, object)
        for cell in shown_cells(column.select, self._nodes.case.source):
            inside = members.of(aggregate, cell.key)
            if len(inside):
                # of a single record every one of these is its value
                kind = KINDS[aggregate.function] if len(inside) > 1 else "max"
                asked = Question(kind, inside, 0, 0)
                given = column.answer(cell.key)
                shown = exact(asked.answer(table) if given is None else given)
                yield replace(asked, low=shown - column.within, high=shown + column.within)

    def _about_nodes(self, question: Question) -> Question:
        nodes = [self._nodes.number(self.name, place) for place in question.members.tolist()]
        return replace(question, members=np.array(nodes, np.int64))


class _Members:
    """The records behind each cell of some aggregates."""

    def __init__(self, aggregates: Sequence[Aggregate], found: Lineage, copies: Copies) -> None:
        self._index = {aggregate: i for i, aggregate in enumerate(aggregates)}
        self._found, self._copies = found, copies
        order = np.argsort(found.cell, kind="stable")
        ends = np.searchsorted(found.cell[order], np.arange(len(found.cells) + 1))
        self._entries = {c: order[ends[i] : ends[i + 1]] for i, c in enumerate(found.cells)}

    def of(self, aggregate: Aggregate, key: Key) -> NDArray[np.int64]:
        """The positions of the records in one cell, or of the people where one value is theirs."""
        entries = self._entries.get(Cell(self._index[aggregate], key), self._found.cell[:0])
        return self._copies.members(KINDS[aggregate.function], self._found.record[entries])
