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
           probability p over values drawn from the prior. `agreement` compares the chains, and
           `converged` says whether they agree and keep every bound.
Cost       Two chains, each a warm-up and as many sweeps again: 4,096 unknowns in 16,384 half
           subsets take 0.15 s a sweep.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from casemate.solve.box_squares import box_squares
from casemate.solve.gibbs import Chain, Model
from casemate.solve.law import Law, Noisy
from casemate.solve.least_squares import Progress
from casemate.solve.rows import Floats, Rows
from casemate.solve.whole_box import rounded, whole_ends

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

START_STEPS = 100
"""Steps of least squares, to a hundredth, that lead to the start."""


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

    @property
    def mean(self) -> Floats:
        """The mean of each unknown."""
        means: Floats = self.first + self.chances @ np.arange(self.chances.shape[1])
        return means

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
    law: Law,
    spread: Floats | float,
    low: Floats | float,
    high: Floats | float,
    random: np.random.Generator,
    start: Floats | None = None,
    prior: Floats | None = None,
    warm_up: int = 60,
    sweeps: int = 60,
    progress: Progress | None = None,
) -> Posterior:
    """The chances of whole values between finite ends, given answers with noise of a known law.

    `prior` holds the weight of each value, from the low end on: one line for all unknowns, or one
    for each; without it all values are alike. The start is least squares, rounded, unless given.

    >>> from casemate.solve.system import System
    >>> rows, draws = Rows.of(System.of([[1, 1], [1, 0]])), np.random.default_rng(0)
    >>> found = posterior(
    ...     rows, np.array([1.1, 0.9]), law=Law.GAUSSIAN, spread=0.2, low=0, high=1, random=draws
    ... )
    >>> found.values.tolist(), found.probability.round(2).tolist()
    ([1.0, 0.0], [1.0, 1.0])
    """
    if sweeps < 1 or warm_up < 0:
        raise ValueError(f"need a sweep and no less than no warm-up, got {sweeps} and {warm_up}")
    box = whole_ends(low, high, equations.width)
    answers = Noisy.of(equations, right, law, spread)
    model = Model(answers, *box, prior)
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


def _chains(model: Model, start: Floats | None, random: np.random.Generator) -> tuple[Chain, Chain]:
    """One from the start, or from least squares, and one from anywhere."""
    low, high, answers = model.low, model.high, model.answers
    if start is None:
        start = box_squares(
            answers.equations, answers.right, low=low, high=high, tolerance=1e-2, most=START_STEPS
        ).values
    anywhere = random.integers(low.astype(np.int64), high.astype(np.int64), endpoint=True)
    return Chain(model, rounded(start, low, high), random), Chain(model, anywhere, random)


def _cooling(law: Law, share: float) -> tuple[float, float]:
    """How much the likelihood counts in each chain after this share of the cooling."""
    if law is Law.UNIFORM:
        return WALL**share, WALL**share
    return 1.0, HOT ** (1 - share)


def _final(law: Law, chain: Chain) -> float:
    """How much it counts from then on: bounds that are kept are closed."""
    if law is not Law.UNIFORM:
        return 1.0
    return CLOSED if chain.loss == 0 else OPEN


def _tell(progress: Progress | None, sweep: int, answers: Noisy, chain: Chain) -> None:
    if progress is not None:
        progress(sweep, answers.residual(chain.left), chain.point)


def _combined(model: Model, chains: tuple[Chain, Chain], sweeps: int) -> Posterior:
    """The chances of both chains, or of the better one where the other is plainly stuck."""
    one, other = (chain.chances for chain in chains)
    apart = 0.5 * float(np.abs(one - other).sum()) / max(1, len(one))
    gap = float(np.mean(chains[1].losses)) - float(np.mean(chains[0].losses))
    usual = 1 + 3 * sum(float(np.std(chain.losses)) for chain in chains)
    if abs(gap) > usual:
        better = one if gap > 0 else other
        return Posterior(model.low, better, 1 - apart, converged=False, sweeps=sweeps)
    kept = model.answers.law is not Law.UNIFORM or max(chain.loss for chain in chains) == 0
    agreed = 1 - apart >= AGREED and kept
    return Posterior(model.low, (one + other) / 2, 1 - apart, converged=agreed, sweeps=sweeps)
