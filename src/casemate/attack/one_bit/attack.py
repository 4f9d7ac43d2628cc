"""The attack on a table through yes/no answers: totals, from one noisy bit a query.

Source     Source document 000: an adversary who answers statistical queries online with nothing but
           the bits of a threshold oracle.
Method     `table_oracle` (the table as a secret vector), `streams` (random weightings of its
           groups), `choice` (who learns), `limit` (the best anybody can do). What it comes to
           stands beside that limit. The stream goes by in blocks, so that an attack of any length
           takes the same memory.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from casemate.attack.one_bit.choice import (
    KnownNoise,
    OneBitLearnerName,
    StreamLearner,
    choose_learner,
    learner_for,
)
from casemate.attack.one_bit.laws import Law, parse_law
from casemate.attack.one_bit.limit import COUNTS_BELOW, Kind, LeastErrors
from casemate.attack.one_bit.oracle import Bits, Floats
from casemate.attack.one_bit.streams import Weighting, draw_queries
from casemate.attack.one_bit.table_oracle import (
    DEFAULT_DIMENSIONS,
    Bounds,
    GroupTotals,
    TableOracle,
    read_totals,
)
from casemate.errors import Misconfigured
from casemate.table import Policy, Table


@dataclass(frozen=True)
class Moment:
    """The average error and limit of all queries up to some number of them."""

    queries: int
    error: float
    limit: float


@dataclass(frozen=True)
class StreamErrors:
    """Averages over a stream, in the unit of the private column.

    `limit` is that of thresholds at the median where `kind` is "none": an edge of the noise then
    lets a learner do better than any such figure, and there is no van Trees bound.
    """

    error: float
    root_mean_square: float
    baseline: float  # answering one half of everything
    limit: float
    van_trees: float | None  # a bound on root mean square errors
    full_limit: float | None  # of a learner that sees whole noisy answers
    kind: Kind

    @property
    def counts(self) -> bool:
        """Whether the stream is long enough for a ratio to the limit to mean something."""
        return 0 < self.limit < COUNTS_BELOW * self.baseline

    @property
    def ratio(self) -> float | None:
        """The error over the limit, where that counts."""
        return self.error / self.limit if self.counts else None


@dataclass(frozen=True)
class GroupValue:
    """What is believed of the mean of one group's values, which lies between `low` and `high`."""

    name: str
    records: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class OneBitFound:
    """An attack, how well it went, and what it was told.

    `values` has the groups that the queries can tell apart from all others; `inside` says how many
    of their intervals hold the true mean. `finished` is False where somebody interrupted it.
    """

    totals: GroupTotals
    law: Law
    noise: str
    learner: OneBitLearnerName
    told: KnownNoise
    weights: Weighting
    confidence: float
    queries: int
    errors: StreamErrors
    curve: tuple[Moment, ...]
    values: tuple[GroupValue, ...]
    inside: int
    seconds: float
    finished: bool = True

    @property
    def late_ratio(self) -> float | None:
        """The ratio without the first tenth of the stream, where that counts.

        A bit is at most one bit: while the noise is small beside what is unknown, nobody reaches
        the limit, and that search is over soon.
        """
        early = [each for each in self.curve if 10 * each.queries <= self.queries]
        if not (early and self.errors.counts):
            return None
        first, last = early[-1], self.curve[-1]
        error = last.queries * last.error - first.queries * first.error
        return error / (last.queries * last.limit - first.queries * first.limit)

    def __repr__(self) -> str:
        """How large it was; never what was found."""
        return f"<OneBitFound: {self.queries} queries about {len(self.totals.groups)} groups>"


# The attack -------------------------------------------------------------------------------------


NUMBERS_PER_BLOCK = 1 << 20
"""Numbers that are drawn at a time: a query has one for each group."""

POINTS_PER_DECADE = 5
"""How many points the curve of errors has between two powers of ten."""

UNSEEN_ROUNDING = 1e-9
"""What part of a group may lie outside what the queries span, by rounding."""

Progress = Callable[[int], None]
"""Told after each block how many queries it had."""


@dataclass(frozen=True)
class OneBitOptions:
    """Who learns, what the attacker is told of the noise, and how queries are drawn.

    Without `weights` they are even, except for bisection, which needs nearly one group a query.
    """

    learner: OneBitLearnerName = OneBitLearnerName.AUTO
    told: KnownNoise = KnownNoise.LAW
    weights: Weighting | None = None
    confidence: float = 0.9

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise Misconfigured(
                f"a confidence of {self.confidence:g} must lie between 0 and 1; give for example "
                f"0.9"
            )


class OneBitAttack:
    """Attacks through a threshold oracle over a table.

    >>> found = OneBitAttack.of("hospital", noise="laplace:1", queries=2_000, dimensions=3,
    ...                         random=np.random.default_rng(1))
    >>> found.learner.value, found.errors.kind, found.errors.error < found.errors.baseline / 5
    ('kalman', 'median', True)
    """

    @staticmethod
    def of(
        table: Table | Policy | str | Path,
        *,
        noise: Law | str,
        queries: int,
        private: str | None = None,
        dimensions: int = DEFAULT_DIMENSIONS,
        bounds: Bounds | None = None,
        options: OneBitOptions | None = None,
        random: np.random.Generator | None = None,
        progress: Progress | None = None,
    ) -> OneBitFound:
        """Ask a table about `queries` random weightings of its groups, one bit each.

        `noise` is the law on a total, in the column's unit, as a value or as LAW:SCALE.
        """
        if queries < 1:
            raise Misconfigured(f"--queries {queries} leaves nothing to ask; give 1 or more")
        law = parse_law(noise) if isinstance(noise, str) else noise
        totals = read_totals(table, private, dimensions, bounds)
        run = _AttackRun(totals, law, queries, options or OneBitOptions(), random)
        finished = run.run_stream(progress)
        return run.result(noise if isinstance(noise, str) else law.name, finished)


