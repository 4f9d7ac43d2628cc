"""The exact privacy loss of sparse vector runs, summed over the integers and never sampled.

Source     The law of a run: the sum over the noise r on the threshold of P(r) times, for every
           question, P(it is answered as it was | r). The variants that fail it: Lyu, Su and Li,
           "Understanding the Sparse Vector Technique for Differential Privacy", PVLDB 10(6), 2017.
Guarantee  Every number is an interval that contains the true one. Terms are IEEE doubles made
           from correctly rounded 50-digit decimals; their rounding, their underflow and the terms
           outside the window are bounded and added: docs/derivations/sparse_vector.md.
Cost       One pass over a window of some hundred threshold scales for every output that is tried.
Departure  None: this is how the claims of `sparse_vector` are checked.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.privacy.mechanisms.sparse_vector import Calibration

UNIT = 2.0**-53  # relative error of one correctly rounded operation
PER_FACTOR = 16  # at most 9 roundings go into a table entry and its product; the rest is slack
REACH = 45  # exp(-45) is below UNIT
NOTHING = -(2**40)  # the power of two of what cannot happen: no product brings it back


class Enclosure(NamedTuple):
    """Two numbers with the true one between them."""

    lower: float
    upper: float


class ScaledNumbers(NamedTuple):
    """Numbers part * 2^power with 1/2 <= part < 1, or 0; they cannot underflow."""

    part: NDArray[np.float64]
    power: NDArray[np.int64]

    def times(self, other: "ScaledNumbers") -> "ScaledNumbers":
        """The products, each rounded once."""
        part, carry = np.frexp(self.part * other.part)
        return ScaledNumbers(part, self.power + other.power + carry)

    def at(self, where: NDArray[np.int64]) -> "ScaledNumbers":
        """The numbers at these positions."""
        return ScaledNumbers(self.part[where], self.power[where])

    def scaled(self, top: int) -> NDArray[np.float64]:
        """The numbers divided by 2^top, each within 2^-1074."""
        return np.ldexp(self.part, self.power - top)


@dataclass(frozen=True)
class RunOutput:
    """What a run said, by answer: each entry is a question's value less its threshold."""

    below: tuple[int, ...] = ()
    above: tuple[int, ...] = ()
    gaps: tuple[int, ...] = ()  # also less the gap, since only the difference enters the law

    @property
    def length(self) -> int:
        """The number of questions."""
        return len(self.below) + len(self.above) + len(self.gaps)

    @property
    def reach(self) -> int:
        """The largest number that occurs."""
        return max(map(abs, (0, *self.below, *self.above, *self.gaps)))


