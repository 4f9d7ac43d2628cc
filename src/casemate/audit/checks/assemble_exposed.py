"""Assemble the exposed people from what was found by rank, by bounds and types, and by order."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from casemate.audit.case import Case
from casemate.audit.checks.rank import DeterminedByRank, in_numbers
from casemate.audit.order.audit import Ordered
from casemate.audit.region.bounds import Bounds
from casemate.audit.result import DerivationStep, Exposed, MissingValue, Proof
from casemate.exact import Bound
from casemate.published import People, Place, true_values
from casemate.query.language import Scalar
from casemate.query.records import Category, Cut


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
        value, shown_by = _value(case, name, columns, values)
        if shown_by is not None:
            by_integrality = any(ranges.proof[column] == "integer" for column in columns)
            proof = Proof.INTEGER if by_integrality else Proof.BOUNDS
            new = [Proof(by_order[c][1]) for c in columns if c in by_order and c not in fixed]
            proof = new[0] if new else proof
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
    case: Case, exposed: Sequence[Exposed], ordered: Sequence[Ordered]
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
    extremes = {part.column: part.queries for part in ordered}
    for each in (_with_statements(case, each, extremes.get(each.column, ())) for each in exposed):
        if not _is_missing(case, each):
            kept.append(each)
        elif (each.record, each.column) not in seen:
            missing.append(
                MissingValue(each.record, each.person, each.column, each.by or 1, each.derivation)
            )
    return tuple(kept), tuple(missing)


def _is_missing(case: Case, exposed: Exposed) -> bool:
    """Whether what is known of a number is that it is not there."""
    column = case.policy.column(exposed.column)
    may_be = column is not None and column.nullable and not case.declared_values(exposed.column)
    known = exposed.certificate is not None or not case.publication.told
    return exposed.value is None and may_be and known and not exposed.total


SEARCHED = {
    Proof.BOUNDS: "with bounds and the other numbers about this one, one value is left",
    Proof.INTEGER: "a search over whole numbers found no other table: it is the only proof",
    Proof.ORDER: "a search found no other table: it is the only proof",
}


def _with_statements(case: Case, exposed: Exposed, extremes: Collection[int]) -> Exposed:
    """A value without a statement of its own gets all that are about it, and the last of them.

    `extremes` are statements that show extremes or medians of its column.
    """
    if exposed.by is not None:
        return exposed
    text = SEARCHED.get(exposed.proof, SEARCHED[Proof.BOUNDS])
    used = [(each.query, each.key) for each in _places_about(case, exposed)]
    used += [(query, None) for query in sorted(extremes)]
    steps = tuple(DerivationStep(query, key, text) for query, key in used)
    by = max((query for query, _ in used), default=max(1, case.publication.queries))
    return replace(exposed, by=by, derivation=exposed.derivation or steps)


def _places_about(case: Case, exposed: Exposed) -> list[Place]:
    """The published numbers that a value, or a row of a person, is in."""
    equations, people = case.equations, case.equations.people
    place = people.first_of(exposed.person) if exposed.total else people.place(exposed.record)
    if place is None:
        return []
    rows = people.rows(place) if exposed.total else np.array([place])
    owners = people.owners(exposed.column)
    units = rows if owners is None else owners[rows]
    theirs = np.flatnonzero(np.isin(equations.record, units)).tolist()
    columns = [column for column in theirs if case.secret(column) == exposed.column]
    about = np.unique(equations.system.row[np.isin(equations.system.column, columns)])
    found = [equations.places[row] for row in about.tolist()]
    return list(dict.fromkeys(found))


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


def _value(
    case: Case, name: str, columns: Sequence[int], values: dict[int, Bound]
) -> tuple[Scalar | Fraction, int | None]:
    """The value that the known columns of a record come to, and the column that shows it."""
    if any(not isinstance(case.unknown(column).category, Category) for column in columns):
        return _number(case, columns, values)
    for column in columns:
        category = case.unknown(column).category
        if values[column] == 1 and isinstance(category, Category):
            return category.value, column
    declared = case.declared_values(name)
    if len(columns) == len(declared) - 1:  # none of the others: it is the last
        return declared[-1], columns[-1]
    return None, None


def _number(
    case: Case, columns: Sequence[int], values: dict[int, Bound]
) -> tuple[Scalar | Fraction, int | None]:
    """A number, or that it is missing; 0 may stand for both, and then neither is known."""
    kinds = {case.unknown(column).category: column for column in columns}
    number, presence = kinds.get(None), kinds.get(Cut(None))
    if presence is not None and values[presence] == 0:
        return None, presence
    if number is None or (values[number] == 0 and presence is None and case.may_be_missing(number)):
        return None, None
    return values[number], number


def _exposure(
    case: Case, column: int, value: Scalar | Fraction, by_rank: DeterminedByRank, proof: Proof
) -> Exposed:
    record, person, name = case.name(column), case.person(column), case.secret(column)
    if column not in by_rank.tipped_by:
        return Exposed(record, person, name, value, None, None, proof)
    certificate, proof = None, Proof.RANK
    if column in by_rank.singles:
        certificate = in_numbers(case, by_rank.singles[column])
        if case.rounded.intersection(by_rank.singles[column].coefficients):
            proof = Proof.INTEGER  # exact only because sums of whole numbers are whole
    return Exposed(record, person, name, value, certificate, by_rank.tipped_by[column], proof)
