"""Finding a point on either side of a boundary, and then a point near it."""

import numpy as np

from casemate.attack.extract_asking import Asking
from casemate.attack.extract_boundary import Boundary, Floats, corners
from casemate.errors import Misconfigured

MOST = 2_000
"""Points after which a classifier that has shown one label is taken to have no other."""


def two_sides(asking: Asking, random: np.random.Generator) -> tuple[Floats, Floats]:
    """A point of the first label and one of the other, by asking random points of the cube."""
    most = min(MOST, asking.left)
    while len(asking.labels) < 2 and asking.count < most:
        count = min(max(2, asking.count // 8), most - asking.count)
        asking.ask(_spread(random, count, asking.box.dimension, asking.count))
    if len(asking.labels) < 2:
        raise Misconfigured(_one_label(asking))
    points, other = asking.seen()
    return points[int(np.argmin(other))], points[int(np.argmax(other))]


def _one_label(asking: Asking) -> str:
    box = asking.box
    if not asking.labels:
        return "the classifier may be asked nothing; raise --queries"
    return (
        f"the classifier gave the same label to all {asking.count} points asked between "
        f"{box.low:g} and {box.high:g}, so no boundary was found; give other --bounds, or more "
        f"--queries"
    )


def _spread(random: np.random.Generator, count: int, dimension: int, before: int) -> Floats:
    """In turn two opposite corners, which a boundary near the middle tells apart, and two anywhere.

    >>> _spread(np.random.default_rng(0), 2, 3, 0).sum(axis=0)
    array([0., 0., 0.])
    """
    pairs = corners(random, (count + 1) // 2, dimension)
    every = np.stack([pairs, -pairs], axis=1).reshape(-1, dimension)[:count]
    anywhere = random.uniform(-1, 1, (count, dimension))
    second = (before + np.arange(count)) // 2 % 2 == 1
    return np.where(second[:, None], anywhere, every)


def between(below: Floats, above: Floats) -> Boundary:
    """The boundary half way between two points: the first guess of all."""
    across = above - below
    return Boundary(across, -float(across @ (below + above)) / 2)


def narrowed(asking: Asking, below: Floats, above: Floats, times: int) -> tuple[Floats, Floats]:
    """The two sides brought together along the line between them, halving it each time."""
    for _ in range(times):
        middle = (below + above) / 2
        if asking.ask(middle[None, :])[0]:
            above = middle
        else:
            below = middle
    return below, above
