"""Checking what was extracted: points close to the boundary, fresh points, and points asked twice.

A boundary that fits is no proof that the classifier is linear, and a wrong label is no proof that
it is not. A wrong label asked again tells them apart: noise changes its mind, a curved boundary
does not.
"""

import math
from dataclasses import dataclass

import numpy as np

from casemate.attack.extract.boundary import Boundary, CountedClassifier, Floats, slid
from casemate.attack.extract.noisy import LabelFilter, with_one

AGAIN = 40
"""Wrong labels that are asked again."""

ENOUGH = 5.0
"""Labels that have to be expected to change before it means anything that none does."""

RARE = 0.01
"""A share of labels that may be wrong in ways that no model of the noise foresees."""

SURE = 5.0
"""Standard deviations by which labels may disagree with what the noise explains."""


@dataclass(frozen=True)
class Checked:
    """What fresh points said."""

    points: int
    agreement: float
    expected: float
    """The agreement that the noise found would explain, if the boundary is flat."""
    repeats: bool
    """Whether labels stay the same where the noise found would change them."""
    linear: bool


def close_points_agree(
    asking: CountedClassifier,
    found: Boundary,
    angle: float,
    count: int,
    random: np.random.Generator,
) -> bool:
    """Whether points as close to the boundary as its precision allows have the labels it says."""
    size = asking.box.dimension
    if math.isinf(angle):  # no bracket was ever closed: for want of queries, or of a boundary
        return asking.left <= count
    near = min(30 * angle * math.sqrt(size), 0.3)
    unit = found.unit()
    anywhere = random.uniform(-1, 1, (min(count, asking.left), size))
    side = np.where(np.arange(len(anywhere)) % 2, near, -near)
    points = slid(anywhere, unit, side)
    points = points[np.abs(unit.heights(points)) > near / 2]  # the cube may end before
    return bool((asking.ask(points) == unit.above(points)).all())


def checked(
    asking: CountedClassifier,
    found: Boundary,
    learner: LabelFilter | None,
    fresh: int,
    random: np.random.Generator,
) -> Checked:
    """Ask fresh points; where labels seemed noisy, some of the queries ask for wrong ones again."""
    fresh = min(fresh, asking.left)
    again = 0 if learner is None else min(AGAIN, fresh // 4)
    points = random.uniform(-1, 1, (fresh - again, asking.box.dimension))
    agree = asking.ask(points) == found.above(points)
    right = np.ones(len(points)) if learner is None else _right(learner, points)
    spread = math.sqrt(float((right * (1 - right)).sum()))
    flat = agree.sum() >= right.sum() - SURE * spread - 1e-9
    repeats = _repeat(asking, found, learner, again)
    flat = flat and not _unlikely(asking, found, learner)
    share = float(agree.mean()) if len(agree) else 1.0
    expected = float(right.mean()) if len(right) else 1.0
    return Checked(len(points), share, expected, repeats, bool(flat) and not repeats)


def _right(learner: LabelFilter, points: Floats) -> Floats:
    """How likely each point is to have the label that the boundary says."""
    height = np.abs(with_one(points) @ learner.mean) / math.sqrt(2)
    inside = np.array([1 - 0.5 * math.erfc(each) for each in height.tolist()])
    return np.asarray(learner.flips + (1 - 2 * learner.flips) * inside, np.float64)


def _unlikely(asking: CountedClassifier, found: Boundary, learner: LabelFilter | None) -> bool:
    """Whether the labels seen while learning disagree far more often than the noise explains."""
    if learner is None:
        return False
    points, labels = asking.seen()
    right = np.minimum(_right(learner, points), 1 - RARE)
    wrong = float((labels != found.above(points)).sum())
    expected, spread = float((1 - right).sum()), float((right * (1 - right)).sum())
    return wrong > expected + SURE * math.sqrt(spread) + RARE * len(points)


def _repeat(
    asking: CountedClassifier, found: Boundary, learner: LabelFilter | None, count: int
) -> bool:
    """Whether labels that the noise made wrong are as wrong when they are asked again."""
    if learner is None:
        return False
    points, labels = asking.seen()
    wrong = np.flatnonzero(labels != found.above(points))
    surest = wrong[np.argsort(-np.abs(found.heights(points[wrong])))][:count]
    changed = asking.ask(points[surest]) != labels[surest]
    expected = float(_right(learner, points[surest]).sum())
    return expected >= ENOUGH and int(changed.sum()) < expected / 8
