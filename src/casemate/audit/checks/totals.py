"""Whose totals follow: what all rows of a person come to, where a column varies from row to row.

No single row of somebody with several may be exposed while their total is, and with it the mean,
since everybody knows how many rows there are. A category counts: how often each value occurs.
`exposed_totals` decides by rank, within bounds, and among whole numbers.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.checks.ranges import ONE, WholeNumbers, decide_part, kinds, tighten_box
from casemate.audit.checks.rank import DeterminedByRank, certificates_of, in_numbers
from casemate.audit.region.bounds import Bounds
from casemate.audit.region.collapse import collapse_region
from casemate.audit.region.groups import (
    Combinations,
    in_row_space,
    single_values,
    with_combinations,
)
from casemate.audit.region.second import Change
from casemate.audit.result import Exposed, Proof, PublishedCertificate
from casemate.audit.time_limit import Clock
from casemate.exact import Bound, Region, Target
from casemate.published import (
    about_people,
    column_values,
    exact,
    missing_counts,
    true_values,
    with_sides,
)
from casemate.query.language import Scalar
from casemate.query.records import Category


@dataclass(frozen=True, eq=False)
class PersonTotal:
    """(a combination of columns) / scale + offset: a sum over a person's rows, or a count.

    `counted` is the value whose occurrences are counted; None for a sum.
    """

    first: int
    column: str
    counted: Category | None
    target: Target
    scale: int = 1
    offset: Fraction = Fraction(0)

    def value(self, amount: Fraction) -> Fraction:
        """The total itself, where the combination comes to this."""
        return amount / self.scale + self.offset


def totals(case: Case) -> Iterator[PersonTotal]:
    """The totals of everybody with several rows that the published numbers could determine."""
    people = case.equations.people
    if people.alone:
        return
    for name in dict.fromkeys(unknown.column for unknown in case.equations.unknowns):
        if name not in people.constant:
            yield from (_counts if case.declared_values(name) else _sums)(case, name)


def _sums(case: Case, name: str) -> Iterator[PersonTotal]:
    """The sum of a number over each person's rows, rows known beforehand among them."""
    people = case.equations.people
    settled = _settled_elsewhere(case, name)
    for first, columns in _columns(case, name, None).items():
        rows = people.rows(first).tolist()
        asked = set(case.equations.record[columns].tolist())
        others = [row for row in rows if row not in asked]
        prior = all(case.is_known_beforehand(column) for column in columns.tolist())
        if all(row in settled for row in others) and not prior:
            offset = sum((settled[row] for row in others), Fraction(0))
            yield PersonTotal(first, name, None, dict.fromkeys(columns.tolist(), 1), 1, offset)


def _settled_elsewhere(case: Case, name: str) -> Mapping[int, Fraction]:
    """The rows whose number was known before anything was published, or that it is missing."""
    people = case.equations.people
    absent = dict.fromkeys(_publicly_missing(case, name), Fraction(0))
    known_ranges = about_people(name, case.knowledge, people).known if case.knowledge.known else {}
    places = {people.place(record): ends for record, ends in known_ranges.items()}
    return absent | {
        place: low
        for place, (low, high) in places.items()
        if place is not None and low is not None and low == high
    }


def _publicly_missing(case: Case, name: str) -> Iterator[int]:
    """The rows of which everybody knows that they have no value; they add nothing to a total."""
    declared, people = case.policy.column(name), case.equations.people
    if declared is None or declared.nullable or not missing_counts([declared], case.source):
        return
    values = column_values(name, case.source)
    yield from (p for p in range(len(people.records)) if values[people.record(p)] is None)


def _columns(case: Case, name: str, category: Category | None) -> dict[int, NDArray[np.int64]]:
    """The columns of one secret, for each person with several rows, in the order of people."""
    equations, people = case.equations, case.equations.people
    which = [
        i for i, u in enumerate(equations.unknowns) if (u.column, u.category) == (name, category)
    ]
    columns = np.flatnonzero(np.isin(equations.unknown, which))
    owner = people.first[equations.record[columns]]
    several = people.sizes[owner] > 1
    columns, owner = columns[several], owner[several]
    order = np.argsort(owner, kind="stable")
    firsts, starts = np.unique(owner[order], return_index=True)
    parts = np.split(columns[order], starts[1:]) if len(firsts) else []
    return dict(zip(firsts.tolist(), parts, strict=True))


