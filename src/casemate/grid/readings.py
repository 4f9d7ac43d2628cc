"""From the numbers that a question asked for to the results of its aggregates.

An `Estimate` is what is known of one number, in units, and an `Outcome` all of a question's; a
`Reading` makes of them what an aggregate shows, a `Noised`: a value, what is proven of it, and a
typical error.

Guarantee  Wherever every number is within its bounds, so is the result: one question covers all
           its parts, so their bounds hold at once. Docstrings say what else enters.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any, Protocol, Self

from casemate.query.language import Scalar


class Origin(StrEnum):
    """Where an answer comes from."""

    SURROGATE = "surrogate"  # the stand-in's, and the gate let it pass
    MEASURED = "measured"  # a fresh measurement of the table, with noise
    CACHED = "cached"  # the same question was answered before
    UNVERIFIED = "unverified"  # the stand-in's, and nothing checked it


class ProofSource(StrEnum):
    """What bounds are proven by; of several, a number has the last that its parts need."""

    TABLES = "tables"  # those that were measured before the first question
    NOISE = "noise"  # that of a measurement of its own, or none at all
    IMPLIED = "implied"  # by what tables prove of fewer columns, and the gate
    GATE = "gate"  # it compared the stand-in with the table


Ratio = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]
"""A mean in units, around the centre: its ends for this answer, and for all of a session; and an
estimate of it with its typical error."""


@dataclass(frozen=True)
class Estimate:
    """One number: its proven bounds at the stated confidence, and a typical error, a guess.

    `session_lo` and `session_hi` hold for all answers of a dataset at once. All are None where
    nothing is proven; `proof` says by what.
    """

    value: float
    lo: float | None = None
    hi: float | None = None
    error: float | None = None
    session_lo: float | None = None
    session_hi: float | None = None
    ratio_error: float | None = None  # of a sum that will be divided, around its ratio
    proof: ProofSource | None = None
    ratio: Ratio | None = None  # of a sum that will be divided: between which quotients that is

    def above(self, least: float) -> Self:
        """The same number, of which it is known that it is not below this."""
        ends = (self.lo, self.hi, self.session_lo, self.session_hi)
        lo, hi, first, last = (None if end is None else max(end, least) for end in ends)
        value = max(self.value, least)
        return replace(self, value=value, lo=lo, hi=hi, session_lo=first, session_hi=last)

    def with_guess(self, value: float, error: float) -> Self:
        """A better guess of the same number, as far as the bounds allow it."""
        return replace(self, value=self.within(value), error=error)

    def within(self, value: float) -> float:
        """The nearest number that the bounds allow."""
        low = value if self.lo is None else max(value, self.lo)
        return low if self.hi is None else min(low, self.hi)


@dataclass(frozen=True)
class Outcome:
    """The numbers of every part of a question, cell by cell.

    What is proven of them is proven at `confidence`; None where nothing has been kept of it.
    `declared` says that each number is proven by itself, since it was named beforehand.
    """

    parts: tuple[tuple[Estimate, ...], ...]
    origin: Origin
    confidence: float | None = None
    declared: bool = False

    def to_text(self) -> str:
        """As it is kept in the transcript."""
        cells = [[list(asdict(each).values()) for each in part] for part in self.parts]
        plain = {"origin": self.origin, "confidence": self.confidence, "parts": cells}
        plain |= {"declared": True} if self.declared else {}
        return json.dumps(plain, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What `to_text` wrote."""
        plain = json.loads(text)
        parts = tuple(tuple(map(_estimate, part)) for part in plain["parts"])
        return cls(parts, Origin(plain["origin"]), plain["confidence"], "declared" in plain)

    def again(self) -> Self:
        """The same numbers, asked for again."""
        return replace(self, origin=Origin.CACHED)


def _estimate(plain: Sequence[Any]) -> Estimate:
    """What the transcript kept; the older kind has no proof."""
    found = Estimate(*plain[:PROOF_PLACE])
    proof, ratio = (*plain[PROOF_PLACE:], None, None)[:2]
    if ratio is not None:
        alone, session, value = (tuple(each) for each in ratio)
        found = replace(found, ratio=(alone, session, value))
    return found if proof is None else replace(found, proof=ProofSource(proof))


PROOF_PLACE = 7
"""Where a kept estimate has its proof."""

# Numbers as they are shown ----------------------------------------------------------------------


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
    proof: ProofSource | None = None

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


def joint_proof(proofs: Iterable[ProofSource | None]) -> ProofSource | None:
    """The proof of a number that is made of several: None where one of them has none."""
    found = list(proofs)
    order = list(ProofSource)
    if not found or any(each is None for each in found):
        return None
    return max((each for each in found if each is not None), key=order.index)


