"""Learning w . q from one bit a query when the noise has an edge: thresholds at the edge.

Source     Source document 000, section 2 (the protocol). Its 1/sqrt(T) is a worst case over noise.
Method     Noise that stops suddenly tells much more at its edge than at its median: a bit there is
           nearly always the same, and the rare other one says that w . q is on one side for
           certain. The belief is normal, in square-root form; where to ask and how each bit is read
           under the known law is that of `thresholds`.
           docs/derivations/one_bit_edge.md derives the rate: error of the order (log T) / T.
Guarantee  None that is proved for a right law. Against a wrong one there is the guard:
           hits at the edge are held against their predicted number by a test that cries wolf with
           probability at most `alarm` over the whole stream. After the alarm the belief goes back
           to what it was before the law began to fail, and thresholds go to the median.
Cost       O(d²) a query, O(d² log T) memory for the beliefs to go back to.
"""

import math
from typing import Self

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.laws import Law, Uniform, centred, effective_scale, median
from casemate.attack.one_bit.limit import box_prior
from casemate.attack.one_bit.oracle import (
    AnswerTrail,
    DrawnStream,
    FilterStage,
    Floats,
    StagedLearner,
    Trail,
    orthonormal_basis,
)
from casemate.attack.one_bit.scale_bank import ScaleBank
from casemate.attack.one_bit.square_root import (
    Belief,
    FilterState,
    new_workspace,
    nuisance_part,
    potter_update,
    predict,
)
from casemate.attack.one_bit.thresholds import (
    MEDIAN_SHARE,
    EdgeRule,
    Reading,
    edge_rule,
    place_threshold,
    table_reading,
    uniform_reading,
)
from casemate.compiled import compiled

# The guard --------------------------------------------------------------------------------------
#
# Whether bits at the edge come as often as the law says: a test by betting, valid at any time.
#
# Method     Against the claim that hits come at no more than 1.15 times (and at no less than 0.85
#            times) the predicted chance, wealth is bet on more (1.8 and 4 times as many) and on
#            fewer (0.4 and 0.05 times). While the claim holds, the wealth is a supermartingale, so
#            that by Ville's inequality it ever reaches 1 / alarm with probability at most `alarm`:
#            over the whole stream, however long. A wrong law may begin to matter late, so new bets
#            are opened whenever the number of counted bits has doubled, out of a purse that is
#            never empty: shares 1 / (k (k + 1)).
# Cost       Four numbers for each doubling, and a belief to go back to.
# Departure  The chances are those of a normal belief. Under uniform noise they are close (hits come
#            at 0.96 to 1.03 times the prediction), which is what the margins are for. The bound is
#            a theorem for exact chances only: noise with one edge had 1 alarm in 60 runs at 0.001.

MOST_BETS = 50
RAREST_HIT = 1e-12
MOST_HIT_RATIO, LEAST_HIT_RATIO = 1.15, 0.85
"""The claim to be refuted: hits come at parts of their predicted chance between these."""

BET_RATIOS = MORE_HITS, FAR_MORE_HITS, FEWER_HITS, FAR_FEWER_HITS = 1.8, 4.0, 0.4, 0.05
"""What is bet on instead, as parts of the predicted chance."""

Watch = tuple[tuple[Floats, NDArray[np.int64], float], tuple[Floats, Floats]]
"""((wealth, counts, alarm), (means, roots)): counts are (bets opened, bits counted), and the
beliefs are the prior and that before each bet was opened."""


class Guard:
    """Watches hits against their predicted chances, and keeps the beliefs to go back to."""

    def __init__(self, alarm: float, mean: Floats, root: Floats) -> None:
        if not 0 < alarm < 1:
            raise ValueError(f"need a rate of false alarms between 0 and 1, got {alarm}")
        self.alarm = alarm
        self.wealth: Floats = np.zeros((MOST_BETS, len(BET_RATIOS)))
        self.counts = np.zeros(2, np.int64)  # bets that were opened, bits that were counted
        self.means = np.empty((MOST_BETS + 1, *mean.shape))
        self.roots = np.empty((MOST_BETS + 1, *root.shape))
        self.means[0], self.roots[0] = mean, root

    @property
    def state(self) -> Watch:
        """What compiled steps read and change."""
        return (self.wealth, self.counts, self.alarm), (self.means, self.roots)

    def belief_before(self) -> tuple[Floats, Floats]:
        """The belief from before the bet was opened that has gained most: mean and root."""
        place = int(np.argmax(self.wealth[: self.counts[0]].max(axis=1)))
        return self.means[place], self.roots[place]


