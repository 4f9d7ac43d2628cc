"""The boundary of a linear classifier, the box of points it is asked about, and the asking.

All arithmetic of an extraction is done in the cube from -1 to 1, where directions and errors are of
one size; a box with ends of its own is stretched onto it and back.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Boundary:
    """Points are above it where weights . point + intercept > 0."""

    weights: Floats
    intercept: float

    @classmethod
    def of(cls, vector: Floats) -> "Boundary":
        """From weights and intercept in one vector."""
        return cls(np.array(vector[:-1]), float(vector[-1]))

    def heights(self, points: Floats) -> Floats:
        """How far each point is above it, in units of the weights."""
        return np.asarray(points @ self.weights + self.intercept, np.float64)

    def above(self, points: Floats) -> Bits:
        """Whether each point is above it."""
        return self.heights(points) > 0

    def opposite(self) -> "Boundary":
        """The same boundary with its sides exchanged."""
        return Boundary(-self.weights, -self.intercept)

    def unit(self) -> "Boundary":
        """The same boundary with weights of length 1."""
        length = float(np.linalg.norm(self.weights))
        return self if length == 0 else Boundary(self.weights / length, self.intercept / length)

    def angle(self, other: "Boundary") -> float:
        """The angle between two boundaries, from 0 to a right angle; which side is which is open.

        >>> Boundary(np.array([1.0, 0.0]), 0.0).angle(Boundary(np.array([-3.0, 0.0]), 1.0))
        0.0
        """
        one, two = self.unit().weights, other.unit().weights
        # The arc tangent is exact for small angles, where the arc cosine knows eight digits.
        ends = float(np.linalg.norm(one - two)), float(np.linalg.norm(one + two))
        return 2 * math.atan2(min(ends), max(ends))

    def offset(self, other: "Boundary") -> float:
        """How far apart two boundaries are along their normals, observations from the origin."""
        one, two = self.unit(), other.unit()
        same = 1.0 if one.weights @ two.weights >= 0 else -1.0
        return abs(one.intercept - same * two.intercept)


@dataclass(frozen=True)
class PointBox:
    """The points that may be asked about: every coordinate from `low` to `high`."""

    dimension: int
    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise ValueError(f"a point has at least 1 coordinate, got {self.dimension}")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a box needs finite ends, low < high, got {self.low}, {self.high}")

    @property
    def centre(self) -> float:
        """The middle of every coordinate."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """Half the width of the box."""
        return self.high / 2 - self.low / 2

    def from_cube(self, points: Floats) -> Floats:
        """Points of the cube as points of the box; never outside it."""
        return np.clip(self.centre + self.half * points, self.low, self.high)

    def boundary_from_cube(self, found: Boundary) -> Boundary:
        """A boundary of the cube as one of the box, with weights of length 1."""
        unit = found.unit()
        return Boundary(
            unit.weights, float(unit.intercept * self.half - self.centre * unit.weights.sum())
        )

    def boundary_to_cube(self, real: Boundary) -> Boundary:
        """A boundary of the box as one of the cube."""
        level = real.intercept + self.centre * float(real.weights.sum())
        return Boundary(self.half * real.weights, level)


def slide_to_height(points: Floats, boundary: Boundary, height: float | Floats = 0.0) -> Floats:
    """Points of the cube moved to a height above a boundary, or as near to it as the cube goes.

    Each slides towards the corner where the height changes fastest, so it stays in the cube, and
    reaches every height that the cube has.
    """
    off = boundary.heights(points) - height
    corner = -np.sign(off)[:, None] * np.sign(boundary.weights)
    beyond = boundary.heights(corner) - height
    share = np.divide(off, off - beyond, out=np.zeros(len(points)), where=off != beyond)
    return np.asarray(points + np.clip(share, 0.0, 1.0)[:, None] * (corner - points), np.float64)


def corners(random: np.random.Generator, count: int, dimension: int) -> Floats:
    """Random corners of the cube: of all points they say most about a boundary."""
    return random.choice(np.array([-1.0, 1.0]), size=(count, dimension))


# Asking for labels: each point is counted, and a label becomes a bit ----------------------------
#
# A classifier is anything that takes an array of points, one a row, and gives a label for each, as
# `predict` of scikit-learn does. Labels may be numbers or text; there are two of them.


Predict = Callable[[Floats], Any]
Label = int | float | str | bool


class OutOfQueries(Exception):
    """The classifier may not be asked as many points as that any more; never leaves an attack."""


@dataclass
class CountedClassifier:
    """A classifier with a count of the points it was asked, at most `limit` of them."""

    predict: Predict
    box: PointBox
    limit: int
    count: int = 0
    labels: list[Label] = field(default_factory=list)
    points: list[Floats] = field(default_factory=list)
    answers: list[Bits] = field(default_factory=list)

    @property
    def remaining(self) -> int:
        """How many more points may be asked."""
        return self.limit - self.count

    def ask(self, points: Floats) -> Bits:
        """Whether each point of the cube has another label than the first point ever asked."""
        if len(points) > self.remaining:
            raise OutOfQueries
        if not len(points):
            return np.zeros(0, np.bool_)
        self.count += len(points)  # before they are sent: an interrupted batch was asked as well
        found = read_labels(self.predict(self.box.from_cube(points)), len(points))
        for label in found:
            self._note_label(label)
        bits = np.array([label != self.labels[0] for label in found], np.bool_)
        self.points.append(points)
        self.answers.append(bits)
        return bits

    def _note_label(self, label: Label) -> None:
        if label in self.labels:
            return
        self.labels.append(label)
        if len(self.labels) > 2:
            shown = ", ".join(_quote_label(each) for each in self.labels)
            raise Misconfigured(
                f"the classifier gave more than two labels ({shown}); give one that answers "
                f"with one of two labels for each point, and with nothing else"
            )

    def observations(self) -> tuple[Floats, Bits]:
        """Everything that was asked, with the answers."""
        return np.concatenate(self.points), np.concatenate(self.answers)

    def sides(self) -> tuple[Label, Label]:
        """The label below a boundary and the one above it: the larger number, or the later word."""
        first, second = self.labels
        return (second, first) if self._backwards() else (first, second)

    def orient(self, found: Boundary) -> Boundary:
        """A boundary whose bits are opposite so that `sides` tells above from below."""
        return found.opposite() if self._backwards() else found

    def _backwards(self) -> bool:
        first, second = self.labels
        if isinstance(first, str) or isinstance(second, str):
            return str(first) > str(second)
        return first > second


def read_labels(answer: Any, count: int) -> Sequence[Label]:
    """What a classifier gave, as plain labels; it must be one for each point."""
    given = np.asarray(answer, dtype=object)  # numbers and text may stand side by side
    if given.shape not in ((count,), (count, 1)):
        shape = " x ".join(map(str, given.shape)) or "no list"
        raise Misconfigured(
            f"the classifier was asked for {count} labels and answered with {shape}; "
            f"it has to give one label for each point"
        )
    return [_label(each) for each in given.ravel().tolist()]


def _label(value: Any) -> Label:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, float) and not math.isfinite(value):
        raise Misconfigured("the classifier answered with a number that is not finite; no label")
    if not isinstance(value, int | float | str):
        raise Misconfigured(
            f"the classifier answered with a {type(value).__name__}; a label is a number or text"
        )
    return value


def _quote_label(label: Label) -> str:
    text = repr(label)
    return text if len(text) <= 40 else f"{text[:37]}..."


# A point on either side of a boundary, and then one near it -------------------------------------


ONE_LABEL_QUERY_LIMIT = 2_000
"""Points after which a classifier that has shown one label is taken to have no other."""


def find_two_sides(asking: CountedClassifier, random: np.random.Generator) -> tuple[Floats, Floats]:
    """A point of the first label and one of the other, by asking random points of the cube."""
    most = min(ONE_LABEL_QUERY_LIMIT, asking.remaining)
    while len(asking.labels) < 2 and asking.count < most:
        count = min(max(2, asking.count // 8), most - asking.count)
        asking.ask(_draw_points(random, count, asking.box.dimension, asking.count))
    if len(asking.labels) < 2:
        raise Misconfigured(_one_label(asking))
    points, other = asking.observations()
    return points[int(np.argmin(other))], points[int(np.argmax(other))]


def _one_label(asking: CountedClassifier) -> str:
    box = asking.box
    if not asking.labels:
        return "the classifier may be asked nothing; raise --queries"
    return (
        f"the classifier gave the same label to all {asking.count} points asked between "
        f"{box.low:g} and {box.high:g}, so no boundary was found; give other --bounds, or more "
        f"--queries"
    )


def _draw_points(random: np.random.Generator, count: int, dimension: int, before: int) -> Floats:
    """In turn two opposite corners, which a boundary near the middle tells apart, and two anywhere.

    >>> _draw_points(np.random.default_rng(0), 2, 3, 0).sum(axis=0)
    array([0., 0., 0.])
    """
    pairs = corners(random, (count + 1) // 2, dimension)
    every = np.stack([pairs, -pairs], axis=1).reshape(-1, dimension)[:count]
    anywhere = random.uniform(-1, 1, (count, dimension))
    second = (before + np.arange(count)) // 2 % 2 == 1
    return np.where(second[:, None], anywhere, every)


def perpendicular_bisector(below: Floats, above: Floats) -> Boundary:
    """The boundary half way between two points: the first guess of all."""
    across = above - below
    return Boundary(across, -float(across @ (below + above)) / 2)


def bisect_segment(
    asking: CountedClassifier, below: Floats, above: Floats, times: int
) -> tuple[Floats, Floats]:
    """The two sides brought together along the line between them, halving it each time."""
    for _ in range(times):
        middle = (below + above) / 2
        if asking.ask(middle[None, :])[0]:
            above = middle
        else:
            below = middle
    return below, above
