"""Lowd and Meek's attack: the boundary of a linear classifier whose labels carry no noise.

Source     Lowd and Meek, "Adversarial Learning" (2005): line searches for the boundary, one for
           each coordinate. The label of x - c v is the sign of w . x + b - c (w . v): along a
           direction v with w . v = 1 a classifier is the threshold oracle of source document 000,
           with an intercept, and in a unit of thresholds that nobody knows.
Method     From a point on the boundary each coordinate is moved by a known step, and the boundary
           is searched again along one direction: how much further it lies is that coordinate's
           weight. The direction is the signs of the weights, along which the boundary always
           crosses the cube and the weights add up to 1, so the base point needs no search to the
           end. All coordinates are halved together, one batch a round.
Cost       About 17 n + 30 queries for an angle of 1e-5, and one more a coordinate for each bit.
Departure  The attack of 2005 doubles its steps from each axis, in unbounded space; a box is asked
           here, so a search that would leave it starts again with a smaller step.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.attack.extract.boundary import (
    Bits,
    Boundary,
    CountedClassifier,
    Floats,
    bisect_segment,
    find_two_sides,
    perpendicular_bisector,
)
from casemate.attack.extract.noisy import LabelFilter

COORDINATE_STEP = 0.9
"""How far a coordinate is moved; less than 1, so that the base point may be off."""

BRACKET_REPEATS = 2
MOST_ROUNDS = 200
LEAST_BRACKET_WIDTH = 1e-15


class NoisyLabels(Exception):
    """One point has had two labels, so no bisection can be trusted; never leaves an attack."""


@dataclass
class LowdMeek:
    """Noise-free extraction to an angle of about `precision`."""

    random: np.random.Generator
    precision: float = 1e-5
    repeats: int = BRACKET_REPEATS
    name: str = "lowd-meek"
    reached: float = math.inf
    """The angle that the brackets allow so far."""
    model: LabelFilter | None = None

    def rounds(self, asking: CountedClassifier) -> Iterator[Boundary]:
        """Better and better boundaries."""
        below, above = find_two_sides(asking, self.random)
        yield perpendicular_bisector(below, above)
        size = len(below)
        times = 4 + math.ceil(math.log2(size) / 2)
        below, above = bisect_segment(asking, below, above, times)
        yield perpendicular_bisector(below, above)
        near = (below + above) / 2
        signs = _signs(asking, near)
        yield Boundary(signs, -float(signs @ near))
        low, high = self._level(asking, signs)
        yield Boundary(signs, -(low + high) / 2)
        lines = _LineSearches(asking, signs, low, high)
        spread = math.sqrt(12 / size) / (1.1 + 0.8 / math.sqrt(size))  # of an error in a bracket
        for _ in range(MOST_ROUNDS):
            length = float(np.linalg.norm(lines.boundary().weights))
            if not lines.search(self.precision * spread * COORDINATE_STEP * length):
                break
            if lines.bracketed:
                yield (found := lines.boundary())
                self.reached = lines.width / (
                    spread * COORDINATE_STEP * float(np.linalg.norm(found.weights))
                )

    def _level(self, asking: CountedClassifier, signs: Floats) -> tuple[float, float]:
        """Where the boundary crosses the line from corner to corner, to an eighth of a weight."""
        times = math.ceil(math.log2(16 * len(signs)))
        below, above = bisect_segment(asking, -signs, signs, times)
        again = np.array([below, above] * self.repeats)
        if (asking.ask(again) != np.tile([False, True], self.repeats)).any():
            raise NoisyLabels
        return float(below @ signs) / len(signs), float(above @ signs) / len(signs)


def _signs(asking: CountedClassifier, near: Floats) -> Floats:
    """The sign of every weight: the side on which a step from near the boundary ends."""
    steps = np.where(near > 0, -1.0, 1.0)
    up = asking.ask(near + np.diag(steps))
    return np.where(up, steps, -steps)


class _LineSearches:
    """The searches of all coordinates, halved together.

    Along the signs the boundary crosses at a level. With one coordinate moved back towards the
    middle it crosses further out, by the share of that coordinate's weight times the step. Levels
    are counted outwards from the middle, on the side where the boundary lies.
    """

    def __init__(self, asking: CountedClassifier, signs: Floats, low: float, high: float) -> None:
        size = len(signs)
        self._asking, self._signs, self._side = asking, signs, 1.0 if low + high >= 0 else -1.0
        ends = sorted((self._side * low, self._side * high))
        self._start, self._most = ends[0], ends[1]
        self._steps = np.full(size, COORDINATE_STEP)
        self._low = np.full(size, self._start)
        self._reach = np.full(size, 1.25 * COORDINATE_STEP / size)  # 1.25 times an average weight
        self._high = np.minimum(self._most + self._reach, 1.0)
        self._low_known = np.zeros(size, np.bool_)
        self._high_known = np.zeros(size, np.bool_)

    @property
    def bracketed(self) -> bool:
        """Whether every line has an end known to lie beyond the boundary."""
        return bool(self._high_known.all())

    @property
    def width(self) -> float:
        """The widest bracket, for a step of full length."""
        return float(((self._high - self._low) * COORDINATE_STEP / self._steps).max())

    def search(self, width: float) -> bool:
        """One question for every line whose bracket is wider, for a full step; False if none is."""
        wide = self._high - self._low > np.maximum(
            width * self._steps / COORDINATE_STEP, LEAST_BRACKET_WIDTH
        )
        open_ = wide | ~self._high_known | ~self._low_known
        if not open_.any():
            return False
        # A low end is taken on trust until the boundary turns out to lie close to it.
        doubtful = ~self._low_known & (self._high - self._low < self._low_trust)
        at = np.where(doubtful, self._low, (self._low + self._high) / 2)
        at = np.where(self._high_known, at, self._high)
        beyond = np.zeros(len(at), np.bool_)
        beyond[open_] = self._beyond(np.flatnonzero(open_), at[open_])
        self._update_brackets(open_, at, beyond, doubtful & self._high_known)
        return True

    @property
    def _low_trust(self) -> float:
        return 1 / (12 * len(self._low))

    def _beyond(self, lines: NDArray[np.intp], levels: Floats) -> Bits:
        """Whether each level lies beyond the boundary on its line."""
        signs, side = self._signs, self._side
        points = side * levels[:, None] * signs
        points[np.arange(len(lines)), lines] -= side * signs[lines] * self._steps[lines]
        above = self._asking.ask(points)
        return above if side > 0 else ~above

    def _update_brackets(self, asked: Bits, at: Floats, beyond: Bits, at_low: Bits) -> None:
        """Move the ends of the brackets by what was answered."""
        further = asked & ~beyond & ~self._high_known
        self._high = np.where(asked & beyond, at, self._high)
        self._high_known |= asked & beyond
        self._low_known |= asked & ~beyond
        self._low = np.where(asked & ~beyond, at, self._low)
        self._stretch(further)
        self._reopen_below(asked & beyond & at_low)

    def _stretch(self, lines: Bits) -> None:
        """Look twice as far; at the wall of the cube, start again with a smaller step."""
        walled = lines & (self._high >= 1.0)
        self._reach = np.where(lines, 2 * self._reach, self._reach)
        self._high = np.where(lines, np.minimum(self._low + self._reach, 1.0), self._high)
        smaller = np.maximum(0.5 * min(1.0, 1.0 - self._most), 1e-3) * self._steps
        self._steps = np.where(walled, smaller, self._steps)
        self._low = np.where(walled, self._start, self._low)
        self._low_known &= ~walled
        self._reach = np.where(walled, 1.25 * smaller / len(lines), self._reach)
        self._high = np.where(walled, np.minimum(self._most + self._reach, 1.0), self._high)

    def _reopen_below(self, lines: Bits) -> None:
        """The sign of a small weight was wrong: its boundary lies before the low end."""
        self._reach = np.where(lines, 2 * self._low_trust, self._reach)
        back = np.maximum(self._low - self._reach, COORDINATE_STEP - 1)
        self._low = np.where(lines, back, self._low)

    def boundary(self) -> Boundary:
        """The boundary through the middles of all brackets."""
        levels, signs = (self._low + self._high) / 2, self._signs
        # Along the signs the weights add up to 1, which says where the base is.
        base = ((levels / self._steps).sum() - 1) / (1 / self._steps).sum()
        shares = (levels - base) / self._steps
        return Boundary(signs * shares, -self._side * float(base))
