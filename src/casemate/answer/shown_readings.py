"""From the numbers that a question asked for to the results of its aggregates.

Guarantee  Wherever every number is within its bounds, so is the result: one question covers all
           its parts, so their bounds hold at once. Docstrings say what else enters.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from casemate.answer.outcome import Estimate
from casemate.answer.shown_number import Band, Noised, band_of

Estimates = Sequence[Sequence[Estimate]]
"""By part and then by group: each number in units of its part."""

USUAL_SKEW = 0.125
"""How far the mean inside a bin usually is from its middle, as a share of half its width."""


class Reading(Protocol):
    """How one aggregate is read in each group."""

    @property
    def needed(self) -> Mapping[int, int]:
        """How many cells of which parts one result is made of."""
        ...

    def read(self, estimates: Estimates, group: int) -> Noised:
        """The result in one group, in its real worth."""
        ...


@dataclass(frozen=True)
class CountReading:
    """COUNT: its own number; nobody counts below zero."""

    part: int

    @property
    def needed(self) -> Mapping[int, int]:
        """One cell."""
        return {self.part: 1}

    def read(self, estimates: Estimates, group: int) -> Noised:
        """The count as it was answered, unrounded."""
        found = estimates[self.part][group].above(0.0)
        answer, session = (band_of(found, level) for level in (False, True))
        return Noised.of(float(found.value), found.error, answer, session)


@dataclass(frozen=True)
class SumReading:
    """SUM: middles of cells added up; the truth is off by no more than the slack of its records."""

    part: int
    slack: int | None
    unit: Fraction

    @property
    def needed(self) -> Mapping[int, int]:
        """The sum and its slack."""
        return {self.part: 1} | ({} if self.slack is None else {self.slack: 1})

    def read(self, estimates: Estimates, group: int) -> Noised:
        """The sum in its real worth."""
        answer, session = (self.band(estimates, group, level) for level in (False, True))
        value, error = self.value(estimates, group), self.error(estimates, group)
        return Noised.of(value, error, answer, session)

    def value(self, estimates: Estimates, group: int) -> float:
        """The number itself."""
        return estimates[self.part][group].value * float(self.unit)

    def band(self, estimates: Estimates, group: int, session: bool) -> Band | None:
        """The bounds of the sum, its slack included."""
        band = band_of(estimates[self.part][group], session)
        slack: Band | None = (0.0, 0.0)
        if self.slack is not None:
            slack = band_of(estimates[self.slack][group].above(0.0), session)
        if band is None or slack is None:
            return None
        unit = float(self.unit)
        return (band[0] - slack[1]) * unit, (band[1] + slack[1]) * unit

    def error(self, estimates: Estimates, group: int) -> float | None:
        """The typical error: of the number, and of taking middles for means."""
        found = estimates[self.part][group]
        if found.error is None:
            return None
        return math.hypot(found.error, self.skew(estimates, group)) * float(self.unit)

    def skew(self, estimates: Estimates, group: int) -> float:
        """What taking middles for means usually adds, in units."""
        if self.slack is None:
            return 0.0
        return USUAL_SKEW * max(0.0, estimates[self.slack][group].value)


@dataclass(frozen=True)
class AverageReading:
    """AVG: a count and a sum around the centre of the declared range.

    Its bounds are those of the quotient over both bounds; the declared range where nobody may be
    there. NULL where the count rounds to nobody.
    """

    count: int
    sum: SumReading
    centre: Fraction
    low: float
    high: float

    @property
    def needed(self) -> Mapping[int, int]:
        """The count, the sum and its slack."""
        return {self.count: 1} | dict(self.sum.needed)

    def read(self, estimates: Estimates, group: int) -> Noised:
        """The mean, within the declared range."""
        answer, session = (self._band(estimates, group, level) for level in (False, True))
        people = estimates[self.count][group]
        if round(people.value) <= 0:
            return Noised.of(None, None, answer, session)
        offset = self.sum.value(estimates, group) / people.value
        error = self._error(estimates, group, offset)
        return Noised.of(self._within(offset), error, answer, session)

    def _error(self, estimates: Estimates, group: int, offset: float) -> float | None:
        """That of the sum around its ratio where it is known, else as if both erred apart."""
        people, total = estimates[self.count][group], estimates[self.sum.part][group]
        around = total.ratio_error
        if around is None:
            return _quotient_error(self.sum.error(estimates, group), offset, people)
        skew = self.sum.skew(estimates, group)
        return math.hypot(around, skew) * float(self.sum.unit) / people.value

    def _within(self, offset: float) -> float:
        return min(self.high, max(self.low, float(self.centre) + offset))

    def _band(self, estimates: Estimates, group: int, session: bool) -> Band | None:
        people = band_of(estimates[self.count][group], session)
        total = self.sum.band(estimates, group, session)
        if people is None or total is None:
            return None
        if people[0] <= 0:
            return self.low, self.high
        offsets = [end / count for end in total for count in people]
        return self._within(min(offsets)), self._within(max(offsets))


def _quotient_error(error: float | None, offset: float, people: Estimate) -> float | None:
    if error is None or people.error is None:
        return None
    return math.hypot(error, offset * people.error) / people.value
