"""The chance of every value of every whole unknown, given noisy answers: Gibbs sampling.

Source     Source document 002, "Incorporating background knowledge": values that are whole numbers,
           answers that carry noise. The threshold that it is measured at is that of I. Dinur and
           K. Nissim, "Revealing information while preserving privacy", PODS 2003.
Method     Two chains, one from the start given and one from anywhere, which is cooled
           during the warm-up (S. Kirkpatrick et al., "Optimization by simulated annealing",
           Science 220, 1983); noise with a hard bound begins with a soft wall, which is closed once
           every bound is kept. Chances are averages of conditional chances, not counts. A chain
           whose likelihood stays plainly below the other's is stuck and does not count.
           In a chain each unknown is drawn anew given the others. Where sums are known well, no
           value can change alone, so a sweep also takes a unit from each unknown and puts it
           elsewhere: at a place drawn from a Gaussian stand-in, accepted by Metropolis and
           Hastings; without room for the stand-in, offered to an unknown of the same equation.
Guarantee  Where both chains have forgotten their starts, a value given the chance p is right with
           probability p over values drawn alike from their ranges. `agreement` compares the
           chains, and `converged` says whether they agree and keep every bound.
Cost       Two chains, each a warm-up and as many sweeps again: 4,096 unknowns in 16,384 half
           subsets take 0.15 s a sweep. A sweep reads every entry twice and, with a stand-in, every
           pair of unknowns twice; the stand-in takes 4 bytes for each pair.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.answer_loss import (
    GAUSSIAN_LOSS,
    AnswerLaw,
    LossColumns,
    Noisy,
    change,
    loss_saved,
    parabola,
)
from casemate.attack.solvers.iteration import Progress
from casemate.attack.solvers.watched_program import as_sparse
from casemate.attack.solvers.whole_decoding import nearest_whole, whole_ends
from casemate.compiled import compiled
from casemate.exact import Floats, Rows

MOST_PAIRS = 2**26
"""With more pairs of unknowns there is no stand-in."""

MOST_CHANCES = 2**25
"""No table of chances is larger."""

BATCH_ENTRIES = 2**24
"""Of a dense batch of equations."""

DENSE_ADVANTAGE = 200.0
"""A dense product does this many multiplications in the time of one sparse one."""

SWEEPS_PER_RENEWAL = 16
"""Sweeps after which sums that were kept up to date are computed afresh."""


class PosteriorModel:
    """What chains share: the answers, the ranges, and the Gaussian stand-in."""

    def __init__(self, answers: Noisy, low: Floats, high: Floats) -> None:
        self.answers, self.low, self.high = answers, low, high
        self.unknowns = answers.equations.width
        self.span = int((high - low).max(initial=0)) + 1
        if self.unknowns * self.span > MOST_CHANCES:
            raise ValueError(
                f"{self.unknowns} unknowns of up to {self.span} values are too many to weigh each; "
                f"give narrower ranges"
            )
        self._curvature = self._stand_in()
        self._diagonal = np.diag(self._curvature).astype(np.float64)

    def _stand_in(self) -> NDArray[np.float32]:
        if not self.has_stand_in:
            return np.zeros((0, 0), np.float32)
        variance = self.answers.law.variance * self.answers.spread**2
        return gram(self.answers.equations, 1 / variance)

    @property
    def has_stand_in(self) -> bool:
        """Whether there is room for the Gaussian stand-in."""
        return self.unknowns**2 <= MOST_PAIRS

    def fields(self, residuals: Floats) -> Floats:
        """The slope of the stand-in for each unknown."""
        if not self.has_stand_in:
            return np.zeros(0)
        answers = self.answers
        weights = residuals / answers.spread / answers.law.variance
        return answers.equations.transpose_times(weights * answers.equations.lengths)

    def setting(self, sharpness: float) -> "ChainSetting":
        """What compiled sweeps need besides the answers."""
        return ChainSetting(self.low, self.high, self._curvature, self._diagonal, sharpness)


def gram(equations: Rows, weights: Floats) -> NDArray[np.float32]:
    """The sum over equations of weight * coefficient * coefficient, for all pairs of unknowns.

    Dense in batches where rows are long.

    >>> from casemate.exact.system import System
    >>> gram(Rows.of(System.of([[1, 1], [0, 2]])), np.array([1.0, 3.0])).tolist()
    [[1.0, 1.0], [1.0, 13.0]]
    """
    matrix = as_sparse(equations).astype(np.float32)
    counts = np.diff(equations.starts)
    matrix.data *= np.repeat(np.sqrt(weights), counts).astype(np.float32)
    dense = equations.height * float(equations.width) ** 2 / DENSE_ADVANTAGE
    if float(counts.astype(np.float64) @ counts) <= dense:
        return np.asarray((matrix.T @ matrix).toarray())
    found = np.zeros((equations.width, equations.width), np.float32)
    size = max(1, BATCH_ENTRIES // max(1, equations.width))
    for first in range(0, equations.height, size):
        batch = matrix[first : first + size].toarray()
        found += batch.T @ batch
    return found


class MarkovChain:
    """A point that wanders over the whole values, and the chances it has met."""

    def __init__(
        self, model: PosteriorModel, start: NDArray[Any], random: np.random.Generator
    ) -> None:
        self._model, self._random = model, random
        self.point: Floats = start.astype(np.float64)
        self.losses: list[float] = []
        self._tally = np.zeros((model.unknowns, model.span))
        self._done = 0
        self._renew()

    def _renew(self) -> None:
        self.residuals = self._model.answers.residuals(self.point)
        self._fields = self._model.fields(self.residuals)

    @property
    def loss(self) -> float:
        """The negative log-likelihood of the point, up to a constant."""
        return self._model.answers.loss(self.residuals)

    @property
    def chances(self) -> Floats:
        """The mean chance of each value over the sweeps that were counted."""
        found: Floats = self._tally / self._tally.sum(axis=1, keepdims=True)
        return found

    def count(self, sharpness: float) -> None:
        """A sweep whose chances are counted."""
        self.sweep(sharpness, self._tally)
        self.losses.append(self.loss)

    def sweep(self, sharpness: float, tally: Floats | None = None) -> None:
        """Draw each unknown anew, then offer each a swap."""
        model, random, unknowns = self._model, self._random, len(self.point)
        system, setting = model.answers.columns, model.setting(sharpness)
        chain = ChainState(self.point, self.residuals, self._fields)
        draws = ValueDraws(random.permutation(unknowns), *random.random((2, unknowns)))
        values_sweep(system, chain, setting, draws, np.zeros((0, 0)) if tally is None else tally)
        # Not each unknown once: a swap can be undone from its other end only, so only a free choice
        # of where to begin leaves the posterior as it is.
        offers = SwapDraws(random.integers(0, unknowns, unknowns), *random.random((4, unknowns)))
        rows = model.answers.equations.starts, model.answers.equations.columns
        swaps_sweep(system, rows, chain, setting, offers)
        self._done += 1
        if self._done % SWEEPS_PER_RENEWAL == 0:
            self._renew()


# The posterior from two chains ------------------------------------------------------------------


COOLING_SHARE = 0.7
"""The part of the warm-up in which the likelihood gains its weight."""

FIRST_SHARPNESS = 0.1
"""How much of the likelihood counts where the second chain begins."""

SOFT_WALL_STEEPNESS = 30.0
"""How steep the wall around a hard bound gets, in nats per half width, before it is closed."""

CLOSED_WALL_STEEPNESS = 1e9

OPEN_WALL_STEEPNESS = 15.0
"""How steep it stays where no point that keeps every bound was met."""

CONVERGED_AGREEMENT = 0.9
"""Chains that agree this much have converged."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the answers say about each unknown.

    `chances[j, v]` is the chance of the value `first[j] + v`; `values` are the likeliest ones.
    `agreement` is 1 less the mean distance of the two chains' chances (in total variation).
    """

    first: Floats
    chances: Floats
    agreement: float
    converged: bool
    sweeps: int

    @cached_property
    def values(self) -> Floats:
        """The likeliest value of each unknown."""
        likeliest: Floats = self.first + self.chances.argmax(axis=1)
        return likeliest

    @property
    def probability(self) -> Floats:
        """The chance of the likeliest value."""
        best: Floats = self.chances.max(axis=1)
        return best

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """The ends of a range that holds each unknown with at least this chance.

        At most half of the rest lies on either side of it.
        """
        if not 0 < level < 1:
            raise ValueError(f"a level lies between 0 and 1, got {level}")
        rest = (1 - level) / 2
        below = np.cumsum(self.chances, axis=1)
        low = (below > rest).argmax(axis=1)
        high = (below >= 1 - rest - 1e-12).argmax(axis=1)
        return self.first + low, self.first + high


def posterior(
    equations: Rows,
    right: Floats,
    *,
    law: AnswerLaw,
    spread: Floats | float,
    low: Floats | float,
    high: Floats | float,
    random: np.random.Generator,
    start: Floats,
    warm_up: int = 60,
    sweeps: int = 60,
    progress: Progress | None = None,
) -> Posterior:
    """The chances of whole values between finite ends, given answers with noise of a known law.

    All values are alike beforehand. One chain begins at the start, rounded.

    >>> from casemate.exact.system import System
    >>> rows, draws = Rows.of(System.of([[1, 1], [1, 0]])), np.random.default_rng(0)
    >>> found = posterior(
    ...     rows,
    ...     np.array([1.1, 0.9]),
    ...     law=AnswerLaw.GAUSSIAN,
    ...     spread=0.2,
    ...     low=0,
    ...     high=1,
    ...     random=draws,
    ...     start=np.zeros(2),
    ... )
    >>> found.values.tolist(), found.probability.round(2).tolist()
    ([1.0, 0.0], [1.0, 1.0])
    """
    if sweeps < 1 or warm_up < 0:
        raise ValueError(f"need a sweep and no less than no warm-up, got {sweeps} and {warm_up}")
    box = whole_ends(low, high, equations.width)
    answers = Noisy.of(equations, right, law, spread)
    model = PosteriorModel(answers, *box)
    chains = _chains(model, start, random)
    for sweep in range(warm_up):
        levels = _cooling(law, min(1.0, sweep / (COOLING_SHARE * warm_up)))
        for chain, level in zip(chains, levels, strict=True):
            chain.sweep(level)
        _report(progress, sweep + 1, answers, chains[0])
    levels = (_final_sharpness(law, chains[0]), _final_sharpness(law, chains[1]))
    for sweep in range(sweeps):
        for chain, level in zip(chains, levels, strict=True):
            chain.count(level)
        _report(progress, warm_up + sweep + 1, answers, chains[0])
    return _combine_chains(model, chains, warm_up + sweeps)


def _chains(
    model: PosteriorModel, start: Floats, random: np.random.Generator
) -> tuple[MarkovChain, MarkovChain]:
    """One from the start, and one from anywhere."""
    low, high = model.low, model.high
    anywhere = random.integers(low.astype(np.int64), high.astype(np.int64), endpoint=True)
    return MarkovChain(model, nearest_whole(start, low, high), random), MarkovChain(
        model, anywhere, random
    )


def _cooling(law: AnswerLaw, share: float) -> tuple[float, float]:
    """How much the likelihood counts in each chain after this share of the cooling."""
    if law is AnswerLaw.UNIFORM:
        return SOFT_WALL_STEEPNESS**share, SOFT_WALL_STEEPNESS**share
    return 1.0, FIRST_SHARPNESS ** (1 - share)


def _final_sharpness(law: AnswerLaw, chain: MarkovChain) -> float:
    """How much it counts from then on: bounds that are kept are closed."""
    if law is not AnswerLaw.UNIFORM:
        return 1.0
    return CLOSED_WALL_STEEPNESS if chain.loss == 0 else OPEN_WALL_STEEPNESS


def _report(progress: Progress | None, sweep: int, answers: Noisy, chain: MarkovChain) -> None:
    if progress is not None:
        progress(sweep, answers.residual(chain.residuals), chain.point)


def _combine_chains(
    model: PosteriorModel, chains: tuple[MarkovChain, MarkovChain], sweeps: int
) -> Posterior:
    """The chances of both chains, or of the better one where the other is plainly stuck."""
    one, other = (chain.chances for chain in chains)
    apart = 0.5 * float(np.abs(one - other).sum()) / max(1, len(one))
    gap = float(np.mean(chains[1].losses)) - float(np.mean(chains[0].losses))
    usual = 1 + 3 * sum(float(np.std(chain.losses)) for chain in chains)
    if abs(gap) > usual:
        better = one if gap > 0 else other
        return Posterior(model.low, better, 1 - apart, converged=False, sweeps=sweeps)
    kept = model.answers.law is not AnswerLaw.UNIFORM or max(chain.loss for chain in chains) == 0
    agreed = 1 - apart >= CONVERGED_AGREEMENT and kept
    return Posterior(model.low, (one + other) / 2, 1 - apart, converged=agreed, sweeps=sweeps)


# Compiled sweeps: one unknown at a time, then one unit from place to place ----------------------
#
# Fields are the slopes of the Gaussian stand-in, and curvature is how they change.


VALUES_PER_WINDOW = 64
"""So many values of an unknown are weighed at a time."""

LEAST_LOG_WEIGHT = -30.0
"""Log-weights this far below the largest count as none."""


class ChainState(NamedTuple):
    """Where a chain is, and what follows from it; kernels change all three."""

    point: Floats
    residuals: Floats
    fields: Floats  # none without a stand-in


class ChainSetting(NamedTuple):
    """What stays as it is during a sweep."""

    low: Floats
    high: Floats
    curvature: NDArray[np.float32]  # without rows: no stand-in
    diagonal: Floats
    sharpness: float  # how much the likelihood counts


class ValueDraws(NamedTuple):
    """The order of the unknowns, and uniform draws for each: of its value and of its window."""

    order: NDArray[np.int64]
    values: Floats
    windows: Floats


class SwapDraws(NamedTuple):
    """Unknowns to take a unit from, and uniform draws for each of these offers."""

    order: NDArray[np.int64]
    directions: Floats
    partners: Floats
    acceptances: Floats
    equations: Floats


StoredColumns = tuple[NDArray[np.int64], NDArray[np.uint32]]
"""Where each equation begins, and the unknowns that equations add up."""


@compiled
def draw_weighted(weights: Floats, count: int, draw: float) -> tuple[int, float]:
    """Turn log-weights into weights, in place, and draw one of them; also their total."""
    best = -np.inf
    for i in range(count):
        best = max(best, weights[i])
    total = 0.0
    for i in range(count):
        rest = weights[i] - best
        weights[i] = exp(rest) if rest > LEAST_LOG_WEIGHT else 0.0
        total += weights[i]
    left, chosen = draw * total, -1
    for i in range(count):
        if weights[i] > 0:
            chosen = i
            left -= weights[i]
            if left < 0:
                break
    return chosen, total


@compiled
def move(
    system: LossColumns,
    chain: ChainState,
    curvature: NDArray[np.float32],
    unknown: int,
    step: float,
) -> None:
    """Let one unknown change by `step`, and everything that follows from it."""
    point, residuals, fields = chain
    point[unknown] += step
    change(system, residuals, unknown, step)
    if curvature.shape[0] > 0:
        own = curvature[unknown]
        for i in range(fields.shape[0]):
            fields[i] -= step * own[i]


@compiled
def log_weights(
    system: LossColumns,
    chain: ChainState,
    unknown: int,
    window: tuple[float, int],
    weights: Floats,
) -> None:
    """The log-likelihood of each value of a window, relative to the present one."""
    point, residuals, _ = chain
    first, count = window
    if system.law == GAUSSIAN_LOSS:
        slope, curve = parabola(system, residuals, unknown)
        for place in range(count):
            step = first + place - point[unknown]
            weights[place] = slope * step - 0.5 * curve * step * step
        return
    for place in range(count):
        step = first + place - point[unknown]
        weights[place] = 0.0 if step == 0 else loss_saved(system, residuals, unknown, step)


@compiled
def values_sweep(
    system: LossColumns,
    chain: ChainState,
    setting: ChainSetting,
    draws: ValueDraws,
    tally: Floats,
) -> None:
    """Draw each unknown anew given all the others; add its chances to a tally that has rows.

    A window of a wide range starts at a random distance below the present value, so that every
    window is as likely from each of its values.
    """
    low, high, curvature, _, sharpness = setting
    order, chosen, placed = draws
    point = chain.point
    weights = np.empty(VALUES_PER_WINDOW)
    for turn in range(order.shape[0]):
        j = order[turn]
        first, last = low[j], high[j]
        if last - first >= VALUES_PER_WINDOW:
            start = point[j] - np.floor(placed[turn] * VALUES_PER_WINDOW)
            first, last = max(first, start), min(last, start + VALUES_PER_WINDOW - 1)
        count = int(last - first) + 1
        log_weights(system, chain, j, (first, count), weights)
        base = int(first - low[j])
        weights[:count] *= sharpness
        place, total = draw_weighted(weights, count, chosen[turn])
        if tally.shape[0] > 0:
            tally[j, base : base + count] += weights[:count] / total
        if first + place != point[j]:
            move(system, chain, curvature, j, first + place - point[j])


@compiled
def pair_saved(
    system: LossColumns, residuals: Floats, taken: int, given: int, step: float
) -> float:
    """How much loss goes away when a unit goes from one unknown to another; all stays in place."""
    total = loss_saved(system, residuals, taken, -step)
    change(system, residuals, taken, -step)
    total += loss_saved(system, residuals, given, step)
    change(system, residuals, taken, step)
    return total


@compiled
def stand_in_partner(
    chain: ChainState, setting: ChainSetting, taken: int, step: float, draw: float
) -> tuple[int, float]:
    """A place that the stand-in draws for a unit, and the log-ratio of its weight to staying."""
    point, _, fields = chain
    low, high, curvature, diagonal, sharpness = setting
    own, gentle = curvature[taken], min(1.0, sharpness)
    weights = np.empty(point.shape[0])
    point[taken] -= step
    for i in range(point.shape[0]):
        inside = low[i] <= point[i] + step <= high[i]
        weight = gentle * (step * fields[i] + own[i] - 0.5 * diagonal[i])
        weights[i] = weight if inside else -np.inf
    point[taken] += step
    given, _ = draw_weighted(weights, weights.shape[0], draw)
    stays = step * fields[taken] + 0.5 * diagonal[taken]
    goes = step * fields[given] + own[given] - 0.5 * diagonal[given]
    return given, gentle * (goes - stays)


@compiled
def neighbour(
    system: LossColumns, rows: StoredColumns, unknown: int, draws: SwapDraws, turn: int
) -> int:
    """An unknown that shares an equation with this one; itself where it is in none."""
    starts, columns = rows
    first = system.starts[unknown]
    degree = system.starts[unknown + 1] - first
    if degree == 0:
        return unknown
    row = system.rows[first + int(draws.equations[turn] * degree)]
    length = starts[row + 1] - starts[row]
    return int(columns[starts[row] + int(draws.partners[turn] * length)])


@compiled
def swaps_sweep(
    system: LossColumns,
    rows: StoredColumns,
    chain: ChainState,
    setting: ChainSetting,
    draws: SwapDraws,
) -> None:
    """Take units from unknowns drawn at random, and offer each to another.

    The stand-in draws from its own exact conditional, so a move is accepted by the ratio of the
    law to the stand-in (Metropolis and Hastings). Without one, the other shares an equation: the
    pair is as likely to be offered from either side, and so is the way back.
    """
    point, residuals, _ = chain
    low, high, curvature, _, sharpness = setting
    for turn in range(draws.order.shape[0]):
        k = draws.order[turn]
        step = 1.0 if draws.directions[turn] < 0.5 else -1.0
        if not low[k] <= point[k] - step <= high[k]:
            continue
        i, proposed = k, 0.0
        if curvature.shape[0] > 0:
            i, proposed = stand_in_partner(chain, setting, k, step, draws.partners[turn])
        else:
            i = neighbour(system, rows, k, draws, turn)
        if i == k or not low[i] <= point[i] + step <= high[i]:
            continue
        gain = sharpness * pair_saved(system, residuals, k, i, step) - proposed
        if gain >= 0 or draws.acceptances[turn] < exp(gain):
            move(system, chain, curvature, k, -step)
            move(system, chain, curvature, i, step)