@compiled
def odds(chance: float, hit: bool) -> tuple[float, float, float, float]:
    """By what the wealth of each bet is multiplied."""
    chance = max(chance, RAREST_HIT)
    most, least = min(MOST_HIT_RATIO * chance, 0.5 + 0.5 * chance), LEAST_HIT_RATIO * chance
    more = min(MORE_HITS * chance, 0.7 + 0.3 * chance)
    far_more = min(FAR_MORE_HITS * chance, 0.85 + 0.15 * chance)
    fewer, far_fewer = FEWER_HITS * chance, FAR_FEWER_HITS * chance
    if hit:
        return more / most, far_more / most, fewer / least, far_fewer / least
    no, yes = 1.0 - most, 1.0 - least
    return (1.0 - more) / no, (1.0 - far_more) / no, (1.0 - fewer) / yes, (1.0 - far_fewer) / yes


@compiled
def count_hit(belief: Belief, watch: Watch, chance: float, hit: bool) -> bool:
    """Take note of a bit that was a hit with some chance; whether the alarm goes off.

    When the count has doubled, new bets are opened, and the belief is kept as it is.
    """
    (wealth, counts, alarm), (means, roots) = watch
    bets = counts[0]
    if bets < MOST_BETS and counts[1] + 1 == 1 << bets:
        wealth[bets] = 0.25 / ((bets + 1.0) * (bets + 2.0))
        means[bets + 1], roots[bets + 1] = belief
        counts[0] += 1
    counts[1] += 1
    factors, total = odds(chance, hit), 0.0
    for k in range(counts[0]):
        for kind in range(wealth.shape[1]):
            wealth[k, kind] *= factors[kind]
            total += wealth[k, kind]
    return total >= 1.0 / alarm


@compiled
def update_guarded(
    state: FilterState, watch: Watch, variance: float, reading: Reading, above: bool
) -> bool:
    """Move the belief as a bit was read, after the guard has looked at it; whether it cries wolf.

    The workspace is as `predict` left it.
    """
    belief, workspace = state
    chance, step_above, lost_above, step_below, lost_below, counted = reading
    if counted:
        rare_above = chance < 0.5
        rarer = chance if rare_above else 1.0 - chance
        if count_hit(belief, watch, rarer, above == rare_above):
            return True
    moments = (step_above, lost_above) if above else (step_below, lost_below)
    potter_update(belief, workspace, (variance, 0.0, 1.0), moments)
    return False


# The filter -------------------------------------------------------------------------------------

FALLBACK_SCALE_RATIO = 64.0
"""The widest scale to begin with after an alarm, as a multiple of that of the law."""

EDGES = 2
"""Nuisance coefficients of learnt edges: how far the upper one, and the lower one, lies beyond an
assumed bound."""

EDGE_DEVIATION_RATIO = 0.3
"""The deviation of each of them in the prior, as a part of the bound."""

LEARNED_EDGE_INFLATION = 1.3
"""By how much the deviations of the belief are stretched when the edges come in."""


