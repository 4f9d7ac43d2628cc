"""Extraction: the boundary of a linear classifier, taken through nothing but its labels.

Source     Source document 000's protocol, reduced to labels; Lowd and Meek's line searches where
           labels carry no noise, the one-bit filter where they do.
Choice     The ends of the first bracket are asked again: two labels for one point mean noise. After
           Lowd and Meek's attack, points close to what it found are asked; a wrong one among them
           means noise that the first look missed, or a boundary that is not flat. Then the filter
           goes on with everything that was asked.
Check      A boundary that fits is no proof that the classifier is linear, and a wrong label is no
           proof that it is not. A wrong label asked again tells them apart: noise changes its mind,
           a curved boundary does not.
Cost       At most about 21 (n + 1) queries without noise, all checks included; with noise, as many
           as it is given.
"""

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from casemate.attack.extract.boundary import (
    Boundary,
    CountedClassifier,
    Floats,
    Label,
    OutOfQueries,
    PointBox,
    Predict,
    slide_to_height,
)
from casemate.attack.extract.lowd_meek import LowdMeek, NoisyLabels
from casemate.attack.extract.noisy import LabelFilter, OneBitFilter, Retraining, with_one
from casemate.errors import Misconfigured

MOST_REASKED_LABELS = 40
"""Wrong labels that are asked again."""

LEAST_EXPECTED_CHANGES = 5.0
"""Labels that have to be expected to change before it means anything that none does."""

UNFORESEEN_ERROR_SHARE = 0.01
"""A share of labels that may be wrong in ways that no model of the noise foresees."""

DISAGREEMENT_DEVIATIONS = 5.0
"""Standard deviations by which labels may disagree with what the noise explains."""


@dataclass(frozen=True)
class BoundaryCheck:
    """What fresh points said."""

    points: int
    agreement: float
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
        return asking.remaining <= count
    near = min(30 * angle * math.sqrt(size), 0.3)
    unit = found.unit()
    anywhere = random.uniform(-1, 1, (min(count, asking.remaining), size))
    side = np.where(np.arange(len(anywhere)) % 2, near, -near)
    points = slide_to_height(anywhere, unit, side)
    points = points[np.abs(unit.heights(points)) > near / 2]  # the cube may end before
    return bool((asking.ask(points) == unit.above(points)).all())


