"""The chance of every value of every whole unknown, given noisy answers.

Source     Source document 002, "Incorporating background knowledge": values that are whole numbers,
           answers that carry noise. The threshold that it is measured at is that of I. Dinur and
           K. Nissim, "Revealing information while preserving privacy", PODS 2003.
Method     Two chains of `gibbs`, one from the start given and one from anywhere, which is cooled
           during the warm-up (S. Kirkpatrick et al., "Optimization by simulated annealing",
           Science 220, 1983); noise with a hard bound begins with a soft wall, which is closed once
           every bound is kept. Chances are averages of conditional chances, not counts. A chain
           whose likelihood stays plainly below the other's is stuck and does not count.
Guarantee  Where both chains have forgotten their starts, a value given the chance p is right with
           probability p over values drawn alike from their ranges. `agreement` compares the
           chains, and `converged` says whether they agree and keep every bound.
Cost       Two chains, each a warm-up and as many sweeps again: 4,096 unknowns in 16,384 half
           subsets take 0.15 s a sweep.

A chain of whole points, each drawn from the last, that forgets where it started.

Method     Gibbs sampling: each unknown is drawn anew given the others. Where sums are known well,
           no value can change alone, so a sweep also takes a unit from each unknown and puts it
           elsewhere: at a place drawn from a Gaussian stand-in, accepted by Metropolis and
           Hastings; without room for the stand-in, offered to an unknown of the same equation.
Cost       A sweep reads every entry twice and, with a stand-in, every pair of unknowns twice; the
           stand-in takes 4 bytes for each pair.

Compiled sweeps of the sampler: one unknown at a time, then one unit from place to place.

Arguments come in groups: `system` is that of `law_kernel`; `chain` is (point, left, fields);
`setting` is (low, high, curvature, its diagonal, sharpness). Fields are the slopes of
the Gaussian stand-in, and curvature is how they change; sharpness is how much the likelihood
counts. A curvature without rows is absent.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.iteration import Progress
from casemate.attack.solvers.laws import GAUSSIAN, AnswerLaw, Noisy, change, parabola, saved
from casemate.attack.solvers.watched_program import as_sparse
from casemate.attack.solvers.whole_decoding import rounded, whole_ends
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

RENEWAL = 16
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

    def fields(self, left: Floats) -> Floats:
        """The slope of the stand-in for each unknown."""
        if not self.has_stand_in:
            return np.zeros(0)
        answers = self.answers
        weights = left / answers.spread / answers.law.variance
        return answers.equations.transposed(weights * answers.equations.lengths)

    def setting(self, sharpness: float) -> Any:
        """What compiled sweeps need besides the answers."""
        stand_in = self._curvature, self._diagonal
        return (self.low, self.high, *stand_in, sharpness)


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
        self.left = self._model.answers.left(self.point)
        self._fields = self._model.fields(self.left)

    @property
    def loss(self) -> float:
        """The negative log-likelihood of the point, up to a constant."""
        return self._model.answers.loss(self.left)

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
        system, setting = model.answers.system, model.setting(sharpness)
        chain = self.point, self.left, self._fields
        draws = random.permutation(unknowns), random.random(unknowns), random.random(unknowns)
        values_sweep(system, chain, setting, draws, np.zeros((0, 0)) if tally is None else tally)
        # Not each unknown once: a swap can be undone from its other end only, so only a free choice
        # of where to begin leaves the posterior as it is.
        offers = (random.integers(0, unknowns, unknowns), *random.random((4, unknowns)))
        if model.has_stand_in:
            swaps_sweep(system, chain, setting, offers)
        else:
            rows = model.answers.equations.starts, model.answers.equations.columns
            neighbour_swaps_sweep(system, rows, chain, setting, offers)
        self._done += 1
        if self._done % RENEWAL == 0:
            self._renew()


# Posterior --------------------------------------------------------------------------------------


COOL = 0.7
"""The part of the warm-up in which the likelihood gains its weight."""

HOT = 0.1
"""How much of the likelihood counts where the second chain begins."""

WALL = 30.0
"""How steep the wall around a hard bound gets, in nats per half width, before it is closed."""

CLOSED = 1e9

OPEN = 15.0
"""How steep it stays where no point that keeps every bound was met."""

AGREED = 0.9
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
        levels = _cooling(law, min(1.0, sweep / (COOL * warm_up)))
        for chain, level in zip(chains, levels, strict=True):
            chain.sweep(level)
        _tell(progress, sweep + 1, answers, chains[0])
    levels = (_final(law, chains[0]), _final(law, chains[1]))
    for sweep in range(sweeps):
        for chain, level in zip(chains, levels, strict=True):
            chain.count(level)
        _tell(progress, warm_up + sweep + 1, answers, chains[0])
    return _combined(model, chains, warm_up + sweeps)


def _chains(
    model: PosteriorModel, start: Floats, random: np.random.Generator
) -> tuple[MarkovChain, MarkovChain]:
    """One from the start, and one from anywhere."""
    low, high = model.low, model.high
    anywhere = random.integers(low.astype(np.int64), high.astype(np.int64), endpoint=True)
    return MarkovChain(model, rounded(start, low, high), random), MarkovChain(
        model, anywhere, random
    )


def _cooling(law: AnswerLaw, share: float) -> tuple[float, float]:
    """How much the likelihood counts in each chain after this share of the cooling."""
    if law is AnswerLaw.UNIFORM:
        return WALL**share, WALL**share
    return 1.0, HOT ** (1 - share)


def _final(law: AnswerLaw, chain: MarkovChain) -> float:
    """How much it counts from then on: bounds that are kept are closed."""
    if law is not AnswerLaw.UNIFORM:
        return 1.0
    return CLOSED if chain.loss == 0 else OPEN


def _tell(progress: Progress | None, sweep: int, answers: Noisy, chain: MarkovChain) -> None:
    if progress is not None:
        progress(sweep, answers.residual(chain.left), chain.point)


def _combined(
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
    agreed = 1 - apart >= AGREED and kept
    return Posterior(model.low, (one + other) / 2, 1 - apart, converged=agreed, sweeps=sweeps)


# Gibbs kernel -----------------------------------------------------------------------------------


WINDOW = 64
"""So many values of an unknown are weighed at a time."""

FAR = -30.0
"""Log-weights this far below the largest count as none."""


@compiled
def drawn(weights: Any, count: Any, draw: Any) -> Any:
    """Turn log-weights into weights, in place, and draw one of them; also their total."""
    best = -np.inf
    for i in range(count):
        best = max(best, weights[i])
    total = 0.0
    for i in range(count):
        rest = weights[i] - best
        weights[i] = exp(rest) if rest > FAR else 0.0
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
def move(system: Any, chain: Any, curvature: Any, unknown: Any, step: Any) -> None:
    """Let one unknown change by `step`, and everything that follows from it."""
    point, left, fields = chain
    point[unknown] += step
    change(system, left, unknown, step)
    if curvature.shape[0] > 0:
        own = curvature[unknown]
        for i in range(fields.shape[0]):
            fields[i] -= step * own[i]


@compiled
def weigh(system: Any, chain: Any, unknown: Any, window: Any, weights: Any) -> None:
    """The log-likelihood of each value of a window, relative to the present one."""
    point, left, _ = chain
    first, count = window
    if system[-1] == GAUSSIAN:
        slope, curve = parabola(system, left, unknown)
        for place in range(count):
            step = first + place - point[unknown]
            weights[place] = slope * step - 0.5 * curve * step * step
        return
    for place in range(count):
        step = first + place - point[unknown]
        weights[place] = 0.0 if step == 0 else saved(system, left, unknown, step)


@compiled
def values_sweep(system: Any, chain: Any, setting: Any, draws: Any, tally: Any) -> None:
    """Draw each unknown anew given all the others; add its chances to a tally that has rows.

    A window of a wide range starts at a random distance below the present value, so that every
    window is as likely from each of its values.
    """
    low, high, curvature, _, sharpness = setting
    order, chosen, placed = draws
    point = chain[0]
    weights = np.empty(WINDOW)
    for turn in range(order.shape[0]):
        j = order[turn]
        first, last = low[j], high[j]
        if last - first >= WINDOW:
            start = point[j] - np.floor(placed[turn] * WINDOW)
            first, last = max(first, start), min(last, start + WINDOW - 1)
        count = int(last - first) + 1
        weigh(system, chain, j, (first, count), weights)
        base = int(first - low[j])
        weights[:count] *= sharpness
        place, total = drawn(weights, count, chosen[turn])
        if tally.shape[0] > 0:
            tally[j, base : base + count] += weights[:count] / total
        if first + place != point[j]:
            move(system, chain, curvature, j, first + place - point[j])


@compiled
def partners(chain: Any, setting: Any, taken: Any, step: Any, weights: Any) -> None:
    """The stand-in's log-weight of every place for a unit that was taken from one unknown."""
    point, _, fields = chain
    low, high, curvature, diagonal, sharpness = setting
    own, gentle = curvature[taken], min(1.0, sharpness)
    point[taken] -= step
    for i in range(point.shape[0]):
        inside = low[i] <= point[i] + step <= high[i]
        weight = gentle * (step * fields[i] + own[i] - 0.5 * diagonal[i])
        weights[i] = weight if inside else -np.inf
    point[taken] += step


