"""A table behind yes/no answers about weighted totals of a private column.

Source     Source document 000, section 2: a secret w in [0, 1]^D, an answer w . q, noise on it, and
           one bit that says whether it is above a threshold.
Reduction  Records are put into groups by public columns. A statement weighs each group by a number
           between 0 and 1, SUM(weight * x), with the same weight for all records of a group. Values
           scale to [0, 1] by the bounds of the column, so w has one coordinate for each group: the
           mean of its scaled values. A query has the weight times the number of records times the
           range, all of which is public: w . q is the total, in the column's own unit, above the
           least that it could be. Nothing is lost: the total is `total(q, w . q)` exactly.
Departure  Queries are not scaled to [0, 1] in turn. Learners that need no angles do not care, and
           the noise stays in the unit in which people speak of it.

The protocol of source document 000: a query, a number, a threshold, and one bit that comes back.

A secret w lies in [0, 1]^D. For each query q in [0, 1]^D the learner states its answer, an estimate
of w . q, and a threshold; the oracle says whether w . q plus fresh noise is above it. Learners see
nothing else. `Trail` is the transcript of a stream.

A secret vector behind yes/no answers: the database mechanism with its noise, and its oracle.

Source   Source document 000, section 2: the answer w . q, noise on it, one threshold a query.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.groups import RecordGroups, grouped
from casemate.attack.one_bit.laws import Law, parse_law
from casemate.attack.plan.language import read_language
from casemate.attack.private_column import private_column
from casemate.errors import Misconfigured
from casemate.query.engines import PROTECTED, quote
from casemate.query.language import NUMBERS
from casemate.query.records import Records
from casemate.table import Column, Policy, Table, opened_table
from casemate.table.sources import Series

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


def checked_basis(basis: Floats | None, dimension: int) -> Floats:
    """An orthonormal basis of the queries' space, one vector a row; None is all of the space."""
    given = np.eye(dimension) if basis is None else np.ascontiguousarray(basis, np.float64)
    if given.ndim != 2 or given.shape[1] != dimension:
        raise ValueError(f"need a basis of vectors of length {dimension}, got shape {given.shape}")
    if not np.allclose(given @ given.T, np.eye(len(given)), atol=1e-6):
        raise ValueError("need an orthonormal basis, one vector a row, and these are not")
    return given


class OneBitLearner(Protocol):
    """Something that answers queries and learns from one bit about each."""

    def answer(self, q: Floats) -> float:
        """Its estimate of w . q."""
        ...

    def threshold(self, q: Floats) -> float:
        """The number about which the oracle is asked: is w . q plus noise above it?"""
        ...

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Take note of the oracle's answer."""
        ...


class ThresholdOracle(Protocol):
    """One call a query: whether the noisy answer is above the threshold."""

    def above(self, q: Floats, threshold: float) -> bool:
        """Whether w . q plus fresh noise is above the threshold."""
        ...


class AnswerTrail(NamedTuple):
    """What was said about each query of a stream, in order; kernels fill it in as a tuple."""

    answers: Floats
    thresholds: Floats
    above: Bits

    @classmethod
    def empty(cls, count: int) -> Self:
        """Room for what is said about so many queries."""
        return cls(np.empty(count), np.empty(count), np.empty(count, np.bool_))

    def after(self, place: int) -> "AnswerTrail":
        """The room for the queries from this place on."""
        return AnswerTrail(self.answers[place:], self.thresholds[place:], self.above[place:])


def play(learner: OneBitLearner, oracle: ThresholdOracle, queries: Floats) -> AnswerTrail:
    """Put a learner before an oracle, one query after the other: the slow, obvious form."""
    trail = AnswerTrail.empty(len(queries))
    for place, q in enumerate(queries):
        trail.answers[place] = learner.answer(q)
        trail.thresholds[place] = learner.threshold(q)
        trail.above[place] = oracle.above(q, trail.thresholds[place])
        learner.learn(q, float(trail.thresholds[place]), bool(trail.above[place]))
    return trail


