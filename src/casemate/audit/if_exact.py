"""Values that would follow if rounded numbers were exact, and how far off they may be.

Rounding hides a value only as far as it blurs it: a combination of published numbers that would
give a value exactly gives it to within half a unit of each number, times what that is multiplied
by. Whoever is pinned down all the same, by bounds or by being whole, is plainly exposed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from casemate.audit.case import Case
from casemate.audit.determined import determined
from casemate.audit.exposed import in_numbers
from casemate.audit.result import Exposed, ExposedIfExact
from casemate.published.equations import with_sides
from casemate.solve.certificate import Certificate


def exposed_if_exact(case: Case, exposed: Iterable[Exposed]) -> tuple[ExposedIfExact, ...]:
    """Whose numbers follow once rounded numbers are taken as exact, and not otherwise."""
    equations = case.equations
    ends = list(zip(equations.low, equations.high, strict=True))
    half = [Fraction(0) if high is None else (high - low) / 2 for low, high in ends]
    if not any(half):
        return ()
    middle = tuple(low + each for low, each in zip(equations.low, half, strict=True))
    high = tuple(None if high is None else m for m, (_, high) in zip(middle, ends, strict=True))
    exact = replace(case, equations=with_sides(equations, middle, high, equations.open_ends))
    seen = {(each.record, each.column) for each in exposed}
    return tuple(each for each in _listed(exact, half) if (each.record, each.column) not in seen)


def _listed(exact: Case, half: list[Fraction]) -> Iterator[ExposedIfExact]:
    known = determined(exact)
    for column, by in sorted(known.by.items()):
        if not exact.is_number(column) or exact.settled(column):
            continue
        single = known.singles.get(column)
        yield ExposedIfExact(
            exact.name(column),
            exact.person(column),
            exact.secret(column),
            None if single is None else single.value(exact.equations.low),
            None if single is None else _margin(single, half),
            None if single is None else in_numbers(exact, single),
            by,
        )


def _margin(combination: Certificate, half: list[Fraction]) -> Fraction:
    """How far the value may be off: half a unit of each number, times its multiple."""
    weights = combination.coefficients.items()
    off = sum((abs(weight) * half[row] for row, weight in weights), Fraction(0))
    return off / abs(combination.divisor)
