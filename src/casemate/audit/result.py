"""The result of an audit, as frozen values: what `casemate.audit/1` prints, field by field."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from casemate.audit.equations import Place
from casemate.audit.publication import RefusedQuery
from casemate.query.expression import Scalar


class Verdict(StrEnum):
    """What an audit comes to; what was refused or left out makes it incomplete."""

    EXPOSED = "exposed"
    NONE_EXPOSED = "none-exposed"
    INCOMPLETE = "incomplete"


class Proof(StrEnum):
    """How a value is known: by the equations alone, with bounds and types, or with extremes."""

    RANK = "rank"
    BOUNDS = "bounds"
    INTEGER = "integer"
    ORDER = "order"


@dataclass(frozen=True)
class Term:
    """A published number, and what it is multiplied by."""

    place: Place
    coefficient: int


@dataclass(frozen=True)
class Certificate:
    """Published numbers that, multiplied and added up, give `divisor` times one value."""

    terms: tuple[Term, ...]
    divisor: int


@dataclass(frozen=True)
class Exposed:
    """One value that everybody can compute; `by` is the statement that tipped it."""

    record: Scalar
    column: str
    value: Scalar | Fraction
    certificate: Certificate | None
    by: int | None
    proof: Proof


@dataclass(frozen=True)
class Group:
    """Records of which only the total is determined."""

    records: tuple[Scalar, ...]
    column: str
    total: Fraction | None


@dataclass(frozen=True)
class Interval:
    """What is left of the possible values of one record; None where there is no bound."""

    record: Scalar
    column: str
    low: Fraction | None
    high: Fraction | None
    prior_low: Fraction | None
    prior_high: Fraction | None

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
class Audited:
    """Everything an audit found."""

    verdict: Verdict
    records: int
    queries: int
    equations: int
    rank: int
    consistent: bool | None
    exposed: tuple[Exposed, ...]
    tight: tuple[Interval, ...]
    groups: tuple[Group, ...]
    undecided: tuple[Scalar, ...]
    unchecked: tuple[Scalar, ...]
    refused: tuple[RefusedQuery, ...]
    bounds: tuple[Interval, ...]
    assumptions: tuple[str, ...]
    seconds: float