class EdgeFilter:
    """A filter with thresholds at the edges of the noise, whose law is known or else learnt.

    Learnt edges are those of uniform noise. A bit near the upper edge tells of w . q plus the one
    nuisance, near the lower edge of w . q minus the other. Some thresholds stand at the median,
    which nothing but w . q decides: noise need not be symmetric, and queries may not tell a
    constant from the edges.
    """

    def __init__(
        self, mean: Floats, root: Floats, law: Law, alarm: float, *, learned: bool = False
    ) -> None:
        self.mean, self.root = mean, root
        self.nuisances, self.alarmed = EDGES if learned else 0, False
        self.guard = Guard(alarm, mean, root)
        self._law, self._rule = law, edge_rule(law, learned)
        self._state = (mean, root), new_workspace(mean)

    @classmethod
    def with_learned_edges(cls, mean: Floats, root: Floats, bound: float, alarm: float) -> Self:
        """From a belief about w alone, and the bound that is assumed for the noise."""
        size = EDGES + len(mean)
        wider = np.zeros((size, size))
        wider[0, 0] = wider[1, 1] = EDGE_DEVIATION_RATIO * bound
        wider[EDGES:, EDGES:] = LEARNED_EDGE_INFLATION * root
        return cls(np.append(np.zeros(EDGES), mean), wider, Uniform(bound), alarm, learned=True)

    @property
    def edges(self) -> tuple[float, float]:
        """Where the noise is thought to end, below and above."""
        low, high = self._law.edges
        beyond_high, beyond_low = self.mean[: self.nuisances] if self.nuisances else (0.0, 0.0)
        return low - float(beyond_low), high + float(beyond_high)

    def answer(self, x: Floats) -> float:
        """The mean of the belief about w . q."""
        return float(self.mean[self.nuisances :] @ x)

    def threshold(self, x: Floats, draw: float) -> float:
        """Near an edge that the draw chooses, or at the median."""
        centre, variance = self._predict(x, draw)
        if not variance > 0:
            return centre
        return centre + place_threshold(self._rule, math.sqrt(variance), draw)[0]

    def learn(self, x: Floats, draw: float, threshold: float, above: bool) -> None:
        """Read the bit by the law, after the guard has looked at it."""
        centre, variance = self._predict(x, draw)
        if variance > 0:
            reading = self._reading(math.sqrt(variance), threshold - centre, draw)
            watch = self.guard.state
            self.alarmed = update_guarded(self._state, watch, variance, reading, above)

    def _predict(self, x: Floats, draw: float) -> tuple[float, float]:
        columns = edge_columns(x, draw) if self.nuisances else x
        belief, workspace = self._state
        return predict(belief, columns, workspace)

    def _reading(self, deviation: float, offset: float, draw: float) -> Reading:
        if isinstance(self._law, Uniform):
            return uniform_reading(self._rule, offset, deviation, draw)
        return table_reading(self._law, deviation, offset)

    def follow(self, columns: Floats, noisy: Floats, draws: Floats, trail: AnswerTrail) -> int:
        """A stream, compiled, until the alarm."""
        wider = edge_columns(columns, draws) if self.nuisances else columns
        model, stream = (self._rule, self.nuisances), (wider, noisy, draws)
        reached = run_edge(self._state, model, self.guard.state, stream, trail.arrays)
        self.alarmed = reached != NO_ALARM
        return int(reached) if self.alarmed else len(columns)

    def successor(self) -> FilterStage:
        """After an alarm, the median with the last belief about w from before the law failed.

        A law with a wrong bound may be wrong in all else, so its scale is not believed either.
        """
        if not self.alarmed:
            return self
        mean, root = self.guard.belief_before()
        triangle = np.linalg.qr(root[self.nuisances :].T).R
        widest = FALLBACK_SCALE_RATIO * effective_scale(self._law)
        own_mean, own_root = mean[self.nuisances :].copy(), np.ascontiguousarray(triangle.T)
        return ScaleBank(own_mean, own_root, widest)


def edge_columns(columns: Floats, draws: Floats | float) -> Floats:
    """Columns after those of the edges: of the one that a draw chooses, or of none."""
    chosen = np.asarray(draws)
    at_edge = np.minimum(chosen, 1.0 - chosen) >= MEDIAN_SHARE / 2.0
    upper, lower = at_edge & (chosen < 0.5), at_edge & (chosen >= 0.5)
    return np.concatenate([np.stack([1.0 * upper, -1.0 * lower], axis=-1), columns], axis=-1)


class EdgeLearner(StagedLearner):
    """A learner in a given basis, some of whose stages stand at the edges of the noise."""

    def __init__(
        self,
        basis: Floats,
        stage: FilterStage,
        random: np.random.Generator | None,
        centre: float = 0.0,
    ) -> None:
        super().__init__(stage, random, centre)
        self.basis = basis

    def _columns(self, q: Floats) -> Floats:
        return self.basis @ q

    @property
    def at_edge(self) -> bool:
        """Whether thresholds stand at the edges of the noise."""
        return isinstance(self.stage, EdgeFilter)


class EdgeKalman(EdgeLearner):
    """A one-bit filter for noise of a known law, with a guard against a wrong one."""

    def __init__(
        self,
        dimension: int,
        law: Law,
        basis: Floats | None = None,
        *,
        alarm: float = 1e-3,
        random: np.random.Generator | None = None,
    ) -> None:
        rows = orthonormal_basis(basis, dimension)
        stage = EdgeFilter(*box_prior(rows), centred(law), alarm)
        super().__init__(rows, stage, random, median(law))

    @property
    def alarmed(self) -> bool:
        """Whether the guard has found the law to be wrong."""
        return not self.at_edge


NO_ALARM = -1


@compiled
def run_edge(
    state: FilterState,
    model: tuple[EdgeRule, int],
    watch: Watch,
    stream: DrawnStream,
    trail: Trail,
) -> int:
    """Answer a stream until the alarm; the number of queries that were answered.

    `model` is (rule, nuisances); a draw chooses the side.
    """
    belief, workspace = state
    rule, nuisances = model
    columns, noisy, draws = stream
    answers, thresholds, above = trail
    for place in range(columns.shape[0]):
        x = columns[place]
        centre, variance = predict(belief, x, workspace)
        answers[place] = centre - nuisance_part(belief[0], x, nuisances)
        thresholds[place] = centre
        if not variance > 0.0:
            above[place] = noisy[place] > centre
            continue
        offset, reading = place_threshold(rule, math.sqrt(variance), draws[place])
        thresholds[place] += offset
        above[place] = noisy[place] > thresholds[place]
        if update_guarded(state, watch, variance, reading, above[place]):
            return place + 1
    return NO_ALARM