def _counts(case: Case, name: str) -> Iterator[PersonTotal]:
    """How often each value of a category occurs in each person's rows, and their sum."""
    *values, last = case.declared_values(name)
    columns = [_columns(case, name, Category(value)) for value in values]
    people = case.equations.people
    for first in sorted(set().union(*columns)):
        rows = int(people.sizes[first])
        columns_by_value = [each.get(first, np.zeros(0, np.int64)) for each in columns]
        complete = [len(each) == rows for each in columns_by_value]
        for value, value_columns, is_complete in zip(
            values, columns_by_value, complete, strict=True
        ):
            if is_complete:
                yield PersonTotal(
                    first, name, Category(value), dict.fromkeys(value_columns.tolist(), 1)
                )
        if all(complete) and len(values) > 1:
            others = dict.fromkeys(np.concatenate(columns_by_value).tolist(), 1)
            yield PersonTotal(first, name, Category(last), others, -1, Fraction(rows))
            if all(_is_number(value) for value in (*values, last)):
                yield _weighted_total(first, name, columns_by_value, [*values, last])


def _is_number(value: Scalar) -> bool:
    return not isinstance(value, bool | str | None) and not hasattr(value, "isoformat")


def _weighted_total(
    first: int, name: str, columns_by_value: Sequence[NDArray[np.int64]], values: Sequence[Scalar]
) -> PersonTotal:
    """The sum of a category of numbers: the last value for each row, and what the others add."""
    *more, last = (exact(value) for value in values)
    scale = lcm(*((value - last).denominator for value in more))
    target = {
        column: int((value - last) * scale)
        for value, columns in zip(more, columns_by_value, strict=True)
        for column in columns.tolist()
    }
    return PersonTotal(first, name, None, target, scale, last * len(columns_by_value[0]))


# Totals of whole numbers ------------------------------------------------------------------------
# A total is free where a second table changes it: one that was found for the rows, an exchange with
# somebody whom no published number tells apart, or one that is looked for with the total as one
# more column. CP-SAT proves that there is none.


@dataclass(eq=False)
class WholeTotals:
    """What combinations come to that have one value; those that move, and the undecided ones."""

    values: dict[PersonTotal, Fraction] = field(default_factory=dict)
    free: set[PersonTotal] = field(default_factory=set)
    undecided: set[PersonTotal] = field(default_factory=set)


def whole_totals(
    case: Case,
    region: Region,
    wanted: Iterable[PersonTotal],
    changes: Sequence[Change],
    clock: Clock,
) -> WholeTotals:
    """Decide the totals of whole numbers, given what is left of every range."""
    listed = [each for each in wanted if all(region.box.integer[c] for c in each.target)]
    found = WholeTotals()
    if not listed:
        return found
    columns = range(case.equations.system.columns)
    true = true_values(case.equations, columns, case.source)
    values = [true[column] for column in columns]
    if not region.contains(values):  # the answers are not the table's: nothing to start from
        found.undecided |= set(listed)
        return found
    traded = _exchangeable_totals(region, values, listed)
    found.free |= {total for total in listed if _is_changed(total, changes, values)} | traded
    _search(region, values, [each for each in listed if each not in found.free], found, clock)
    return found


def _is_changed(total: PersonTotal, changes: Sequence[Change], values: Sequence[Fraction]) -> bool:
    """Whether a second table that is known already has another total."""
    return any(
        sum((w * (each[c] - values[c]) for c, w in total.target.items() if c in each), Fraction(0))
        for each in changes
    )


def _exchangeable_totals(
    region: Region, values: Sequence[Fraction], wanted: Iterable[PersonTotal]
) -> set[PersonTotal]:
    """The totals that move when columns that no equation tells apart give and take."""
    group = collapse_region(region).group.tolist()
    members: dict[int, list[int]] = {}
    for column, which in enumerate(group):
        members.setdefault(which, []).append(column)

    def moves(column: int, other: int) -> bool:
        low, high, value = region.box.low[column], region.box.high[column], values[column]
        inside = (low is None or low < value) and (high is None or value < high)
        return inside or value != values[other]

    return {
        total
        for total in wanted
        if any(
            moves(column, other)
            for column, weight in total.target.items()
            if group[column] >= 0
            for other in members[group[column]]
            if total.target.get(other, 0) != weight
        )
    }


