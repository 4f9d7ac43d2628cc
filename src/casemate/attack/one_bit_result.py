"""What an attack through yes/no answers comes to, beside the best that anybody could do."""

from dataclasses import dataclass

from casemate.attack.one_bit_learners import LearnerName, Told
from casemate.attack.one_bit_oracle import GroupTotals
from casemate.attack.one_bit_stream import Weighting
from casemate.solve.one_bit.laws import Law
from casemate.solve.one_bit.limit import COUNTS_BELOW
from casemate.solve.one_bit.limit_information import Kind


@dataclass(frozen=True)
class Moment:
    """The average error and limit of all queries up to some number of them."""

    queries: int
    error: float
    limit: float


@dataclass(frozen=True)
class Errors:
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
    learner: LearnerName
    told: Told
    weights: Weighting
    confidence: float
    queries: int
    errors: Errors
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