@compiled
def pair_saved(system: Any, left: Any, taken: Any, given: Any, step: Any) -> Any:
    """How much loss goes away when a unit goes from one unknown to another; `left` is kept."""
    total = saved(system, left, taken, -step)
    change(system, left, taken, -step)
    total += saved(system, left, given, step)
    change(system, left, taken, step)
    return total


@compiled
def swaps_sweep(system: Any, chain: Any, setting: Any, draws: Any) -> None:
    """Take units from unknowns drawn at random, and put each where the stand-in and the law agree.

    The stand-in draws from its own exact conditional, so a move is accepted by the ratio of the
    law to the stand-in (Metropolis and Hastings).
    """
    order, coins, chosen, accepted, _ = draws
    point, left, fields = chain
    low, high, curvature, diagonal, sharpness = setting
    gentle = min(1.0, sharpness)
    weights = np.empty(point.shape[0])
    for turn in range(order.shape[0]):
        k = order[turn]
        step = 1.0 if coins[turn] < 0.5 else -1.0
        if not low[k] <= point[k] - step <= high[k]:
            continue
        partners(chain, setting, k, step, weights)
        i, _ = drawn(weights, weights.shape[0], chosen[turn])
        if i == k:
            continue
        stays = step * fields[k] + 0.5 * diagonal[k]
        goes = step * fields[i] + curvature[k, i] - 0.5 * diagonal[i]
        gain = sharpness * pair_saved(system, left, k, i, step) - gentle * (goes - stays)
        if gain >= 0 or accepted[turn] < exp(gain):
            move(system, chain, curvature, k, -step)
            move(system, chain, curvature, i, step)


@compiled
def neighbour_swaps_sweep(system: Any, rows: Any, chain: Any, setting: Any, draws: Any) -> None:
    """Offer to take a unit from unknowns drawn at random to one that shares an equation.

    The pair is as likely to be offered from either side, and so is the way back.
    """
    order, coins, chosen, accepted, picked = draws
    point, left, _ = chain
    low, high, _, _, sharpness = setting
    starts, equations = system[0], system[1]
    for turn in range(order.shape[0]):
        k = order[turn]
        degree = starts[k + 1] - starts[k]
        if degree == 0:
            continue
        row = equations[starts[k] + int(picked[turn] * degree)]
        length = rows[0][row + 1] - rows[0][row]
        i = rows[1][rows[0][row] + int(chosen[turn] * length)]
        step = 1.0 if coins[turn] < 0.5 else -1.0
        if i == k or not low[k] <= point[k] - step <= high[k]:
            continue
        if not low[i] <= point[i] + step <= high[i]:
            continue
        gain = sharpness * pair_saved(system, left, k, i, step)
        if gain >= 0 or accepted[turn] < exp(gain):
            point[k] -= step
            point[i] += step
            change(system, left, k, -step)
            change(system, left, i, step)