class _Reached(NamedTuple):
    """Where a stream stands after a block: averages, and which groups can be told apart."""

    moment: Moment
    errors: StreamErrors
    told: Bits


class _AttackRun:
    """One attack while it goes on."""

    def __init__(
        self,
        totals: GroupTotals,
        law: Law,
        queries: int,
        options: OneBitOptions,
        random: np.random.Generator | None,
    ) -> None:
        self.start = time.process_time()
        self.totals, self.law, self.wanted, self.options = totals, law, queries, options
        groups = len(totals.groups)
        self.name = choose_learner(options.learner, options.told, law, queries, groups)
        self.weights = options.weights or _weighting(self.name)
        stream, noise, own = (random or np.random.default_rng()).spawn(3)
        self.stream, self.oracle = stream, TableOracle(totals, law, noise)
        self.learner: StreamLearner = learner_for(
            self.name, options.told, law, totals.reach, queries=queries, random=own
        )
        self.limits = LeastErrors(law, np.eye(groups))
        self.sums = np.zeros(3)  # of errors, of their squares, of errors without any oracle
        self.spanned = np.zeros((groups, groups))
        self.curve: list[Moment] = []
        self.reached: _Reached | None = None

    def run_stream(self, progress: Progress | None) -> bool:
        """Ask and learn until the end; whether nobody interrupted it."""
        try:
            for count, marked in _blocks(
                self.wanted, max(1, NUMBERS_PER_BLOCK // len(self.totals.groups))
            ):
                self._ask(count)
                self.reached = self._state()  # at once: an interrupt finds the last whole block
                if marked:
                    self.curve.append(self.reached.moment)
                if progress is not None:
                    progress(count)
        except KeyboardInterrupt:
            if self.reached is None:
                raise
            return False
        return True

    def _ask(self, count: int) -> None:
        reach = self.totals.reach
        queries = draw_queries(self.weights, reach, count, self.stream)
        answers = self.learner.follow(queries, self.oracle.noisy(queries))
        truth = queries @ self.totals.means
        off, blind = np.abs(answers - truth), np.abs(queries.sum(axis=1) / 2 - truth)
        self.limits.add(queries)
        self.sums += off.sum(), (off**2).sum(), blind.sum()
        self.spanned += (queries / reach).T @ (queries / reach)

    def _state(self) -> "_Reached":
        asked = self.limits.queries
        error, square, blind = (self.sums / asked).tolist()
        errors = StreamErrors(
            error=error,
            root_mean_square=math.sqrt(square),
            baseline=blind,
            limit=self.limits.mean,
            van_trees=self.limits.root_mean_square or None,
            full_limit=self.limits.full_mean or None,
            kind=self.limits.kind,
        )
        moment = Moment(asked, error, self.limits.mean)
        return _Reached(moment, errors, identifiable(self.spanned))

    def result(self, noise: str, finished: bool) -> OneBitFound:
        """What there is by now."""
        assert self.reached is not None  # nobody comes here before the first query
        if self.curve[-1:] != [self.reached.moment]:
            self.curve.append(self.reached.moment)
        values, inside = self._values(self.reached.told)
        return OneBitFound(
            totals=self.totals,
            law=self.law,
            noise=noise,
            learner=self.name,
            told=self.options.told,
            weights=self.weights,
            confidence=self.options.confidence,
            queries=self.reached.moment.queries,
            errors=self.reached.errors,
            curve=tuple(self.curve),
            values=values,
            inside=inside,
            seconds=time.process_time() - self.start,
            finished=finished,
        )

    def _values(self, told: Bits) -> tuple[tuple[GroupValue, ...], int]:
        """The belief about each group that the queries can see, inside the column's bounds."""
        ends = self.learner.ends(NormalDist().inv_cdf((1 + self.options.confidence) / 2))
        value, low, high = (np.clip(each, 0.0, 1.0) for each in ends)
        groups = self.totals.groups
        found = tuple(
            GroupValue(
                groups.names[j],
                int(groups.sizes[j]),
                *(self.totals.value(float(each[j])) for each in (value, low, high)),
            )
            for j in np.flatnonzero(told)
        )
        inside = told & (low <= self.totals.means) & (self.totals.means <= high)
        return found, int(inside.sum())


def identifiable(spanned: Floats) -> Bits:
    """Which coordinates lie in the space of the queries, whose products are summed up here.

    >>> identifiable(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]])).tolist()
    [False, False, True]
    """
    sizes, directions = np.linalg.eigh(spanned)
    unseen = directions[:, sizes <= sizes[-1] * 1e-12]
    return np.asarray((unseen**2).sum(axis=1) < UNSEEN_ROUNDING)


def _weighting(name: OneBitLearnerName) -> Weighting:
    return Weighting.SINGLE if name is OneBitLearnerName.BISECTION else Weighting.EVEN


def _blocks(queries: int, most: int) -> Iterator[tuple[int, bool]]:
    """How many queries to ask at a time, and after which of them the curve has a point."""
    steps = range(math.floor(POINTS_PER_DECADE * math.log10(queries)) + 1)
    marks = {round(10 ** (step / POINTS_PER_DECADE)) for step in steps} | {queries}
    for before, after in pairwise([0, *sorted(marks)]):
        for start in range(before, after, most):
            stop = min(after, start + most)
            yield stop - start, stop == after
