"""Assemble the exposed people from what was found by rank, by bounds and types, and by order."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from casemate.audit.case import Case
from casemate.audit.checks.least_cells import (
    BY_SEARCH,
    LEAST_CELLS_SECONDS,
    LeastCells,
    value_shown,
)
from casemate.audit.checks.rank import DeterminedByRank, in_numbers
from casemate.audit.order.audit import Ordered
from casemate.audit.region.bounds import Bounds
from casemate.audit.result import DerivationStep, Exposed, MissingValue, Proof
from casemate.audit.time_limit import Clock
from casemate.exact import Bound
from casemate.published import People, true_values
from casemate.query.language import Scalar
from casemate.query.records import Cut


def assemble_exposed(
    case: Case, by_rank: DeterminedByRank, ranges: Bounds, ordered: Sequence[Ordered] = ()
) -> tuple[Exposed, ...]:
    """Everybody whose value the numbers determine, with bounds and types, and was not known.

    `ordered` adds what extremes, medians and comparisons say of the secrets that they meet.
    """
    by_order = {c: found for each in ordered for c, found in each.others.items()}
    values: dict[int, Bound] = {column: value for column, (value, _) in by_order.items()}
    values |= {column: ranges.low[column] for column in ranges.fixed}
    values |= _values_by_rank(case, by_rank)
    values = {c: value for c, value in values.items() if not case.is_known_beforehand(c)}
    fixed = {*ranges.fixed, *by_rank.tipped_by}
    found = []
    for (_, name), columns in _by_record(case, values).items():
        value, shown_by = value_shown(case, name, columns, values)
        if shown_by is not None:
            by_integrality = any(ranges.proof[column] == "integer" for column in columns)
            proof = Proof.INTEGER if by_integrality else Proof.BOUNDS
            new = [Proof(by_order[c][1]) for c in columns if c in by_order and c not in fixed]
            proof = new[0] if new else proof
            proof = Proof.MISSING if case.unknown(shown_by).category == Cut(None) else proof
            found.append(_exposure(case, shown_by, value, by_rank, proof))
    return tuple(found)


def with_order(
    case: Case, already: tuple[Exposed, ...], found: Sequence[Ordered]
) -> tuple[tuple[Exposed, ...], tuple[Scalar, ...]]:
    """Whom extremes and medians expose besides, and about whom nothing could be decided."""
    equations = case.equations
    seen = {(each.record, each.column) for each in already}
    people = equations.people
    names = [people.record(place) for place in range(len(equations.records))]
    exposed_by_order = tuple(
        _by_order(part, place, names[place], people.person(place))
        for part in found
        for place in part.exposed
        if (names[place], part.column) not in seen
    )
    exposed_by_order += tuple(
        Exposed(names[place], people.person(place), column, value, None, None, Proof(proof))
        for part in found
        for (place, column), (value, proof) in part.elsewhere.items()
        if (names[place], column) not in seen
    )
    rows = (*(each for each in already if not each.total), *exposed_by_order)
    totals = [each for each in already if each.total]
    totals += [
        Exposed(None, people.person(first), part.column, value, None, None, Proof(proof), True)
        for part in found
        for first, (value, proof) in part.totals.items()
    ]
    seen |= {(each.record, each.column) for each in exposed_by_order}
    unsure = {(names[place], column) for part in found for place, column in part.undecided} - seen
    undecided = sorted({record for record, _ in unsure}, key=str)
    return (*rows, *without_known_rows(totals, rows, people)), tuple(undecided)


def _by_order(part: Ordered, place: int, record: Scalar, person: Scalar) -> Exposed:
    """An exposed value with the statement that tipped it and its proof in words, if it has one."""
    value, proof = part.exposed[place]
    exposed = Exposed(record, person, part.column, value, None, None, Proof(proof))
    derived = part.derived.get(place)
    return exposed if derived is None else replace(exposed, by=derived.by, derivation=derived.steps)


def apart_from_missing(
    case: Case, exposed: Sequence[Exposed], ordered: Sequence[Ordered], clock: Clock
) -> tuple[tuple[Exposed, ...], tuple[MissingValue, ...]]:
    """Exposed values, each with the statement that tipped it, and those known to be missing."""
    people = case.equations.people
    missing = [
        MissingValue(people.record(place), people.person(place), part.column, why.by, why.steps)
        for part in ordered
        for place, why in sorted(part.missing.items())
    ]
    seen = {(each.record, each.column) for each in missing}
    kept = []
    known = _Explanations(case, ordered, clock)
    for each in (_explained(case, each, known) for each in exposed):
        if not _is_missing(case, each):
            kept.append(each)
        elif (each.record, each.column) not in seen:
            steps = each.derivation or (each.certificate.steps if each.certificate else ())
            missing.append(MissingValue(each.record, each.person, each.column, each.by or 1, steps))
    return tuple(kept), tuple(missing)


def _is_missing(case: Case, exposed: Exposed) -> bool:
    """Whether what is known of a number is that it is not there."""
    column = case.policy.column(exposed.column)
    may_be = column is not None and column.nullable and not case.declared_values(exposed.column)
    known = exposed.certificate is not None or not case.publication.told
    known = known or exposed.proof is Proof.MISSING
    return exposed.value is None and may_be and known and not exposed.total


SEARCHED = "a search found no other table that gives these statements: it is the only proof"


def _explained(case: Case, exposed: Exposed, known: "_Explanations") -> Exposed:
    """A value without a statement of its own gets the cells behind it, and the last of them.

    Where only extremes and medians are about it these are all statements that show any.
    """
    if exposed.by is not None:
        return exposed
    steps = known.steps(exposed)
    used = [step.query for step in steps if step.query is not None]
    return replace(
        exposed, by=max(used, default=max(1, case.publication.queries)), derivation=steps
    )


class _Explanations:
    """What is known about why values follow."""

    def __init__(self, case: Case, ordered: Sequence[Ordered], clock: Clock) -> None:
        self._case, self._ordered = case, ordered
        self._clock = clock.within(LEAST_CELLS_SECONDS)
        self._least = LeastCells(case, self._clock)

    def steps(self, exposed: Exposed) -> tuple[DerivationStep, ...]:
        """A proof in words: one that was found, or the cells behind a value."""
        ways = [self._proved, self._least.derivation, self._by_order, self._all]
        if exposed.proof is Proof.ORDER:
            ways = [self._proved, self._by_order, self._least.derivation, self._all]
        return next((steps for way in ways if (steps := way(exposed))), ())

    def _parts(self, exposed: Exposed) -> Iterator[tuple[Ordered, int]]:
        place = None if exposed.total else self._case.equations.people.place(exposed.record)
        if place is not None:
            yield from ((part, place) for part in self._ordered)

    def _proved(self, exposed: Exposed) -> tuple[DerivationStep, ...]:
        parts = ((part, place) for part, place in self._parts(exposed))
        found = (p.derived.get(place) for p, place in parts if p.column == exposed.column)
        return next((each.steps for each in found if each is not None), ())

    def _by_order(self, exposed: Exposed) -> tuple[DerivationStep, ...]:
        for part, place in self._parts(exposed):
            if part.behind is not None:
                cells = part.behind.cells(place, exposed.column, self._clock)
                if cells:
                    return tuple(DerivationStep(query, key, BY_SEARCH) for query, key in cells)
        return ()

    def _all(self, exposed: Exposed) -> tuple[DerivationStep, ...]:
        statements = self._statements(exposed.column)
        return tuple(DerivationStep(query, None, SEARCHED) for query in statements)

    def _statements(self, column: str) -> list[int]:
        """The statements that show something of a column, or of what shares statements with it."""
        system, case = self._case.equations.system, self._case
        mine = [c for c in range(system.columns) if case.secret(c) == column]
        rows = np.unique(system.row[np.isin(system.column, mine)]).tolist()
        shown = {case.equations.places[row].query for row in rows}
        return sorted(shown.union(*(part.queries for part in self._ordered)))


def without_known_rows(
    totals: Sequence[Exposed], exposed: Sequence[Exposed], people: People
) -> tuple[Exposed, ...]:
    """The totals that say more than the rows of the same people do, each once."""
    exposed_rows = {(each.record, each.column) for each in exposed}

    def is_news(total: Exposed) -> bool:
        first = people.first_of(total.person)
        rows = [] if first is None else people.rows(first).tolist()
        return any((people.record(row), total.column) not in exposed_rows for row in rows)

    each_once = {(total.person, total.column): total for total in reversed(totals)}
    return tuple(total for total in reversed(each_once.values()) if is_news(total))


def _values_by_rank(case: Case, by_rank: DeterminedByRank) -> dict[int, Bound]:
    """The values that follow by rank: from their certificates, or as the table has them."""
    values: dict[int, Bound] = {
        c: combination.value(case.equations.low) for c, combination in by_rank.singles.items()
    }
    uncertified = [column for column in by_rank.tipped_by if column not in values]
    if uncertified and not case.publication.told:
        values |= true_values(case.equations, uncertified, case.source)
    return values | dict.fromkeys((c for c in uncertified if c not in values), None)


def _by_record(case: Case, columns: Iterable[int]) -> dict[tuple[int, str], list[int]]:
    grouped: dict[tuple[int, str], list[int]] = defaultdict(list)
    for column in sorted(columns):
        grouped[int(case.equations.record[column]), case.secret(column)].append(column)
    return dict(sorted(grouped.items()))


def _exposure(
    case: Case, column: int, value: Scalar | Fraction, by_rank: DeterminedByRank, proof: Proof
) -> Exposed:
    record, person, name = case.name(column), case.person(column), case.secret(column)
    sum_is_no_proof = value == 0 and case.is_number(column) and case.may_be_missing(column)
    if column not in by_rank.tipped_by or sum_is_no_proof:  # it adds 0 where it is missing, too
        return Exposed(record, person, name, value, None, None, proof)
    certificate, proof = None, Proof.RANK
    if column in by_rank.singles:
        certificate = in_numbers(case, by_rank.singles[column])
        if case.rounded.intersection(by_rank.singles[column].coefficients):
            proof = Proof.INTEGER  # exact only because sums of whole numbers are whole
    return Exposed(record, person, name, value, certificate, by_rank.tipped_by[column], proof)
