"""Second tables: the proof, for everybody who is not exposed, that another value is possible.

Guarantee  Each table keeps the types, the bounds and every published number, checked in exact
           arithmetic on its values alone. Somebody is covered when a table differs in each of
           their secrets from the first one, which is the custodian's own wherever the published
           numbers are; `narrow` are those whom no table moves by the protection width.
Secrecy    A second table is not the true one, and yet equal to it in many places: whoever is
           exposed has the true value in it. It is for the custodian alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from casemate.audit.order.audit import Ordered
from casemate.audit.region.second import Change
from casemate.audit.result import Exposed
from casemate.audit.time_limit import Clock
from casemate.audit.witness.possible import Possible, Secret, Value, Values
from casemate.audit.witness.search import SecondSearch, base_of
from casemate.query.language import Scalar


@dataclass(frozen=True, eq=False, repr=False)
class SecondTables:
    """Possible tables that together differ in everybody covered.

    `uncovered` are records for which no second table was found within the limit, or none exists.
    """

    tables: tuple[Values, ...]
    covered: int
    narrow: tuple[Scalar, ...]
    uncovered: tuple[Scalar, ...]
    possible: Possible
    wanted: tuple[Secret, ...]
    width: Callable[[Secret], Fraction]
    file: Path | None = None

    def __repr__(self) -> str:
        """How many there are; never what is in them."""
        return f"<SecondTables: {len(self.tables)} tables that cover {self.covered} records>"

    @property
    def shown(self) -> set[Scalar]:
        """The records that the tables cover."""
        record = self.possible.case.equations.people.record
        return {record(place) for place, _ in self.wanted} - set(self.uncovered)

    def check(self) -> bool:
        """Whether every table is possible, and they cover whom they are said to cover."""
        if not all(self.possible.holds(table) for table in self.tables):
            return False
        found = coverage(self.possible, self.tables, self.wanted, self.width)
        return (self.covered, self.narrow, self.uncovered) == found


def second_tables(
    possible: Possible,
    exposed: Iterable[Exposed],
    ordered: Sequence[Ordered],
    changes: Iterable[Change],
    *,
    protect: Fraction,
    clock: Clock,
) -> SecondTables:
    """Find second tables for everybody who is not exposed; `changes` are known to lead to some."""
    wanted = tuple(wanted_secrets(possible, exposed))
    width = _widths(possible, protect)
    base = base_of(possible, clock)
    tables: tuple[Values, ...] = ()
    if base is not None and wanted:
        decided = {column for each in ordered for column in each.covered}
        search = SecondSearch(possible, base, wanted, width, decided)
        search.take_unseen()
        search.take_columns(changes)
        for each in ordered:
            search.take_order(each, clock)
        search.look(clock)
        tables = search.tables()
        if base != possible.truth:
            tables = (base, *tables)
    found = coverage(possible, tables, wanted, width)
    return SecondTables(tables, *found, possible, wanted, width)


def wanted_secrets(possible: Possible, exposed: Iterable[Exposed]) -> Iterable[Secret]:
    """Everything that was asked about, is not exposed and was not known before."""
    record = possible.case.equations.people.record
    known = {(each.record, each.column) for each in exposed}
    for place, name in possible.secrets:
        if (record(place), name) not in known and not _was_known(possible, (place, name)):
            yield place, name


def _was_known(possible: Possible, secret: Secret) -> bool:
    columns, (place, name) = possible.columns.get(secret, []), secret
    if any(possible.case.is_number(c) and possible.case.settled(c) for c in columns):
        return True
    log = possible.logs.get(name)
    low = None if log is None or columns else log.domain.low[place]
    return log is not None and low is not None and low == log.domain.high[place]


def _widths(possible: Possible, protect: Fraction) -> Callable[[Secret], Fraction]:
    """By how much a secret must differ: a share of the true number; a category by being another."""

    def width(secret: Secret) -> Fraction:
        true = possible.truth[secret]
        if possible.case.declared(secret[1]) or isinstance(true, str | None):
            return Fraction(1)
        return protect * abs(Fraction(true))  # type: ignore[arg-type]  # a number

    return width


def distance(one: Value, other: Value) -> Fraction:
    """How far two values are apart; 1 where they are not numbers and differ."""
    numbers = [each for each in (one, other) if isinstance(each, int | Fraction)]
    if len(numbers) == 2 and not any(isinstance(each, bool) for each in (one, other)):
        return abs(Fraction(numbers[0]) - Fraction(numbers[1]))
    return Fraction(one != other)


def coverage(
    possible: Possible,
    tables: Sequence[Values],
    wanted: Sequence[Secret],
    width: Callable[[Secret], Fraction],
) -> tuple[int, tuple[Scalar, ...], tuple[Scalar, ...]]:
    """How many records some table differs in, those only by less than their width, the others."""
    record = possible.case.equations.people.record
    first = tables[0] if tables and not possible.holds(possible.truth) else possible.truth
    open_, narrow, places = set[int](), set[int](), {place for place, _ in wanted}
    for secret in wanted:
        apart = max(
            (distance(table[secret], first[secret]) for table in tables), default=Fraction(0)
        )
        if not apart:
            open_.add(secret[0])
        elif apart < width(secret):
            narrow.add(secret[0])
    return (
        len(places - open_),
        tuple(record(place) for place in sorted(narrow - open_)),
        tuple(record(place) for place in sorted(open_)),
    )