def check_boundary(
    asking: CountedClassifier,
    found: Boundary,
    learner: LabelFilter | None,
    fresh: int,
    random: np.random.Generator,
) -> BoundaryCheck:
    """Ask fresh points; where labels seemed noisy, some of the queries ask for wrong ones again."""
    fresh = min(fresh, asking.remaining)
    again = 0 if learner is None else min(MOST_REASKED_LABELS, fresh // 4)
    points = random.uniform(-1, 1, (fresh - again, asking.box.dimension))
    agree = asking.ask(points) == found.above(points)
    right = np.ones(len(points)) if learner is None else _agreement_chances(learner, points)
    spread = math.sqrt(float((right * (1 - right)).sum()))
    flat = agree.sum() >= right.sum() - DISAGREEMENT_DEVIATIONS * spread - 1e-9
    repeats = _repeats_errors(asking, found, learner, again)
    flat = flat and not _disagrees_beyond_noise(asking, found, learner)
    share = float(agree.mean()) if len(agree) else 1.0
    return BoundaryCheck(len(points), share, repeats, bool(flat) and not repeats)


def _agreement_chances(learner: LabelFilter, points: Floats) -> Floats:
    """How likely each point is to have the label that the boundary says."""
    height = np.abs(with_one(points) @ learner.mean) / math.sqrt(2)
    inside = np.array([1 - 0.5 * math.erfc(each) for each in height.tolist()])
    return np.asarray(learner.flips + (1 - 2 * learner.flips) * inside, np.float64)


def _disagrees_beyond_noise(
    asking: CountedClassifier, found: Boundary, learner: LabelFilter | None
) -> bool:
    """Whether the labels seen while learning disagree far more often than the noise explains."""
    if learner is None:
        return False
    points, labels = asking.observations()
    right = np.minimum(_agreement_chances(learner, points), 1 - UNFORESEEN_ERROR_SHARE)
    wrong = float((labels != found.above(points)).sum())
    expected, spread = float((1 - right).sum()), float((right * (1 - right)).sum())
    allowed = DISAGREEMENT_DEVIATIONS * math.sqrt(spread) + UNFORESEEN_ERROR_SHARE * len(points)
    return wrong > expected + allowed


def _repeats_errors(
    asking: CountedClassifier, found: Boundary, learner: LabelFilter | None, count: int
) -> bool:
    """Whether labels that the noise made wrong are as wrong when they are asked again."""
    if learner is None:
        return False
    points, labels = asking.observations()
    wrong = np.flatnonzero(labels != found.above(points))
    surest = wrong[np.argsort(-np.abs(found.heights(points[wrong])))][:count]
    changed = asking.ask(points[surest]) != labels[surest]
    expected = float(_agreement_chances(learner, points[surest]).sum())
    return expected >= LEAST_EXPECTED_CHANGES and int(changed.sum()) < expected / 8


# The extraction ---------------------------------------------------------------------------------


NOISY_QUERIES_PER_UNKNOWN = 500
"""Queries for each unknown that noisy labels get by themselves."""

NOISELESS_QUERIES_PER_UNKNOWN = 21
"""Queries for each unknown that suffice without noise."""

MOST_FRESH_POINTS = 200
DEFAULT_ANGLE, FINEST_ANGLE = 1e-5, 1e-10


class ExtractLearnerName(StrEnum):
    """The learners that can be asked for."""

    LOWD_MEEK = "lowd-meek"
    FILTER = "filter"
    RETRAINING = "retraining"


class BoundaryLearner(Protocol):
    """Something that asks a classifier and believes in better and better boundaries."""

    name: str
    model: LabelFilter | None
    """What it believes about the noise, where it allows for any."""

    def rounds(self, asking: CountedClassifier) -> Iterator[Boundary]:
        """The boundary believed after each round of questions."""


@dataclass(frozen=True, eq=False)
class Extracted:
    """What was learnt about a classifier, and what it cost."""

    box: PointBox
    found: Boundary
    truth: Boundary | None
    labels: tuple[Label, Label]
    learner: str
    queries: int
    noise: float
    """The standard deviation of the labels' noise, as a distance from the boundary."""
    flips: float
    """The share of labels that are wrong however far away a point is."""
    checked: BoundaryCheck | None
    history: tuple[tuple[int, Boundary], ...]
    seconds: float
    finished: bool = True

    @property
    def angle(self) -> float | None:
        """The angle to the true boundary."""
        return None if self.truth is None else self.found.angle(self.truth)

    @property
    def offset(self) -> float | None:
        """How far the boundary is from the true one at the middle of the box."""
        if self.truth is None or math.isnan(self.truth.intercept):
            return None
        inner = self.box.boundary_to_cube(self.found), self.box.boundary_to_cube(self.truth)
        return inner[0].offset(inner[1]) * self.box.half

    @property
    def agreement(self) -> float | None:
        """The share of fresh points whose label the boundary foretells."""
        return None if self.checked is None else self.checked.agreement

    @property
    def linear(self) -> bool | None:
        """Whether the labels are those of a flat boundary, noise aside; None where unchecked."""
        return None if self.checked is None else self.checked.linear


def extract(
    predict: Predict,
    dimension: int,
    *,
    bounds: tuple[float, float] = (-1.0, 1.0),
    queries: int | None = None,
    truth: Boundary | None = None,
    learner: ExtractLearnerName | None = None,
    random: np.random.Generator | None = None,
) -> Extracted:
    """Extract a classifier of points with `dimension` coordinates; see `Extracted`.

    >>> found = extract(lambda points: points[:, 0] > 2 * points[:, 1], 2)
    >>> found.learner, found.queries <= 63, found.found.weights.round(4)
    ('lowd-meek', True, array([ 0.4472, -0.8944]))
    """
    if queries is not None and queries < 2:
        raise ValueError(f"a boundary needs at least 2 queries, got {queries}")
    box = PointBox(dimension, *bounds)
    return _Extraction(predict, box, queries, learner, random or np.random.default_rng()).run(truth)


@dataclass
class _Extraction:
    predict: Predict
    box: PointBox
    queries: int | None
    learner: ExtractLearnerName | None
    random: np.random.Generator
    history: list[tuple[int, Boundary]] = field(default_factory=list)
    used: BoundaryLearner | None = None

    def run(self, truth: Boundary | None) -> Extracted:
        """Learn, then check on fresh points, unless somebody interrupts it."""
        start = time.process_time()
        unknowns = self.box.dimension + 1
        self.limit = NOISY_QUERIES_PER_UNKNOWN * unknowns if self.queries is None else self.queries
        fresh = max(1, min(MOST_FRESH_POINTS, self.limit // (10 if self.queries is None else 20)))
        self.asking = CountedClassifier(self.predict, self.box, max(2, self.limit - fresh))
        examined, finished = None, True
        try:
            self._learn()
            examined = self._examine()
        except KeyboardInterrupt:
            finished = False
            if not self.history:
                raise
        return self._result(truth, examined, finished, time.process_time() - start)

    def _learn(self) -> None:
        if self.learner is ExtractLearnerName.FILTER:
            self._follow(OneBitFilter(self.random))
        elif self.learner is ExtractLearnerName.RETRAINING:
            self._follow(Retraining(self.random))
        elif self.learner is ExtractLearnerName.LOWD_MEEK:
            self._follow(LowdMeek(self.random, self._precision, repeats=0))
        elif not self._try_noiseless():
            self._follow(OneBitFilter(self.random))

    @property
    def _noiseless_queries(self) -> int:
        return NOISELESS_QUERIES_PER_UNKNOWN * (self.box.dimension + 1)

    @property
    def _precision(self) -> float:
        """Fine enough by itself; with more queries than that takes, as fine as they allow."""
        many = self.queries is not None and self.queries > self._noiseless_queries
        return FINEST_ANGLE if many else DEFAULT_ANGLE

    def _try_noiseless(self) -> bool:
        """Whether labels carry no noise and the boundary is flat, having tried to believe it."""
        lowd_meek = LowdMeek(self.random, self._precision)
        held = min(12, 1 + self.box.dimension, self.asking.limit // 10)
        self.asking.limit -= held
        try:
            self._follow(lowd_meek)
        except NoisyLabels:
            return False
        finally:
            self.asking.limit += held
        found, usual = self.history[-1][1], self._noiseless_queries
        held = min(held, max(3, usual - self.asking.count - 2))  # fewer where the start was hard
        return close_points_agree(self.asking, found, lowd_meek.reached, held, self.random)

    def _follow(self, learner: BoundaryLearner) -> None:
        """Let a learner ask until it is done or there are no queries left."""
        self.used = learner
        try:
            for found in learner.rounds(self.asking):
                self.history.append((self.asking.count, found))
        except OutOfQueries:
            return

    def _examine(self) -> BoundaryCheck:
        """Ask fresh points with what was set aside, or where it was quick, with what is left."""
        assert self.used is not None  # it has learnt
        self.asking.limit = self.limit
        fresh = min(MOST_FRESH_POINTS, self.asking.remaining)
        usual = self._noiseless_queries
        if (
            isinstance(self.used, LowdMeek)
            and self.queries is None
            and self.asking.count < 2 * usual
        ):
            fresh = min(fresh, max(2, usual - self.asking.count))
        return check_boundary(self.asking, self.history[-1][1], self.used.model, fresh, self.random)

    def _result(
        self, truth: Boundary | None, examined: BoundaryCheck | None, finished: bool, seconds: float
    ) -> Extracted:
        assert self.used is not None  # whoever has a history has a learner
        model = None if examined is not None and examined.repeats else self.used.model
        history = [
            (count, self.box.boundary_from_cube(self.asking.orient(found)))
            for count, found in self.history
        ]
        return Extracted(
            self.box,
            history[-1][1],
            truth,
            self.asking.sides(),
            self.used.name,
            self.asking.count,
            0.0 if model is None else model.scale * self.box.half,
            0.0 if model is None else model.flips,
            examined,
            tuple(history),
            seconds,
            finished,
        )


# The truth to compare with, from a file ---------------------------------------------------------


def read_truth(path: Path, dimension: int) -> Boundary:
    """Weights, and where it is there, the intercept (otherwise it is not a number).

    A JSON object has `weights` and may have `intercept`; a list, or plain numbers, may end with it.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"--truth {path} cannot be read") from None
    numbers = _numbers(_parse_numbers(text), path)
    if len(numbers) not in (dimension, dimension + 1):
        raise Misconfigured(
            f"--truth {path} has {len(numbers)} numbers; expected {dimension} weights, "
            f"and perhaps an intercept"
        )
    if not all(math.isfinite(each) for each in numbers) or not any(numbers[:dimension]):
        raise Misconfigured(f"--truth {path}: weights must be finite and not all 0")
    intercept = numbers[dimension] if len(numbers) > dimension else math.nan
    return Boundary(np.array(numbers[:dimension], np.float64), intercept)


def _parse_numbers(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.replace(",", " ").split()


def _numbers(value: Any, path: Path) -> list[float]:
    if isinstance(value, Mapping):
        last = [value["intercept"]] if value.get("intercept") is not None else []
        weights = value.get("weights")
        value = [*weights, *last] if isinstance(weights, list) else None
    if isinstance(value, int | float):
        value = [value]
    if isinstance(value, Sequence) and not isinstance(value, str):
        try:
            return [float(each) for each in value]
        except (TypeError, ValueError):
            value = None
    raise Misconfigured(
        f"--truth {path} is neither numbers nor JSON such as "
        f'{{"weights": [1, -2], "intercept": 0.5}}'
    )
