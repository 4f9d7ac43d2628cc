"""Numbers as they are shown: a value, what is proven of it, and a typical error."""

import math
from dataclasses import dataclass
from typing import Self

from casemate.answer.outcome import Estimate
from casemate.query.expression import Scalar

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