class RunLaw:
    """The law of runs with these two scales, for outputs of limited length and reach."""

    def __init__(
        self,
        threshold: Fraction,
        query: Fraction,
        length: int,
        reach: int,
        one_sided: bool = False,
    ) -> None:
        self.threshold, self.length, self.reach = threshold, length, reach
        self.radius = reach + math.ceil((REACH + length * math.log(2)) * float(threshold)) + 1
        if one_sided:  # so that no "below" is rarer than one half at the edge
            self.radius += math.ceil(query)
        law = _Geometric if one_sided else _Laplace
        self._mass = law(threshold, self.radius).mass(0, self.radius)
        self._query = law(query, self.radius + reach + 1)
        self._columns: dict[tuple[str, int], ScaledNumbers] = {}
        self._known: dict[RunOutput, Enclosure] = {}

    def log_probability(self, output: RunOutput) -> Enclosure:
        """The logarithm of the probability that a run says this."""
        if output.length > self.length or output.reach > self.reach:
            raise ValueError(
                f"this law covers {self.length} questions within {self.reach}, "
                f"got {output.length} within {output.reach}"
            )
        if output not in self._known:
            self._known[output] = self._sum(output)
        return self._known[output]

    def log_ratio(self, output: RunOutput, neighbour: RunOutput) -> Enclosure:
        """The loss of one output: its log probability less its neighbour's."""
        here, there = self.log_probability(output), self.log_probability(neighbour)
        return Enclosure(
            math.nextafter(here.lower - there.upper, -math.inf),
            math.nextafter(here.upper - there.lower, math.inf),
        )

    def _sum(self, output: RunOutput) -> Enclosure:
        product_of_all = reduce(ScaledNumbers.times, self._factors(output), self._mass)
        top = int(product_of_all.power.max())
        terms = product_of_all.scaled(top)
        total = float(terms.sum())  # at least 1/2, so what `scaled` lost is far below one UNIT
        rounding = (PER_FACTOR * (output.length + 2) + terms.size) * UNIT
        # Beyond the window the law of r decays by exp(-1/threshold) a step; of the other factors
        # some shrink, and each that grows was at least one half at the edge and is at most one.
        edge = float(terms[0] + terms[-1]) + 2.0**-1070
        outside = edge * 2.0**output.length * float(self.threshold)
        lower, upper = total * (1 - rounding), (total + outside) * (1 + 2 * rounding)
        return Enclosure(_log(lower, top).lower, _log(upper, top).upper)

    def _factors(self, output: RunOutput) -> Iterator[ScaledNumbers]:
        """The probability of each answer, for each noise r on the threshold."""
        yield from (self._column(self._query.below, value) for value in output.below)
        yield from (self._column(self._query.above, value) for value in output.above)
        yield from (self._column(self._query.mass, value) for value in output.gaps)

    def _column(self, law: Callable[[int, int], ScaledNumbers], value: int) -> ScaledNumbers:
        key = law.__name__, value
        if key not in self._columns:
            self._columns[key] = law(-value, self.radius)
        return self._columns[key]


def law_of(calibration: Calibration, length: int, reach: int) -> RunLaw:
    """The law of the runs of a calibration."""
    noise = calibration.threshold, calibration.query
    return RunLaw(*noise, length, reach, calibration.one_sided)


def privacy_loss(
    calibration: Calibration, length: int, values: Iterable[int], *, gaps: bool = False
) -> Enclosure:
    """The worst loss of a run over all neighbouring sequences of at most `length` questions.

    A question's value less its threshold is one of `values`; a neighbour's may be any integer
    within the sensitivity. With `gaps` the positive answers are gaps, otherwise just positive.
    """
    choices = sorted(set(values))
    reach = max(map(abs, choices)) + calibration.sensitivity
    law = law_of(calibration, length, reach)
    losses = [
        law.log_ratio(output, neighbour)
        for output in _outputs(calibration.positives, length, choices, gaps)
        for neighbour in _neighbours(output, calibration)
    ]
    return Enclosure(max(loss.lower for loss in losses), max(loss.upper for loss in losses))


def _outputs(positives: int, length: int, values: Sequence[int], gaps: bool) -> Iterator[RunOutput]:
    """Every output up to the order of the questions, on which the law does not depend."""
    for fired in range(min(positives, length) + 1):
        for quiet in range(fired == 0, length - fired + 1):
            for below in combinations_with_replacement(values, quiet):
                for above in combinations_with_replacement(values, fired):
                    yield RunOutput(below, gaps=above) if gaps else RunOutput(below, above)


def _neighbours(output: RunOutput, calibration: Calibration) -> Iterator[RunOutput]:
    """The neighbours that can be worst.

    A larger value only makes "below" less likely and "above" more likely, so those two take the
    extreme change; a gap may change either way.
    """
    far = calibration.sensitivity
    directions = [(0, far), (-far, 0)] if calibration.monotone else [(-far, far)]
    for least, most in directions:
        below = tuple(value + most for value in output.below)
        above = tuple(value + least for value in output.above)
        for gaps in product(*(range(value + least, value + most + 1) for value in output.gaps)):
            yield RunOutput(below, above, tuple(sorted(gaps)))


