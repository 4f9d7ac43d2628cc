"""What is said to be known, held against the table: nobody can know what is not so.

An audit from a false premise is about a table that is not there: its ranges are empty, or hold
values that nobody has. So bounds and values that the table does not keep to are left out, and named
with how many values say otherwise. Somebody may believe them all the same, so whoever is then not
exposed is not safe.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from casemate.exact import Bound, within
from casemate.published.knowledge import Knowledge, about_people, prior_of
from casemate.published.people import People
from casemate.published.shown import exact
from casemate.published.statements import Publication
from casemate.published.verified import column_values
from casemate.query.engines import PROTECTED, tables, values
from casemate.query.language import NUMBERS, Scalar
from casemate.query.records import all_records
from casemate.table import Column, ColumnType, Policy
from casemate.table.sources import Source, quote_name


@dataclass(frozen=True)
class Premises:
    """A policy and what is known beside it, as far as the table keeps to both.

    `contradicted` has a sentence for each of the others, which were left out.
    """

    policy: Policy
    knowledge: Knowledge
    contradicted: tuple[str, ...] = ()


def true_bounds(policy: Policy, knowledge: Knowledge, source: Source) -> Premises:
    """The premises without bounds, given or declared, that some private number is outside of."""
    numbers = [each for each in policy.private() if _is_number(each)]
    held = _without_whole(Premises(policy, knowledge), numbers, source)
    low, high = knowledge.low, knowledge.high
    outside = _count(numbers, lambda each: not within(each, low, high), source, (low, high))
    if outside:
        said = f"the bounds {_text(low)}:{_text(high)} that were given do not hold {outside}"
        without = replace(held.knowledge, low=None, high=None)
        held = _noted(replace(held, knowledge=without), f"{said}; audited without them")
    for column in numbers:
        held = _without_declared(held, column, source)
    return held


def _without_whole(held: Premises, numbers: Iterable[Column], source: Source) -> Premises:
    """The premises without that numbers are whole, where some are not."""
    if not held.knowledge.integer:
        return held
    columns = [each for each in numbers if each.type is not ColumnType.INTEGER]
    broken = _count(columns, lambda each: each.denominator != 1, source)
    without = replace(held, knowledge=replace(held.knowledge, integer=False))
    said = f"private numbers were said to be whole, and {broken} are not; audited without that"
    return _noted(without, said) if broken else held


def _without_declared(held: Premises, column: Column, source: Source) -> Premises:
    """The premises without the bounds that a policy declares for a column, where they are wrong."""
    low = None if held.knowledge.low is not None or column.low is None else exact(column.low)
    high = None if held.knowledge.high is not None or column.high is None else exact(column.high)
    outside = _count([column], lambda each: not within(each, low, high), source, (low, high))
    if not outside:
        return held
    unbounded = replace(column, low=None, high=None)
    columns = tuple(unbounded if each == column else each for each in held.policy.columns)
    said = f"the bounds {_text(low)}:{_text(high)} that the policy declares for {column.name} do"
    without = replace(held, policy=replace(held.policy, columns=columns))
    return _noted(without, f"{said} not hold {outside}; audited without them")


def _noted(held: Premises, sentence: str) -> Premises:
    return replace(held, contradicted=(*held.contradicted, sentence))


def _is_number(column: Column) -> bool:
    return column.type in NUMBERS and column.values is None


def _text(end: Bound) -> str:
    if end is None or end.denominator == 1:
        return "" if end is None else str(end)
    return f"{Decimal(end.numerator) / Decimal(end.denominator)}"


def _count(
    columns: Iterable[Column],
    wrong: Callable[[Fraction], bool],
    source: Source,
    ends: tuple[Bound, Bound] | None = None,
) -> str:
    """How many values of the table are wrong, in words; nothing where none is.

    With `ends` only values outside of them can be, so the least and the greatest say whether any.
    """
    if ends == (None, None):
        return ""
    listed = [each.name for each in columns]
    found = 0
    for name in listed:
        if ends is None or any(map(wrong, _extremes(name, source))):
            seen = column_values(name, source).values()
            found += sum(value is not None and wrong(exact(value)) for value in seen)
    return (
        ""
        if not found
        else "1 value of the table"
        if found == 1
        else f"{found:,} values of the table"
    )


def _extremes(name: str, source: Source) -> Iterator[Fraction]:
    number = f"{quote_name(PROTECTED)}.{quote_name(name)}"
    shown = f"min({number}) AS low, max({number}) AS high"
    frame = source.read(f"SELECT {shown} FROM {tables(source, ())}")
    ends = (values(frame[end])[0] for end in ("low", "high"))
    yield from (exact(end) for end in ends if end is not None)


# Single values ------------------------------------------------------------------------------------


def true_values_known(held: Premises, found: Publication, source: Source) -> Premises:
    """The premises without what is said to be known of a record and is not so.

    It is about every private number that the log is about.
    """
    known = held.knowledge.known
    columns = [
        each for each in held.policy.private() if _is_number(each) and each.name in found.private
    ]
    if not known or not columns:
        return held
    people = People.of(all_records(source), held.policy, source)
    for column in columns:
        about = about_people(column.name, held.knowledge, people)
        for record in about.known:  # what contradicts itself is wrong whatever the table has
            prior_of(column.name, record, held.policy, about)
    table = [column_values(column.name, source) for column in columns]
    wrong = [record for record in known if not _is_so(record, known[record], table, people)]
    kept = {record: ends for record, ends in known.items() if record not in wrong}
    held = replace(held, knowledge=replace(held.knowledge, known=kept))
    places = sorted(place + 1 for place in map(people.place, wrong) if place is not None)
    return _noted(held, _what_is_not_so(places)) if places else held


def _is_so(
    record: Scalar,
    ends: tuple[Bound, Bound],
    table: Iterable[dict[Scalar, Scalar]],
    people: People,
) -> bool:
    """Whether a record has numbers between these ends."""
    place = people.place(record)
    if place is None or ends == (None, None):
        return True
    own = (column[people.record(place)] for column in table)
    return all(value is not None and within(exact(value), *ends) for value in own)


NAMED_RECORDS = 20


def _what_is_not_so(places: list[int]) -> str:
    """The records by their rows, for a key may name somebody."""
    listed = ", ".join(map(str, places[:NAMED_RECORDS]))
    more = f" and {len(places) - NAMED_RECORDS:,} more" if len(places) > NAMED_RECORDS else ""
    who, it = ("record", "it") if len(places) == 1 else ("records", "them")
    return (
        f"what is said to be known of {who} {listed}{more} is not what the table has; audited "
        f"without {it}"
    )
