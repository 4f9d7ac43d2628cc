"""The result of an audit, as frozen values: what `casemate.audit/1` prints, field by field.

They hold true values, and their representations show none: a notebook prints what it is given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Literal, Protocol

from casemate.published import People, Place, RefusedQuery
from casemate.query.language import Scalar
from casemate.query.parse import ShownRow

Description = tuple[tuple[str, Scalar], ...]
"""Names of public columns, and the values that one person has in them."""


CellName = tuple[int, tuple[tuple[str, Scalar], ...] | None]
"""A statement, and the keys of one of its rows; None without GROUP BY, or for all of them."""


class Verdict(StrEnum):
    """What an audit comes to; what was refused or left out makes it incomplete."""

    EXPOSED = "exposed"
    NONE_EXPOSED = "none-exposed"
    INCOMPLETE = "incomplete"

    @classmethod
    def of(cls, exposed: Sequence[object], doubts: Sequence[object]) -> "Verdict":
        """The verdict on who was found exposed, and on what could not be decided."""
        if exposed:
            return cls.EXPOSED
        return cls.INCOMPLETE if doubts else cls.NONE_EXPOSED


class Proof(StrEnum):
    """How a value is known: by the equations alone, with bounds and types, with extremes, or read.

    `MISSING` is how it is known that there is no value.
    """

    RANK = "rank"
    BOUNDS = "bounds"
    INTEGER = "integer"
    ORDER = "order"
    MISSING = "missing"
    READ = "read"


@dataclass(frozen=True)
class DerivationStep:
    """One step of a proof in words, without private values: the cell it uses, and what follows.

    `query` is None where the step uses what was known beforehand; `column` is the one that shows
    the cell, where a single one does.
    """

    query: int | None
    cell: tuple[tuple[str, Scalar], ...] | None = field(repr=False)
    text: str
    column: str | None = None


@dataclass(frozen=True)
class CertificateTerm:
    """A published number, and what it is multiplied by."""

    place: Place
    coefficient: int


@dataclass(frozen=True)
class PublishedCertificate:
    """Published numbers that, multiplied and added up, give `divisor` times one value."""

    terms: tuple[CertificateTerm, ...]
    divisor: int

    @property
    def steps(self) -> tuple[DerivationStep, ...]:
        """The combination in words, a step for each number."""
        steps = []
        for term in self.terms:
            done = "added" if term.coefficient > 0 else "taken away"
            times = "" if abs(term.coefficient) == 1 else f"{abs(term.coefficient)} times, "
            steps.append(DerivationStep(term.place.query, term.place.key, f"{times}{done}"))
        if self.divisor != 1:
            steps.append(DerivationStep(None, None, f"the result divided by {self.divisor}"))
        return tuple(steps)


@dataclass(frozen=True)
class Exposed:
    """One value that everybody can compute; `by` is the statement that tipped it.

    With `total` it is what all rows of a person come to, and `record` is None: of a number the
    sum, of a category the values that some of the rows are known to have, in no order. With
    `across` it follows from several releases together, and from none of them alone. `described`
    are public columns whose values nobody else has together; None where there are none.
    """

    record: Scalar
    person: Scalar
    column: str
    value: Scalar | Fraction | tuple[Scalar, ...] = field(repr=False)
    certificate: PublishedCertificate | None
    by: int | None
    proof: Proof
    total: bool = False
    derivation: tuple[DerivationStep, ...] = ()
    across: bool = False
    described: Description | None = field(default=None, repr=False)


@dataclass(frozen=True)
class MissingValue:
    """Somebody of whom everybody can tell that the value is missing; `across` as of `Exposed`."""

    record: Scalar
    person: Scalar
    column: str
    by: int
    derivation: tuple[DerivationStep, ...] = ()
    described: Description | None = field(default=None, repr=False)
    across: bool = False


OpenKind = Literal["undecided", "unchecked"]
"""Whether it was not decided if somebody is exposed, or nothing is said of a range."""


@dataclass(frozen=True)
class OpenReason:
    """Why some records are `undecided` or `unchecked`."""

    kind: OpenKind
    records: tuple[Scalar, ...]
    reason: str


@dataclass(frozen=True)
class Group:
    """Records of which only the total is determined.

    For a category it is how many of them have one of its values, `category`.
    """

    records: tuple[Scalar, ...]
    column: str
    total: Fraction | None = field(repr=False)
    category: Scalar = field(default=None, repr=False)


@dataclass(frozen=True)
class InsiderExposed:
    """A value that follows for whoever knows everything private about the records in `knows`.

    With `unless_zero` it is what the value adds: 0 would be either 0 or a missing value.
    """

    record: Scalar
    column: str
    knows: tuple[Scalar, ...]
    unless_zero: bool = False


@dataclass(frozen=True)
class ExposedIfExact:
    """A number that would follow if rounded numbers were exact: it is `value`, give or take.

    `value` and `margin` are None where the combination has too many digits to be read.
    """

    record: Scalar
    person: Scalar
    column: str
    value: Fraction | None = field(repr=False)
    margin: Fraction | None = field(repr=False)
    certificate: PublishedCertificate | None
    by: int
    total: bool = False


class Witnessed(Protocol):
    """Second tables, which show that everybody they cover may have another value."""

    @property
    def tables(self) -> Sequence[Mapping[tuple[int, str], Scalar | Fraction]]:
        """The tables: values by the record's position and the column."""

    @property
    def covered(self) -> int:
        """How many records some table differs in."""

    @property
    def narrow(self) -> tuple[Scalar, ...]:
        """Those of them that no table moves by the protection width."""

    @property
    def uncovered(self) -> tuple[Scalar, ...]:
        """Records that are not exposed and that no table differs in."""

    @property
    def file(self) -> Path | None:
        """Where they are written."""

    def check(self) -> bool:
        """Whether the tables are possible, and cover whom they are said to cover."""


