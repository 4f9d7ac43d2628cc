"""A bank of filters for noise of an unknown scale: one for each scale, then the fitted one.

Method     Multiple-model estimation: eighteen filters, each assuming half the deviation of the one
           before, weigh themselves by how likely they found each bit. The answer is that of the
           members with weight. Once noise is all that is left to overcome, some thresholds are
           dithered to either side: how the noise's cdf rises between them is its slope at 0, and
           that is all a filter needs to know of the noise. When the slope is measured well enough,
           the member that measured it takes the fitted scale and goes on alone, fitting again at
           each such query, ever more rarely. A scale beyond the last of the eighteen is reached by
           moving them along.
Guarantee  None that is proved; docs/derivations/one_bit_kalman.md has the reasons and the figures.
Cost       O(18 n^2) a query and as much memory until the scale is fitted, O(n^2) a query then.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.oracle import AnswerTrail, DrawnStream, FilterStage, Floats, Trail
from casemate.attack.one_bit.square_root import (
    bit_moments,
    embed_belief,
    nuisance_part,
    potter_update,
    predict,
)
from casemate.compiled import compiled

MEMBERS = 18
"""Filters of the bank, each with half the scale of the one before."""

SEARCH_RHO = 0.7
"""How fast variances shrink while there is little noise: faster ones get stuck now and then."""


class ScaleBank:
    """Beliefs under several scales, and their weights."""

    def __init__(
        self,
        mean: Floats,
        root: Floats,
        widest: float,
        rho: float = SEARCH_RHO,
        *,
        nuisances: int = 0,
        after_fit: Callable[["ScaleBank"], FilterStage] | None = None,
    ) -> None:
        self._means, self._roots = np.tile(mean, (MEMBERS, 1)), np.tile(root, (MEMBERS, 1, 1))
        self._scales: Floats = widest * np.exp2(-np.arange(MEMBERS, dtype=np.float64))
        self._log_weights: Floats = np.zeros(MEMBERS)
        self._fit = np.zeros(MEMBERS), np.zeros(MEMBERS), np.zeros(MEMBERS)
        self._progress = np.array([0, ALL_MEMBERS])
        self.rho, self.nuisances, self._after_fit = rho, nuisances, after_fit
        self._workspace = self._new_workspace()

    def _new_workspace(self) -> "BankWorkspace":
        vectors = np.empty_like(self._means), np.empty_like(self._means)
        return vectors, (np.empty(MEMBERS), np.empty(MEMBERS), np.empty(MEMBERS))

    @property
    def _state(self) -> "BankState":
        members = self._means, self._roots, self._scales, self._log_weights
        return members, self._fit, self._progress

    @property
    def _best(self) -> int:
        return int(leading_member(self._log_weights, self._progress))

    @property
    def settled(self) -> bool:
        """Whether the scale has been fitted."""
        return bool(self._progress[1] != ALL_MEMBERS)

    @property
    def scale(self) -> float:
        """The deviation of the noise, as far as it is known."""
        return float(self._scales[self._best])

    @property
    def mean(self) -> Floats:
        """The best member's mean."""
        mean: Floats = self._means[self._best]
        return mean

    @property
    def root(self) -> Floats:
        """The best member's root of the covariance."""
        root: Floats = self._roots[self._best]
        return root

    @property
    def slope(self) -> tuple[float, float]:
        """What the best member has measured of the noise's cdf at 0: rise and run."""
        return float(self._fit[0][self._best]), float(self._fit[1][self._best])

    def answer(self, x: Floats) -> float:
        """What the members with weight predict on average, without the noise's own shift."""
        centre, nuisance = self._blend(x)
        return centre - nuisance

    def threshold(self, x: Floats, draw: float) -> float:
        """The prediction, dithered once in a while."""
        centre, _ = self._blend(x)
        return centre + float(dither(self._state, self._workspace, draw))

    def learn(self, x: Floats, _draw: float, threshold: float, above: bool) -> None:
        """Let every member learn, and weigh them."""
        centre, _ = self._blend(x)
        asked = threshold, threshold - centre
        update_members(self._state, self._workspace, self.rho, asked, above)

    def _blend(self, x: Floats) -> tuple[float, float]:
        predict_members(self._state, self._workspace, x, self.nuisances)
        return blend_members(self._state, self._workspace)

    def widen(self, mean: Floats, root: Floats) -> None:
        """Take in columns that have come since, as the prior has them."""
        self._means, self._roots = embed_belief(self._means, self._roots, mean, root)
        self._workspace = self._new_workspace()

    def follow(self, columns: Floats, noisy: Floats, draws: Floats, trail: AnswerTrail) -> int:
        """A stream, compiled; until the scale is fitted, where another stage comes after that."""
        model = self.rho, self.nuisances, self._after_fit is not None
        stream = columns, noisy, draws
        return int(run_bank(self._state, self._workspace, model, stream, trail.arrays))

    def successor(self) -> FilterStage:
        """Itself, or what comes after the fit."""
        return self._after_fit(self) if self._after_fit is not None and self.settled else self