class _Laplace:
    """Tables of the discrete Laplace law: P(x) proportional to p^|x| with p = exp(-1/scale)."""

    def __init__(self, scale: Fraction, radius: int) -> None:
        side = math.isqrt(radius + 1) + 1
        fine, coarse = _powers(scale, 1, side), _powers(scale, side, side)
        part, carry = np.frexp(np.outer(coarse.part, fine.part).ravel())
        power = np.add.outer(coarse.power, fine.power).ravel() + carry
        powers = ScaledNumbers(part, power)  # p^0, p^1, p^2, ...
        with localcontext(Context(prec=50)):
            p = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
            point, tail = float((1 - p) / (1 + p)), float(1 / (1 + p))
        self._point = powers.times(_constant(point))  # P(X = m) for m >= 0
        self._tail = powers.times(_constant(tail))  # P(X >= m) for m >= 1

    def mass(self, shift: int, radius: int) -> ScaledNumbers:
        """P(X = r + shift) for each r in the window."""
        return self._point.at(np.abs(_window(shift, radius)))

    def above(self, shift: int, radius: int) -> ScaledNumbers:
        """P(X >= r + shift) for each r in the window."""
        where = _window(shift, radius)
        rare, common = self._tail.at(np.abs(where)), self._tail.at(np.abs(1 - where))
        part, power = np.frexp(1 - common.scaled(0))
        return ScaledNumbers(
            np.where(where >= 1, rare.part, part), np.where(where >= 1, rare.power, power)
        )

    def below(self, shift: int, radius: int) -> ScaledNumbers:
        """P(X < r + shift), which is P(X >= 1 - r - shift) by symmetry."""
        mirrored = self.above(1 - shift, radius)
        return ScaledNumbers(mirrored.part[::-1], mirrored.power[::-1])


class _Geometric:
    """Tables of the geometric law: P(x) = (1 - p) p^x for x >= 0, with p = exp(-1/scale)."""

    def __init__(self, scale: Fraction, radius: int) -> None:
        self._at_least = _powers(scale, 1, radius + 1)  # P(X >= m) for m >= 0
        with localcontext(Context(prec=50)):
            rate = Decimal(scale.denominator) / Decimal(scale.numerator)
            self._point = self._at_least.times(_constant(float(1 - (-rate).exp())))
            less = [float(1 - (-rate * m).exp()) for m in range(radius + 1)]
        part, power = np.frexp(less)
        self._less = ScaledNumbers(part, np.where(part > 0, power, NOTHING))  # P(X < m)

    def mass(self, shift: int, radius: int) -> ScaledNumbers:
        """P(X = r + shift) for each r in the window."""
        where = _window(shift, radius)
        found = self._point.at(np.abs(where))
        return ScaledNumbers(
            np.where(where >= 0, found.part, 0.0), np.where(where >= 0, found.power, NOTHING)
        )

    def above(self, shift: int, radius: int) -> ScaledNumbers:
        """P(X >= r + shift) for each r in the window."""
        return self._at_least.at(np.maximum(_window(shift, radius), 0))

    def below(self, shift: int, radius: int) -> ScaledNumbers:
        """P(X < r + shift) for each r in the window."""
        return self._less.at(np.maximum(_window(shift, radius), 0))


def _powers(scale: Fraction, step: int, count: int) -> ScaledNumbers:
    """exp(-step k / scale) for k below count, each correctly rounded or next to it."""
    with localcontext(Context(prec=50)):
        octaves = step * Decimal(scale.denominator) / (Decimal(scale.numerator) * Decimal(2).ln())
        powers = [-int(octaves * k) for k in range(count)]
        parts = [float((-(octaves * k + n) * Decimal(2).ln()).exp()) for k, n in enumerate(powers)]
    part, carry = np.frexp(parts)
    return ScaledNumbers(part, np.array(powers) + carry)


def _constant(number: float) -> ScaledNumbers:
    part, power = np.frexp([number])
    return ScaledNumbers(part, power)


def _window(shift: int, radius: int) -> NDArray[np.int64]:
    return np.arange(-radius + shift, radius + shift + 1)


def _log(number: float, exponent: int) -> Enclosure:
    """The logarithm of number * 2^exponent, correctly rounded and then widened by one step."""
    with localcontext(Context(prec=40)):
        exact = float(Decimal(number).ln() + exponent * Decimal(2).ln())
    return Enclosure(math.nextafter(exact, -math.inf), math.nextafter(exact, math.inf))