def band_of(estimate: Estimate, session: bool) -> Band | None:
    """The bounds of one cell, for this answer or for the session."""
    low, high = (
        (estimate.session_lo, estimate.session_hi) if session else (estimate.lo, estimate.hi)
    )
    return None if low is None or high is None else (low, high)


# Counts, sums and averages ----------------------------------------------------------------------


Estimates = Sequence[Sequence[Estimate]]
"""By part and then by group: each number in units of its part."""

Room = tuple[int, int]
"""The parts that the truth lies between where cells are cut: no less, and no more."""

USUAL_SKEW = 0.125
"""How far the mean inside a bin usually is from its middle, as a share of half its width; that of
some records from the mean of all, as a share of half the declared range; and a quantile inside a
bin from where it would be if values were spread evenly, as a share of the width."""


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
    """COUNT: its own number; nobody counts below zero.

    Where cells are cut, the truth is between the count of whole cells and that of touched ones.
    """

    part: int
    room: Room | None = None

    @property
    def needed(self) -> Mapping[int, int]:
        """One cell, or one of either end."""
        return dict.fromkeys(self.room or (self.part,), 1)

    def read(self, estimates: Estimates, group: int) -> Noised:
        """The count as it was answered, unrounded."""
        found = estimates[self.part][group]
        answer, session = (self.band(estimates, group, level) for level in (False, True))
        value = max(0.0, found.value)
        error = joint_error(found.error, self.snapping_error(estimates, group))
        return Noised.of(clamp(value, answer) if self.room else value, error, answer, session)

    def band(self, estimates: Estimates, group: int, session: bool) -> Band | None:
        """The bounds of the count, cut cells included."""
        ends = band_between(estimates, self.room or (self.part, self.part), group, session)
        return None if ends is None else (max(0.0, ends[0]), max(0.0, ends[1]))

    def snapping_error(self, estimates: Estimates, group: int) -> float:
        """What moving limits to the ends of cells usually adds."""
        return spread_between(estimates, self.room, group, estimates[self.part][group].value)


@dataclass(frozen=True)
class SumReading:
    """SUM: middles of cells added up; the truth is off by no more than the slack of its records.

    Where cells are cut, it is between the least and the most that records may add instead.
    """

    part: int
    slack: int | None
    unit: Fraction
    room: Room | None = None

    @property
    def needed(self) -> Mapping[int, int]:
        """The sum and its slack, or one cell of either end."""
        if self.room is not None:
            return dict.fromkeys(self.room, 1)
        return {self.part: 1} | ({} if self.slack is None else {self.slack: 1})

    def read(self, estimates: Estimates, group: int) -> Noised:
        """The sum in its real worth."""
        answer, session = (self.band(estimates, group, level) for level in (False, True))
        value = self.value(estimates, group)
        error = joint_error(self.error(estimates, group), self._snapping_error(estimates, group))
        return Noised.of(clamp(value, answer) if self.room else value, error, answer, session)

    def value(self, estimates: Estimates, group: int) -> float:
        """The number itself."""
        return estimates[self.part][group].value * float(self.unit)

    def band(self, estimates: Estimates, group: int, session: bool) -> Band | None:
        """The bounds of the sum, its slack and cut cells included."""
        unit = float(self.unit)
        if self.room is not None:
            ends = band_between(estimates, self.room, group, session)
            return None if ends is None else (ends[0] * unit, ends[1] * unit)
        band = band_of(estimates[self.part][group], session)
        slack: Band | None = (0.0, 0.0)
        if self.slack is not None:
            slack = band_of(estimates[self.slack][group].above(0.0), session)
        if band is None or slack is None:
            return None
        return (band[0] - slack[1]) * unit, (band[1] + slack[1]) * unit

    def error(self, estimates: Estimates, group: int) -> float | None:
        """The typical error: of the number, and of taking middles for means."""
        error = joint_error(estimates[self.part][group].error, self.skew(estimates, group))
        return None if error is None else error * float(self.unit)

    def skew(self, estimates: Estimates, group: int) -> float:
        """What taking middles for means usually adds, in units."""
        return USUAL_SKEW * self._slack(estimates, group)

    def _slack(self, estimates: Estimates, group: int) -> float:
        return 0.0 if self.slack is None else max(0.0, estimates[self.slack][group].value)

    def _snapping_error(self, estimates: Estimates, group: int) -> float:
        """What moving limits to the ends of cells usually adds."""
        value, slack = estimates[self.part][group].value, self._slack(estimates, group)
        return spread_between(estimates, self.room, group, value, slack) * float(self.unit)