# Oracle -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NoisyOracle:
    """Says whether w . q plus fresh noise is above a threshold; without a law there is no noise."""

    w: Floats
    law: Law | None
    rng: np.random.Generator

    def above(self, q: Floats, threshold: float) -> bool:
        """One call: one bit."""
        return bool(self.noisy(q[None, :])[0] > threshold)

    def level(self, q: Floats, thresholds: Floats) -> int:
        """One call of an oracle with several answers: how many of the thresholds are passed."""
        return int(np.sum(self.noisy(q[None, :])[0] > thresholds))

    def bits(self, queries: Floats, thresholds: Floats) -> Bits:
        """One bit for each row; the same draws as one call after the other."""
        return np.asarray(self.noisy(queries) > thresholds)

    def noisy(self, queries: Floats) -> Floats:
        """Perturbed answers for a whole stream, for learners that run compiled.

        A learner may use each number for one comparison with its threshold, and nothing else.
        """
        truth = queries @ self.w
        return truth if self.law is None else truth + self.law.sample(self.rng, len(queries))


# One bit oracle ---------------------------------------------------------------------------------


Bounds = tuple[float, float]

DIMENSIONS = 16


@dataclass(frozen=True, eq=False, repr=False)
class GroupTotals:
    """The private column of a table as a secret: one mean for each group, scaled to [0, 1]."""

    private: str
    bounds: Bounds
    groups: RecordGroups
    means: Floats  # w

    @classmethod
    def of(
        cls,
        table: Table,
        private: str | None = None,
        dimensions: int = DIMENSIONS,
        bounds: Bounds | None = None,
    ) -> Self:
        """Read a table: its public columns for the groups, its private one for the secret.

        Numbers outside the bounds are moved to the nearest one; a missing number counts as 0, as
        in a sum, and is moved as well.
        """
        column = private_number(table.policy, private)
        low, high = bounds or _bounds(column)
        if not (np.isfinite([low, high]).all() and low < high):
            raise Misconfigured(
                f"the bounds {low:g}:{high:g} leave no range to scale by; give --bounds LO:HI with "
                f"LO below HI"
            )
        language = read_language(table.policy, table.source)
        _check(dimensions, language.count)
        groups = grouped(language, dimensions)
        read = Records(table.source).column(f"{quote(PROTECTED)}.{quote(column.name)}")
        scaled = (np.clip(_numbers(read), low, high) - low) / (high - low)
        means = np.bincount(groups.codes, scaled, minlength=len(groups)) / groups.sizes
        return cls(column.name, (low, high), groups, means)

    @property
    def range(self) -> float:
        """How far apart the bounds are."""
        return self.bounds[1] - self.bounds[0]

    @property
    def reach(self) -> Floats:
        """How much each group can add to a total at most, above the least."""
        return np.asarray(self.groups.sizes * self.range, np.float64)

    def total(self, q: Floats, answer: float) -> float:
        """What an answer w . q says about the total itself: SUM(weight * x)."""
        return answer + self.bounds[0] * float(np.sum(q)) / self.range

    def value(self, mean: float) -> float:
        """A mean of scaled values in the column's unit."""
        return self.bounds[0] + self.range * mean

    def __repr__(self) -> str:
        """How many groups there are; nothing about the secret."""
        return f"<GroupTotals: {len(self.groups)} groups of {len(self.groups.codes)} records>"