# Compiled steps of the bank ---------------------------------------------------------------------


Members = tuple[Floats, Floats, Floats, Floats]
"""(means, roots, scales, log weights): of each member its belief, the deviation it assumes, and the
logarithm of its weight."""

SlopeFit = tuple[Floats, Floats, Floats]
"""(rises, runs, counts): sums of offset * (1/2 - above), of offset squared, and the number, over
the dithered queries for which each member chose the offset."""

BankState = tuple[Members, SlopeFit, NDArray[np.int64]]
"""(members, fit, progress); progress is (queries so far, the member that is kept, or -1)."""

BankWorkspace = tuple[tuple[Floats, Floats], tuple[Floats, Floats, Floats]]
"""The vectors of `square_root.Workspace`, a row for each member; and of the query at hand each
member's (prediction, variance, nuisance part)."""

AskedThreshold = tuple[float, float]
"""(threshold, how far it is from the blend of predictions)."""

BankModel = tuple[float, int, bool]
"""(rho, nuisances, halt)."""

ALL_MEMBERS = -1  # in place of the member that is kept, as long as all are in use
LOG_WEIGHT_ROUNDING = 1e-9  # weights that differ by less are equal
LEAST_WEIGHT_RATIO = 0.02  # members with less of the best one's weight have no say
SHARED_WEIGHT = 0.1  # of all weight over the number of queries, spread evenly again at each
DITHER_DEVIATIONS = 0.3  # between the prediction and a dithered threshold
MOST_DITHERED = 0.25  # part of the queries, as long as few have come
DITHERED_PER_ROOT = 5.0  # then this over the root of their number
FIRST_FIT_QUERIES = 200  # dithered ones before a scale is fitted
SLOPE_SIGNIFICANCE = 2.0  # times the root of the sum of squared offsets: 4 deviations
MOST_FIT_FACTOR = 2.0  # between the fitted scale and that of the member that measured it


@compiled
def predict_members(state: BankState, workspace: BankWorkspace, x: Floats, nuisances: int) -> None:
    """Let every member in use predict."""
    (means, roots, _, _), _, progress = state
    (projections, gains), (centres, variances, nuisance_parts) = workspace
    for m in range(means.shape[0]):
        if progress[1] == ALL_MEMBERS or progress[1] == m:
            own = projections[m], gains[m]
            centres[m], variances[m] = predict((means[m], roots[m]), x, own)
            nuisance_parts[m] = nuisance_part(means[m], x, nuisances)


@compiled
def leading_member(log_weights: Floats, progress: NDArray[np.int64]) -> int:
    """The member with the most weight, the first of equal ones, or the one that is kept."""
    if progress[1] != ALL_MEMBERS:
        return int(progress[1])
    best = 0
    for m in range(log_weights.shape[0]):
        if log_weights[m] > log_weights[best] + LOG_WEIGHT_ROUNDING:
            best = m
    return best


@compiled
def blend_members(state: BankState, workspace: BankWorkspace) -> tuple[float, float]:
    """What the members with weight predict on average, and the nuisance part of that."""
    (_, _, _, log_weights), _, progress = state
    centres, _, nuisance_parts = workspace[1]
    best = leading_member(log_weights, progress)
    if progress[1] != ALL_MEMBERS:
        return centres[best], nuisance_parts[best]
    centre, nuisance, mass = 0.0, 0.0, 0.0
    for m in range(log_weights.shape[0]):
        weight = math.exp(log_weights[m] - log_weights[best])
        if weight >= LEAST_WEIGHT_RATIO:
            centre += weight * centres[m]
            nuisance += weight * nuisance_parts[m]
            mass += weight
    return centre / mass, nuisance / mass


@compiled
def dither(state: BankState, workspace: BankWorkspace, draw: float) -> float:
    """How far to move the threshold: rarely, and only once noise is what is left to overcome."""
    (_, _, scales, log_weights), _, progress = state
    best = leading_member(log_weights, progress)
    noise, variance = scales[best] ** 2, workspace[1][1][best]
    part = min(MOST_DITHERED, DITHERED_PER_ROOT / math.sqrt(progress[0] + 1.0))
    if variance > noise or draw >= part:
        return 0.0
    offset = DITHER_DEVIATIONS * math.sqrt(noise + variance)
    return offset if draw < part / 2 else -offset