@dataclass(frozen=True)
class AverageReading:
    """AVG: a count and a sum around the centre of the declared range.

    Its bounds are those of the quotient over both bounds; the declared range where nobody may be
    there. NULL where the count rounds to nobody.
    """

    count: CountReading
    sum: SumReading
    centre: Fraction
    low: float
    high: float

    @property
    def needed(self) -> Mapping[int, int]:
        """What the count and the sum are made of."""
        return {**self.count.needed, **self.sum.needed}

    def read(self, estimates: Estimates, group: int) -> Noised:
        """The mean, within the declared range."""
        answer, session = (self._band(estimates, group, level) for level in (False, True))
        people = estimates[self.count.part][group]
        if round(people.value) <= 0:
            return Noised.of(None, None, answer, session)
        offset = self.sum.value(estimates, group) / people.value
        error = self._error(estimates, group, offset)
        ratio, unit = self._ratio(estimates, group), float(self.sum.unit)
        if ratio is not None and error is not None and ratio[2][1] * unit < error:
            offset, error = (each * unit for each in ratio[2])
        value = clamp(self._within(offset), answer)
        return Noised.of(value, error, answer, session)

    def _error(self, estimates: Estimates, group: int, offset: float) -> float | None:
        """That of the sum around its ratio where it is known, else as if both erred apart.

        Records that a moved limit brings or takes change the mean by as far as theirs is off.
        """
        people, total = estimates[self.count.part][group], estimates[self.sum.part][group]
        if total.ratio_error is None:
            error = _quotient_error(self.sum.error(estimates, group), offset, people)
        else:
            skew = self.sum.skew(estimates, group)
            error = math.hypot(total.ratio_error, skew) * float(self.sum.unit) / people.value
        share = self.count.snapping_error(estimates, group) / people.value
        off = USUAL_SKEW * (self.high - self.low) / 2
        return joint_error(error, share * off)

    def _within(self, offset: float) -> float:
        return min(self.high, max(self.low, float(self.centre) + offset))

    def _band(self, estimates: Estimates, group: int, session: bool) -> Band | None:
        people = self.count.band(estimates, group, session)
        total = self.sum.band(estimates, group, session)
        if people is None or total is None:
            return None
        if people[0] <= 0:
            ends = self._ratio_ends(estimates, group, session)
            return self._within(ends[0]), self._within(ends[1])
        offsets = [end / count for end in total for count in people]
        low, high = self._ratio_ends(estimates, group, session)
        least, most = max(low, min(offsets)), min(high, max(offsets))
        if least > most:  # one of them is wrong, and the wider one says less
            least, most = min(offsets), max(offsets)
        return self._within(least), self._within(most)

    def _ratio_ends(self, estimates: Estimates, group: int, session: bool) -> Band:
        """Where the quotient itself was proven, whatever records are off middles."""
        ratio = self._ratio(estimates, group)
        if ratio is None:
            return -math.inf, math.inf
        low, high = ratio[session]
        return low * float(self.sum.unit), high * float(self.sum.unit)

    def _ratio(self, estimates: Estimates, group: int) -> Ratio | None:
        """What was proven of the quotient, if no cell is cut."""
        cut = self.sum.room is not None or self.count.room is not None
        return None if cut else estimates[self.sum.part][group].ratio


def joint_error(error: float | None, other: float) -> float | None:
    """The typical size of two errors that are independent; None where one is not known."""
    return None if error is None else math.hypot(error, other)


def _quotient_error(error: float | None, offset: float, people: Estimate) -> float | None:
    if error is None or people.error is None:
        return None
    return math.hypot(error, offset * people.error) / people.value


# Room for cut cells -----------------------------------------------------------------------------


def band_between(estimates: Estimates, room: Room, place: int, session: bool) -> Band | None:
    """From the lower end of what is no more than the truth to the upper end of what is no less."""
    least, most = (band_of(estimates[part][place], session) for part in room)
    return None if least is None or most is None else (least[0], max(least[0], most[1]))


def spread_between(
    estimates: Estimates, room: Room | None, place: int, value: float, slack: float = 0.0
) -> float:
    """How far from a value the truth usually is, if it lies anywhere in the room alike."""
    if room is None:
        return 0.0
    least, most = (estimates[part][place].value for part in room)
    below, above = max(0.0, value - slack - least), max(0.0, most - value - slack)
    if not below + above:
        return 0.0
    return math.sqrt((below**3 + above**3) / (3 * (below + above)))


def clamp(value: Any, ends: tuple[Any, Any] | None) -> Any:
    """A value within its bounds, which noise may have left; NULL, or without bounds, as it is."""
    if value is None or ends is None or None in ends:
        return value
    return min(max(value, ends[0]), ends[1])