class TableOracle:
    """Says whether a weighted total of a table's private column, plus noise, is above a threshold.

    One call of `above` is one statement `SELECT SUM(weight * x) > threshold`, answered with noise
    on the sum; `law` None is an oracle without noise. Learners see `dimension`, `query` and bits.

    >>> oracle = TableOracle.of("hospital", dimensions=2)
    >>> oracle.dimension, oracle.totals.groups.names
    (2, ('ZIP <= 32453', 'ZIP > 32453'))
    >>> q = oracle.query([1, 1])
    >>> [oracle.above(q, total - oracle.totals.total(q, 0)) for total in (32, 33)]
    [True, False]
    """

    def __init__(
        self, totals: GroupTotals, law: Law | None, random: np.random.Generator | None = None
    ) -> None:
        self.totals, self.law = totals, law
        self._oracle = NoisyOracle(totals.means, law, random or np.random.default_rng())

    @classmethod
    def of(
        cls,
        table: Table | str | Path,
        *,
        private: str | None = None,
        noise: Law | str | None = None,
        dimensions: int = DIMENSIONS,
        bounds: Bounds | None = None,
        random: np.random.Generator | None = None,
    ) -> Self:
        """An oracle over a table, which is read once; `noise` is a law or LAW:SCALE."""
        law = parse_law(noise) if isinstance(noise, str) else noise
        return cls(read_totals(table, private, dimensions, bounds), law, random)

    @property
    def dimension(self) -> int:
        """How many groups there are, at most as many as were asked for."""
        return len(self.totals.groups)

    def query(self, weights: Floats | Sequence[float]) -> Floats:
        """The query of a weight between 0 and 1 for each group."""
        given = np.asarray(weights, np.float64)
        if given.shape != (self.dimension,) or not ((given >= 0) & (given <= 1)).all():
            raise ValueError(f"need {self.dimension} weights between 0 and 1, one for each group")
        return given * self.totals.reach

    def above(self, q: Floats, threshold: float) -> bool:
        """One call: one bit."""
        return self._oracle.above(q, threshold)

    def bits(self, queries: Floats, thresholds: Floats) -> Bits:
        """One bit for each row; the same draws as one call after the other."""
        return self._oracle.bits(queries, thresholds)

    def noisy(self, queries: Floats) -> Floats:
        """Noisy answers of a whole stream, for learners that run compiled and only compare them."""
        return self._oracle.noisy(queries)


def read_totals(
    table: Table | str | Path,
    private: str | None,
    dimensions: int = DIMENSIONS,
    bounds: Bounds | None = None,
) -> GroupTotals:
    """The secret of a table, which is opened if it is a path."""
    names = () if private is None or isinstance(table, Table) else (private,)
    with opened_table(table, names) as opened:
        return GroupTotals.of(opened, private, dimensions, bounds)


def private_number(policy: Policy, private: str | None) -> Column:
    """The private column that is meant; it has to be a number."""
    column = private_column(policy, private)
    if column.type not in NUMBERS:
        raise Misconfigured(
            f"the private column {column.name!r} is not numeric, so it has no totals; name a "
            f"column of numbers"
        )
    return column


def _bounds(column: Column) -> Bounds:
    """The bounds that the policy declares."""
    ends = (column.low, column.high) if column.values is None else _ends(column)
    if ends[0] is None or ends[1] is None:
        raise Misconfigured(
            f"nothing says between which numbers {column.name!r} lies; give --bounds LO:HI, or "
            f"`min` and `max` in a policy"
        )
    return float(str(ends[0])), float(str(ends[1]))


def _ends(column: Column) -> tuple[float | None, float | None]:
    numbers = [float(str(value)) for value in column.values or ()]
    return min(numbers, default=None), max(numbers, default=None)


def _check(dimensions: int, records: int) -> None:
    if dimensions < 1:
        raise Misconfigured(f"--dimensions {dimensions} is no number of groups; give 1 or more")
    if records < dimensions:
        raise Misconfigured(
            f"the table has {records} records, fewer than the {dimensions} groups that were asked "
            f"for; give --dimensions {max(records, 1)} or less"
        )


def _numbers(series: Series) -> Floats:
    """Numbers as floats; 0 where one is missing."""
    values = np.where(series.missing, 0.0, series.values).astype(np.float64)
    return np.where(np.isnan(values), 0.0, values)
