"""What is known of each number that a question asked for, in units, before it is shown as SQL.

Numbers as they are shown: a value, what is proven of it, and a typical error.
"""

import json
import math
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Self

from casemate.query.language import Scalar


class Origin(StrEnum):
    """Where an answer comes from."""

    SURROGATE = "surrogate"  # the stand-in's, and the gate let it pass
    MEASURED = "measured"  # a fresh measurement of the table, with noise
    CACHED = "cached"  # the same question was answered before
    UNVERIFIED = "unverified"  # the stand-in's, and nothing checked it


@dataclass(frozen=True)
class Estimate:
    """One number: its proven bounds at the stated confidence, and a typical error, a guess.

    `session_lo` and `session_hi` hold for all answers of a dataset at once. All are None where
    nothing is proven.
    """

    value: float
    lo: float | None = None
    hi: float | None = None
    error: float | None = None
    session_lo: float | None = None
    session_hi: float | None = None
    ratio_error: float | None = None  # of a sum that will be divided, around its ratio

    def above(self, least: float) -> Self:
        """The same number, of which it is known that it is not below this."""
        ends = (self.lo, self.hi, self.session_lo, self.session_hi)
        lo, hi, first, last = (None if end is None else max(end, least) for end in ends)
        value = max(self.value, least)
        return replace(self, value=value, lo=lo, hi=hi, session_lo=first, session_hi=last)

    def with_guess(self, value: float, error: float) -> Self:
        """A better guess of the same number, as far as the bounds allow it."""
        low = value if self.lo is None else max(value, self.lo)
        return replace(self, value=low if self.hi is None else min(low, self.hi), error=error)


@dataclass(frozen=True)
class Outcome:
    """The numbers of every part of a question, cell by cell.

    What is proven of them is proven at `confidence`; None where nothing has been kept of it.
    """

    parts: tuple[tuple[Estimate, ...], ...]
    origin: Origin
    confidence: float | None = None

    def to_text(self) -> str:
        """As it is kept in the transcript."""
        cells = [[list(asdict(each).values()) for each in part] for part in self.parts]
        plain = {"origin": self.origin, "confidence": self.confidence, "parts": cells}
        return json.dumps(plain, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What `to_text` wrote."""
        plain = json.loads(text)
        parts = tuple(tuple(Estimate(*each) for each in part) for part in plain["parts"])
        return cls(parts, Origin(plain["origin"]), plain["confidence"])

    def again(self) -> Self:
        """The same numbers, asked for again."""
        return replace(self, origin=Origin.CACHED)


# Shown number -----------------------------------------------------------------------------------


Band = tuple[float, float]
"""Two numbers with the truth between them."""


@dataclass(frozen=True)
class Noised:
    """One shown cell that came out of answers; like `Estimate`, of any type that SQL shows.

    `value` is None for NULL. Where nothing is proven the bounds are None.
    """

    value: Scalar
    lo: Scalar = None
    hi: Scalar = None
    error: float | None = None
    session_lo: Scalar = None
    session_hi: Scalar = None

    @classmethod
    def of(
        cls,
        value: Scalar,
        error: float | None,
        answer: tuple[Scalar, Scalar] | None,
        session: tuple[Scalar, Scalar] | None,
    ) -> Self:
        """From the bounds for this answer and those for the session."""
        return cls(value, *(answer or (None, None)), error, *(session or (None, None)))

    def band(self, session: bool) -> Band | None:
        """Its bounds, if they are numbers."""
        ends = (self.session_lo, self.session_hi) if session else (self.lo, self.hi)
        if any(each is None or isinstance(each, bool | str) for each in ends):
            return None
        try:
            low, high = (float(each) for each in ends)  # type: ignore[arg-type]  # refused below
        except TypeError:  # dates
            return None
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def band_of(estimate: Estimate, session: bool) -> Band | None:
    """The bounds of one cell, for this answer or for the session."""
    low, high = (
        (estimate.session_lo, estimate.session_hi) if session else (estimate.lo, estimate.hi)
    )
    return None if low is None or high is None else (low, high)
