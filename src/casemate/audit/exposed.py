"""Whose values are exposed: what follows by rank, by bounds and types, and by order, as values."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction

from casemate.audit.case import Case
from casemate.audit.determined import Determined
from casemate.audit.knowledge import record_of
from casemate.audit.order import OrderAudit
from casemate.audit.result import Certificate, Exposed, Proof, Term
from casemate.audit.truth import true_values
from casemate.query.expression import Scalar
from casemate.solve.bounds import Bounds
from casemate.solve.box import Bound
from casemate.solve.certificate import Certificate as Combination


def exposed(case: Case, known: Determined, ranges: Bounds) -> tuple[Exposed, ...]:
    """Everybody whose value the numbers determine, with bounds and types, and was not known."""
    values = {column: ranges.low[column] for column in ranges.fixed}
    values |= _solved(case, known)
    values = {c: value for c, value in values.items() if not case.settled(c)}
    found = []
    for (_, name), columns in _by_record(case, values).items():
        value, shown_by = _value(case, name, columns, values)
        if shown_by is not None:
            found.append(_exposure(case, shown_by, value, known))
    return tuple(found)


def with_order(
    case: Case, already: tuple[Exposed, ...]
) -> tuple[tuple[Exposed, ...], tuple[Scalar, ...]]:
    """Whom extremes and medians expose besides, and about whom nothing could be decided."""
    if not case.publication.ordered:
        return already, ()
    equations = case.equations
    found = OrderAudit(
        case.publication.ordered, equations, case.policy, case.knowledge, case.source
    ).run()
    seen = {(each.record, each.column) for each in already}
    names = [record_of(equations.records, i) for i in range(len(equations.records))]
    more = tuple(
        Exposed(names[place], part.column, value, None, None, Proof(proof))
        for part in found
        for place, (value, proof) in part.exposed.items()
        if (names[place], part.column) not in seen
    )
    undecided = sorted({names[place] for part in found for place in part.undecided}, key=str)
    return (*already, *more), tuple(undecided)


def _solved(case: Case, known: Determined) -> dict[int, Bound]:
    """The values that follow by rank: from their certificates, or as the table has them."""
    values: dict[int, Bound] = {
        c: combination.value(case.equations.low) for c, combination in known.singles.items()
    }
    rest = [column for column in known.by if column not in values]
    if rest and not case.publication.told:
        values |= true_values(case.equations, rest, case.source)
    return values | dict.fromkeys((c for c in rest if c not in values), None)


def _by_record(case: Case, columns: Iterable[int]) -> dict[tuple[int, str], list[int]]:
    grouped: dict[tuple[int, str], list[int]] = defaultdict(list)
    for column in sorted(columns):
        grouped[int(case.equations.record[column]), case.secret(column)].append(column)
    return dict(sorted(grouped.items()))


def _value(
    case: Case, name: str, columns: Sequence[int], values: dict[int, Bound]
) -> tuple[Scalar | Fraction, int | None]:
    """The value that the known columns of a record come to, and the column that shows it."""
    if case.is_number(columns[0]):
        return values[columns[0]], columns[0]
    for column in columns:
        category = case.unknown(column).category
        if values[column] == 1 and category is not None:
            return category.value, column
    declared = case.declared(name)
    if len(columns) == len(declared) - 1:  # none of the others: it is the last
        return declared[-1], columns[-1]
    return None, None


def _exposure(case: Case, column: int, value: Scalar | Fraction, known: Determined) -> Exposed:
    record, name = case.name(column), case.secret(column)
    if column not in known.by:
        return Exposed(record, name, value, None, None, Proof.BOUNDS)
    certificate = None
    if column in known.singles:
        certificate = in_numbers(case, known.singles[column])
    return Exposed(record, name, value, certificate, known.by[column], Proof.RANK)


def in_numbers(case: Case, combination: Combination) -> Certificate:
    """A combination of equations as one of the numbers that were published."""
    terms = tuple(
        Term(case.equations.places[row], int(weight * case.equations.factor[row]))
        for row, weight in sorted(combination.coefficients.items())
    )
    return Certificate(terms, combination.divisor)