def _search(
    region: Region,
    values: Sequence[Fraction],
    wanted: Sequence[PersonTotal],
    found: WholeTotals,
    clock: Clock,
) -> None:
    """Look for second tables in which totals differ, or for the proof that there are none."""
    if not wanted:
        return
    first, targets = len(values), [total.target for total in wanted]
    amounts = [sum((w * values[c] for c, w in t.items()), Fraction(0)) for t in targets]
    longer, known = with_combinations(region, targets, whole=True), [*values, *amounts]
    asked = np.arange(len(known)) >= first
    for columns in kinds(longer, [asked]):
        ones = [ONE] * len(known)
        shown = decide_part(longer, columns, known, asked, ones, clock=clock)
        for column in columns[columns >= first].tolist():
            total = wanted[column - first]
            if column in shown.fixed:
                found.values[total] = known[column]
            elif column in shown.undecided:
                found.undecided.add(total)
            else:
                found.free.add(total)


@dataclass(frozen=True)
class ImpliedTotal:
    """A total that follows, and how."""

    total: PersonTotal
    value: Fraction
    certificate: PublishedCertificate | None
    by: int | None
    proof: Proof


Found = tuple[tuple[Exposed, ...], tuple[Scalar, ...]]
"""Whose totals follow, and for whom that was not decided, named by the person's first row."""


def exposed_totals(
    case: Case, by_rank: DeterminedByRank, whole_numbers: WholeNumbers, clock: Clock
) -> Found:
    """Whose totals follow, where not every row by itself does."""
    singles = {*by_rank.tipped_by, *whole_numbers.ranges.fixed}
    wanted = [each for each in totals(case) if not singles.issuperset(each.target)]
    if not wanted:
        return (), ()
    facts, unproved = _by_rank(case, by_rank, wanted)
    if _bounds_say_more(case, by_rank, whole_numbers.ranges):
        rest = [each for each in wanted if each not in facts]
        more, undecided = _by_bounds(case, whole_numbers, rest, clock)
        facts, unproved = facts | more, unproved - more.keys() | undecided
    people = case.equations.people
    unsure = sorted({total.first for total in unproved})
    entries = _entries(case, [facts[total] for total in wanted if total in facts])
    return tuple(entries), tuple(people.record(first) for first in unsure)


# Which totals follow ----------------------------------------------------------------------------


Decided = tuple[dict[PersonTotal, ImpliedTotal], set[PersonTotal]]
"""The totals that follow, and those of which that is not proved."""


def _by_rank(case: Case, by_rank: DeterminedByRank, wanted: Sequence[PersonTotal]) -> Decided:
    """Totals with a checked certificate, and those that follow without a readable one."""
    combinations = Combinations.of([each.target for each in wanted])
    inside, determined = in_row_space(combinations, by_rank.collapsed, by_rank.found)
    chosen = np.flatnonzero(determined).tolist()
    facts: dict[PersonTotal, ImpliedTotal] = {}
    certificates = certificates_of(case, by_rank, [inside.target(i) for i in chosen])
    for place, combination in certificates.items():
        total = wanted[chosen[place]]
        value = total.value(combination.value(case.equations.low))
        by = case.equations.places[max(combination.coefficients)].query
        facts[total] = ImpliedTotal(total, value, in_numbers(case, combination), by, Proof.RANK)
    return facts, {wanted[i] for i in chosen} - facts.keys()


def _bounds_say_more(case: Case, by_rank: DeterminedByRank, ranges: Bounds) -> bool:
    """Whether bounds leave less than the equations do: they fix columns, or there are ranges."""
    region, box = case.region, case.box
    rounded = any(low != high for low, high in zip(region.low, region.high, strict=True))
    bounded = any(end is not None for end in (*box.low, *box.high))
    more = rounded or not by_rank.tipped_by.keys() >= {*ranges.fixed}
    return bounded and not ranges.contradiction and more


def _by_bounds(
    case: Case, whole_numbers: WholeNumbers, wanted: Sequence[PersonTotal], clock: Clock
) -> Decided:
    """Totals that have one value within what is left of every range, and among whole numbers."""
    region = case.region.within(tighten_box(case.box, whole_numbers.ranges))
    targets = Combinations.of([each.target for each in wanted])
    values, undecided = single_values(region, targets, max(0.0, clock.seconds_left))
    proofs = {wanted[i]: (amount, Proof.BOUNDS) for i, amount in values.items()}
    rest = [each for i, each in enumerate(wanted) if i not in values]
    second = whole_totals(case, region, rest, whole_numbers.changes, clock)
    proofs |= {total: (amount, Proof.INTEGER) for total, amount in second.values.items()}
    facts = {
        total: ImpliedTotal(total, total.value(amount), None, None, proof)
        for total, (amount, proof) in proofs.items()
    }
    unproved = {wanted[i] for i in undecided} - second.free - facts.keys()
    return facts, unproved | second.undecided


