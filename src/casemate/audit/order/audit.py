"""Extremes, medians and comparisons beside sums: whose values they give away together.

Source     Source document 002, "Beyond linear queries"; `decide` runs the engines.
Guarantee  An exposed value is proved; whoever is neither exposed nor shown to be free by a second
           table within the limit is undecided, and counts as not safe.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.order.case import ExposedValue, Free, Undecided, Verdicts, Witness
from casemate.audit.order.decide import audit_order
from casemate.audit.order.nodes import (
    Extremes,
    NodeQuestion,
    Nodes,
    OrderLog,
    audit_totals,
    name_of,
)
from casemate.audit.time_limit import Clock
from casemate.exact import Domain, Exact, OrderQuestion
from casemate.published import whole_answer
from casemate.query.records import Cut

Values = Mapping[int, tuple[Fraction, str]]
"""Values by position, each with the kind of its proof."""


@dataclass(frozen=True, eq=False)
class Ordered:
    """What extremes, medians and comparisons of one private number add, with their proofs.

    `exposed` has its values by record. Other secrets that it meets in sums are in `others`, by
    their columns in the equations; `covered` has all columns that were decided here.
    """

    column: str
    exposed: Values
    undecided: tuple[tuple[int, str], ...]  # by record and private column
    totals: Values  # of all rows of a person, by the first of them
    log: OrderLog
    tied: frozenset[int] = frozenset()  # positions that repeat another row of the same person
    witnesses: tuple[Witness, ...] = ()
    contradicted: tuple[int, ...] = ()  # statements whose given answers the table does not give
    others: Values = field(default_factory=dict)
    covered: frozenset[int] = frozenset()
    queries: frozenset[int] = frozenset()  # statements of which something was asked here


def by_order(case: Case, clock: Clock) -> list[Ordered]:
    """What extremes, medians and comparisons say, each private number with all that it meets."""
    cut = any(isinstance(each.category, Cut) for each in case.equations.unknowns)
    if not case.publication.ordered and not cut:
        return []
    nodes = Nodes(case)
    compared = (case.secret(column) for column in nodes.cuts)
    names = list(dict.fromkeys([*map(name_of, case.publication.ordered), *compared]))
    if not names:
        return []
    extremes = {name: Extremes(name, nodes) for name in names}
    asked = [each for name in names for each in extremes[name].questions()]
    asked += nodes.steps()
    part = nodes.parts(asked)
    return [
        _Share(nodes, extremes, name, mine).audit(asked, clock)
        for name, mine in _shares(nodes, names, part)
    ]


def _shares(
    nodes: Nodes, names: Sequence[str], part: NDArray[np.int64]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """For each number the nodes of its parts, save of those that an earlier number is in."""
    left = part >= 0
    for name in names:
        own = part[nodes.of(name)]
        mine = left & np.isin(part, own[own >= 0])
        left &= ~mine
        if mine.any():
            yield name, mine


class _Share:
    """The parts of one private number: its records' values first, and other secrets behind them."""

    def __init__(
        self,
        nodes: Nodes,
        extremes: Mapping[str, Extremes],
        name: str,
        mine: NDArray[np.bool_],
    ) -> None:
        self._nodes, self._extremes, self._name, self._mine = nodes, extremes, name, mine
        size = len(extremes[name].truth)
        self._position = np.full(len(nodes), -1, np.int64)
        self._own, self._extras = dict[int, int](), dict[int, int]()  # positions to nodes
        for which in np.flatnonzero(mine).tolist():
            node = nodes.node(which)
            if (node.unknown.column, node.unknown.category) == (name, None):
                self._own[node.place] = which
            else:
                self._extras[size + len(self._extras)] = which
        for place, which in (*self._own.items(), *self._extras.items()):
            self._position[which] = place

    def audit(self, asked: Sequence[NodeQuestion], clock: Clock) -> Ordered:
        """Audit everything in these parts together."""
        inside = [each for each in asked if self._mine[each.question.members[0]]]
        sums, unsure = self._nodes.sums(self._mine)
        log = self._log([*inside, *sums])
        verdicts = self._verdicts(log, clock)
        wrong = {inside[p].query if p < len(inside) else None for p in verdicts.contradicted}
        # of a sum that the table does not give, or that is no question, not all is known
        doubted = unsure or None in wrong or self._misses(log)
        people = self._nodes.case.equations.people
        totals, open_ = audit_totals(self._name, log, verdicts, people, clock.left)
        exposed, others = self._exposed(log, verdicts)
        undecided = self._undecided(log, verdicts, doubted) | {(p, self._name) for p in open_}
        return Ordered(
            self._name,
            exposed,
            tuple(sorted(undecided)),
            totals,
            log,
            frozenset(self._extremes[self._name].tied),
            verdicts.witnesses,
            tuple(sorted(query for query in wrong if query is not None)),
            others,
            frozenset(np.flatnonzero(self._mine).tolist()),
            frozenset(each.query for each in inside if each.query is not None),
        )

    def _exposed(self, log: OrderLog, verdicts: Verdicts) -> tuple[Values, Values]:
        """The values that are proved: of records, and of other columns of the equations."""
        found = {
            place: (Fraction(verdict.value), str(verdict.proof))
            for place, verdict in enumerate(verdicts.records)
            if isinstance(verdict, ExposedValue)
        }
        tied = self._extremes[self._name].tied
        own = [p for p in self._own if p in found and p not in tied and not log.settled(p)]
        columns = {place: node.column for place, node in log.extras.items() if place in found}
        others = {c: found[place] for place, c in columns.items() if c is not None}
        return {place: found[place] for place in own}, others

    def _log(self, asked: Sequence[NodeQuestion]) -> OrderLog:
        """The questions about positions, and what is known of each position."""
        nodes, places = self._nodes, {**self._own, **self._extras}
        truth: list[Exact] = [*self._extremes[self._name].truth, *[Fraction(0)] * len(self._extras)]
        low: list[Exact | None] = [None] * len(truth)
        high, whole = low.copy(), []
        for place, which in places.items():
            prior, truth[place] = nodes.prior(which), self._true(which)
            low[place], high[place] = prior.low, prior.high
            whole += [place] if prior.whole else []
        questions = [self._placed(each.question) for each in asked]
        integer = len(whole) == len(places)
        if integer:
            questions = list(map(whole_answer, questions))
        elif whole:
            questions.append(OrderQuestion.whole(whole))
        extras = {place: nodes.node(which) for place, which in self._extras.items()}
        return OrderLog(questions, Domain(tuple(low), tuple(high), integer), truth, extras)

    def _true(self, which: int) -> Fraction:
        node = self._nodes.node(which)
        if node.column is None:
            return self._extremes[node.unknown.column].truth[node.place]
        return self._nodes.true(node.column)

    def _placed(self, question: OrderQuestion) -> OrderQuestion:
        return replace(question, members=self._position[question.members])

    def _verdicts(self, log: OrderLog, clock: Clock) -> Verdicts:
        """What the engines say; nothing, where the table itself is not possible."""
        if not log.possible():
            return Verdicts((Undecided(),) * len(log.truth), (), (), 0)
        return audit_order(log.questions, log.domain, log.truth, 0, clock.left)

    def _misses(self, log: OrderLog) -> bool:
        """Whether numbers that may be missing are not whole: their sums do not say it all."""
        numbers = (*self._own.values(), *self._extras.values())
        return not log.domain.integer and any(map(self._nodes.may_be_missing, numbers))

    def _undecided(self, log: OrderLog, verdicts: Verdicts, doubted: bool) -> set[tuple[int, str]]:
        """The secrets that are neither exposed nor shown to be free."""
        wrong = set() if log.domain.integer else self._at_open_ends(log, verdicts)
        open_, free = set[tuple[int, str]](), set[tuple[int, str]]()
        for place, which in (*self._own.items(), *self._extras.items()):
            node, verdict = self._nodes.node(which), verdicts.records[place]
            secret = node.place, node.unknown.column
            if isinstance(verdict, Free) and not doubted and verdict.witness not in wrong:
                free.add(secret)
            elif not isinstance(verdict, ExposedValue):
                open_.add(secret)
        return open_ - free

    def _at_open_ends(self, log: OrderLog, verdicts: Verdicts) -> set[int]:
        """The second tables with a sum at an end that would have been shown as another number."""
        found, rows = set[int](), self._nodes.open_rows(self._mine)
        for number, witness in enumerate(verdicts.witnesses if rows else ()):
            table = witness.applied_to(list(log.truth))
            for row in rows:
                total = sum(a * table[self._position[c]] for c, a in row.terms)
                if total in row.excluded:
                    found.add(number)
        return found