@dataclass(frozen=True)
class Approximate:
    """What is left of a value for whoever knows everything private about the records in `knows`."""

    record: Scalar
    column: str
    knows: tuple[Scalar, ...]
    low: Fraction = field(repr=False)
    high: Fraction = field(repr=False)


@dataclass(frozen=True)
class SensitiveCell:
    """A published sum that a rule for single cells calls sensitive; `key` as in `Place`."""

    query: int
    column: str
    key: tuple[tuple[str, Scalar], ...] | None = field(repr=False)
    rules: tuple[str, ...]


@dataclass(frozen=True)
class RemainingInterval:
    """What is left of the possible values of one record; None where there is no bound."""

    record: Scalar
    column: str
    low: Fraction | None = field(repr=False)
    high: Fraction | None = field(repr=False)
    prior_low: Fraction | None = field(repr=False)
    prior_high: Fraction | None = field(repr=False)

    @property
    def shrinkage(self) -> Fraction | None:
        """Which part of the prior range is excluded; None where that had no end."""
        ends = (self.low, self.high, self.prior_low, self.prior_high)
        if any(end is None for end in ends):
            return None
        low, high, prior_low, prior_high = (end for end in ends if end is not None)
        if prior_high == prior_low:
            return Fraction(0)
        return 1 - (high - low) / (prior_high - prior_low)


@dataclass(frozen=True)
class RowsShown(RefusedQuery):
    """A statement that shows private values, or something computed from them, row by row."""


@dataclass(frozen=True)
class Release:
    """One version of the table, and the numbers of the statements about it.

    `log` is what their log is called in the names of statements, empty for the newest version. Of
    an older one also how many people have joined since, how many have left, and how many private
    values of the others have changed; None for the newest.
    """

    file: str
    log: str
    queries: tuple[int, ...]
    records: int
    joined: int | None = None
    left: int | None = None
    changed: int | None = None


@dataclass(frozen=True)
class AcrossReleases:
    """How many people only several releases together expose: who joined, who left, and others."""

    joined: int = 0
    left: int = 0
    stayed: int = 0


@dataclass(frozen=True, repr=False)
class Audited:
    """Everything an audit found."""

    verdict: Verdict
    records: int
    queries: int
    equations: int
    rank: int
    consistent: bool | None
    exposed: tuple[Exposed, ...]
    refused: tuple[RefusedQuery, ...]
    assumptions: tuple[str, ...]
    seconds: float
    people: People
    statements: tuple[str, ...]
    titles: tuple[str | None, ...] = ()
    tight: tuple[RemainingInterval, ...] = ()
    groups: tuple[Group, ...] = ()
    missing: tuple[MissingValue, ...] = ()
    undecided: tuple[Scalar, ...] = ()
    unchecked: tuple[Scalar, ...] = ()
    reasons: tuple[OpenReason, ...] = ()
    bounds: tuple[RemainingInterval, ...] = ()
    insider_exposed: tuple[InsiderExposed, ...] = ()
    approximate: tuple[Approximate, ...] = ()
    sensitive_cells: tuple[SensitiveCell, ...] = ()
    exposed_if_exact: tuple[ExposedIfExact, ...] = ()
    witness: Witnessed | None = None
    repair: "Repaired | None" = None
    releases: tuple[Release, ...] = ()
    across: AcrossReleases | None = None
    interrupted: bool = False
    undeclared: tuple[str, ...] = ("bounds", "integer")
    """Which of these are known of not all private numbers, and would decide more."""

    def __repr__(self) -> str:
        """The verdict, and how large it was; never a value."""
        return (
            f"<Audited: {self.verdict}, {self.queries} queries, {self.records} records, "
            f"{len(self.exposed)} exposed>"
        )


@dataclass(frozen=True)
class Withheld:
    """A row of a statement: the statement's number, and the keys of the row as it shows them.

    With `column` it is the number of that column in the row, or without a row the whole column.
    """

    query: int
    cell: tuple[tuple[str, Scalar], ...] | None = field(compare=False, repr=False)
    row: ShownRow | None = field(default=None, repr=False)  # None: the whole statement
    column: str | None = None

    @property
    def rank(self) -> tuple[int, int, tuple[tuple[bool, float, str], ...]]:
        """Where the row stands: by statement, then by keys, whatever order an engine gives."""
        if self.row is None:
            return self.query, -1, ()
        return self.query, self.row.site, tuple(map(_rank, self.row.values))


def _rank(value: Scalar) -> tuple[bool, float, str]:
    number = float(value) if isinstance(value, int | float | Decimal) else 0.0
    return value is None, number, str(value)


@dataclass(frozen=True, repr=False)
class Repaired:
    """What of a log can be published: the rows withheld, the SQL of the rest, and its own audit.

    `dropped` are the statements of which nothing is left, and those that could not be audited.
    """

    withheld: tuple[Withheld, ...]
    dropped: tuple[int, ...]
    sql: str
    audited: Audited
    cells_before: int
    file: Path | None = None

    def __repr__(self) -> str:
        """How much is left; the statements may name values."""
        return f"<Repaired: {self.cells_after} of {self.cells_before} rows are left>"

    @property
    def cells_after(self) -> int:
        """How many rows about secrets are left."""
        return self.cells_before - sum(each.column is None for each in self.withheld)

    @property
    def is_safe(self) -> bool:
        """Whether the audit of what is left exposes nobody, and decides about everybody."""
        return self.audited.verdict is Verdict.NONE_EXPOSED