# What is shown of them ------------------------------------------------------------------------


def _entries(case: Case, facts: Sequence[ImpliedTotal]) -> list[Exposed]:
    """One entry for each person and column, by the first fact about them that shows something."""
    grouped: dict[tuple[int, str], list[ImpliedTotal]] = {}
    for fact in facts:
        grouped.setdefault((fact.total.first, fact.total.column), []).append(fact)
    entries = []
    for (first, name), about in grouped.items():
        value = _shown_value(case, about)
        if value is not None:
            person, proof = case.equations.people.person(first), about[0]
            by = proof.certificate, proof.by, proof.proof
            entries.append(Exposed(None, person, name, value, *by, total=True))
    return entries


def shown_total(
    case: Case, amounts: Mapping[PersonTotal, Fraction]
) -> Fraction | tuple[Scalar, ...] | None:
    """What is shown of a person where some combinations are known to come to these amounts."""
    about = [
        ImpliedTotal(total, total.value(amount), None, None, Proof.BOUNDS)
        for total, amount in amounts.items()
    ]
    return _shown_value(case, about) if about else None


def _shown_value(case: Case, about: Sequence[ImpliedTotal]) -> Fraction | tuple[Scalar, ...] | None:
    """The values that occur as often as is known, else the sum; None if only absences follow."""
    total = about[0].total
    counts = {f.total.counted: int(f.value) for f in about if f.total.counted is not None}
    declared = case.declared_values(total.column)
    if len(declared) == 2 and counts:
        rows = int(case.equations.people.sizes[total.first])
        counts[Category(declared[1])] = rows - counts[Category(declared[0])]
    values = tuple(v for v in declared for _ in range(counts.get(Category(v), 0)))
    sums = [fact.value for fact in about if fact.total.counted is None]
    return values or (sums[0] if sums else None)


# Rounded sums of whole numbers: whole themselves, so often exact --------------------------------
# The average of four ages to one decimal gives their sum away: only one whole number rounds to it.
# A row of whole numbers with whole coefficients is a multiple of what divides all its coefficients,
# and its ends move inwards to such multiples.


def with_whole_rows(case: Case) -> Case:
    """The case with rounded rows of whole numbers as narrow as that makes them."""
    equations = case.equations
    sides = zip(equations.low, equations.high, strict=True)
    rounded = [row for row, (low, high) in enumerate(sides) if low != high]
    if not rounded:
        return case
    low, high, ends = list(equations.low), list(equations.high), list(equations.open_ends)
    divisors = _divisors(case)
    for row in rounded:
        step = divisors.get(row)
        inside = None if step is None else _inside(low[row], high[row], ends[row], step)
        if inside is not None:
            low[row], high[row], ends[row] = *inside, (False, False)
    return replace(
        case,
        equations=with_sides(equations, tuple(low), tuple(high), tuple(ends)),
        rounded=frozenset(rounded),
    )


def impossible(case: Case) -> list[int]:
    """Rows of whole numbers between whose ends no number is possible."""
    equations = case.equations
    return [
        row
        for row, step in _divisors(case).items()
        if _inside(equations.low[row], equations.high[row], equations.open_ends[row], step) is None
    ]


def _divisors(case: Case) -> dict[int, int]:
    """What divides every value of a row, for each row of whole numbers."""
    system = case.equations.system
    if not system.columns:
        return {}
    order = np.argsort(system.row, kind="stable")
    rows, starts = np.unique(system.row[order], return_index=True)
    whole = np.array(case.box.integer, np.bool_)[system.column[order]]
    inside = np.logical_and.reduceat(whole, starts) if len(rows) else whole
    sizes = np.abs(system.value[order])  # of one coefficient gcd would keep the sign
    common = np.gcd.reduceat(sizes, starts) if len(rows) else sizes
    return dict(zip(rows[inside].tolist(), common[inside].tolist(), strict=True))


def _inside(
    low: Fraction, high: Bound, open_ends: tuple[bool, bool], step: int
) -> tuple[Fraction, Bound] | None:
    """The least and the greatest multiple within; None if there is none."""
    least = math.ceil(low / step)
    least += open_ends[0] and least * step == low
    if high is None:
        return Fraction(least * step), None
    most = math.floor(high / step)
    most -= open_ends[1] and most * step == high
    return None if least > most else (Fraction(least * step), Fraction(most * step))