@compiled
def update_members(
    state: BankState, workspace: BankWorkspace, rho: float, asked: AskedThreshold, above: bool
) -> None:
    """Let every member in use learn."""
    members, fit, progress = state
    means, roots, scales, log_weights = members
    (projections, gains), (centres, variances, _) = workspace
    threshold, offset = asked
    progress[0] += 1
    best = leading_member(log_weights, progress)
    for m in range(means.shape[0]):
        if progress[1] == ALL_MEMBERS or progress[1] == m:
            noise = scales[m] ** 2
            k = (threshold - centres[m]) / math.sqrt(noise + variances[m])
            step, shrink, log_chance = bit_moments(k, above)
            log_weights[m] += log_chance
            belief, own = (means[m], roots[m]), (projections[m], gains[m])
            potter_update(belief, own, (variances[m], noise, rho), (step, shrink))
    if progress[1] == ALL_MEMBERS:
        normalise_weights(log_weights, SHARED_WEIGHT / progress[0])
        extend_scales(members, fit, variances)
    if offset != 0.0:
        fit[0][best] += offset * (0.5 - above)
        fit[1][best] += offset * offset
        fit[2][best] += 1.0
        fit_scale(members, fit, progress, best)


@compiled
def normalise_weights(log_weights: Floats, shared: float) -> None:
    """Make weights add up to 1, a part of it spread evenly: nobody is ever lost for good."""
    top, total = log_weights.max(), 0.0
    for m in range(log_weights.shape[0]):
        log_weights[m] = math.exp(log_weights[m] - top)
        total += log_weights[m]
    even = shared / log_weights.shape[0]
    for m in range(log_weights.shape[0]):
        log_weights[m] = math.log((1.0 - shared) * log_weights[m] / total + even)


@compiled
def extend_scales(members: Members, fit: SlopeFit, variances: Floats) -> None:
    """When the last scale on one side has most of the weight, the other end moves beyond it."""
    means, roots, scales, log_weights = members
    low, high = scales.argmin(), scales.argmax()
    for best, spare, factor in ((low, high, 0.5), (high, low, 2.0)):
        if log_weights[best] > math.log(0.5) and variances[best] < scales[best] ** 2:
            means[spare] = means[best]
            roots[spare] = roots[best]
            scales[spare] = factor * scales[best]
            log_weights[best] -= math.log(2.0)
            log_weights[spare] = log_weights[best]
            fit[0][spare], fit[1][spare], fit[2][spare] = 0.0, 0.0, 0.0


@compiled
def fit_scale(members: Members, fit: SlopeFit, progress: NDArray[np.int64], best: int) -> None:
    """Read the scale off the slope of the noise's cdf near 0; the first time, keep one member.

    Where noise dominates, a root is proportional to the assumed deviation, so it is scaled along.
    """
    _, roots, scales, _ = members
    rise, run, count = fit[0][best], fit[1][best], fit[2][best]
    if count < FIRST_FIT_QUERIES or rise < SLOPE_SIGNIFICANCE * math.sqrt(run):
        return
    factor = run / (rise * math.sqrt(2.0 * math.pi)) / scales[best]
    if progress[1] == ALL_MEMBERS:
        if not 1.0 / MOST_FIT_FACTOR < factor < MOST_FIT_FACTOR:
            fit[0][best], fit[1][best], fit[2][best] = 0.0, 0.0, 0.0
            return
        progress[1] = best
    scales[best] *= factor
    roots[best] *= factor


@compiled
def run_bank(
    state: BankState, workspace: BankWorkspace, model: BankModel, stream: DrawnStream, trail: Trail
) -> int:
    """Answer a stream; with `halt` until a member is kept. How many queries were answered."""
    rho, nuisances, halt = model
    columns, noisy, draws = stream
    answers, thresholds, above = trail
    for place in range(columns.shape[0]):
        predict_members(state, workspace, columns[place], nuisances)
        centre, nuisance = blend_members(state, workspace)
        offset = dither(state, workspace, draws[place])
        answers[place] = centre - nuisance
        thresholds[place] = centre + offset
        above[place] = noisy[place] > thresholds[place]
        asked = thresholds[place], offset
        update_members(state, workspace, rho, asked, above[place])
        if halt and state[2][1] != ALL_MEMBERS:
            return place + 1
    return len(columns)
