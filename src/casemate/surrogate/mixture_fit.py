"""A mixture of products fitted to what was measured: a deterministic descent on squared residuals.

Each residual counts in units of its own noise. The weights of the components, and the shares of an
attribute in a component, are squares over their sum: never negative, with the sum one, and without
any exponential. Steps are those of Adam (mean slope over root mean square slope), shortened
linearly to nothing. A round that leaves some measurement further off than its noise explains is
followed by another from where it ended.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.surrogate import mixture_kernel as kernel
from casemate.surrogate.mixture_evidence import Comparison, Evidence, Layout, Mixture
from casemate.surrogate.product import Floats

LENGTH = 0.15
"""The first step of each root; roots start between nothing and one."""

WEIGHTS_LENGTH = 0.05
"""The same for the weights, as a part of it: a mixture in which all count answers best what nobody
measured."""

EXPLAINED = 6.0
"""The mean square of residuals is one in units of noise, up to so many of its own deviations."""

ROUNDS = 3
"""So many rounds at most."""

FEWEST = 60
"""Steps of a round, however large the tables are."""

WORK = 1e11
"""A round has fewer steps when they would be more multiplications than this."""


class Roots(NamedTuple):
    """What the descent moves: weights and shares are their squares, made to sum to one."""

    of_weights: Floats  # in one row
    of_shares: Floats


def start(components: int, layout: Layout, known: Sequence[Evidence] = ()) -> Roots:
    """Roots of numbers from a generator of counters: the same everywhere and for ever.

    An attribute of which nothing is known together with another one starts, and so stays, the
    same in all components: independent of all others.
    """
    codes = sum(layout.shape)
    bits = np.random.Philox(key=components).random_raw(components * codes)
    units = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    roots: Floats = np.sqrt(units).reshape(components, codes)
    tied = {attribute for each in known for attribute in each.tied}
    for attribute in set(range(len(layout.shape))) - tied:
        roots[:, layout.columns(attribute)] = 1.0
    return Roots(np.ones((1, components)), roots)


def mixture_of(roots: Roots, layout: Layout) -> Mixture:
    """The weights and shares that the roots stand for."""
    weights, _ = kernel.shares(roots.of_weights, _whole(roots))
    shares, _ = kernel.shares(roots.of_shares, layout.firsts)
    return Mixture(weights[0], shares)


def fitted(
    roots: Roots, layout: Layout, known: Sequence[Evidence], steps: int, rounds: int = ROUNDS
) -> Mixture:
    """The mixture after the descent, which moves the roots."""
    if known:
        steps = affordable(steps, roots.of_weights.size, known)
        for _ in range(rounds):
            if _round(roots, layout, known, steps) <= EXPLAINED:
                break
    return mixture_of(roots, layout)


def affordable(steps: int, components: int, known: Sequence[Evidence]) -> int:
    """How many steps a round has."""
    work = components * sum(each.work for each in known)
    return max(min(steps, int(WORK / work)), min(steps, FEWEST))


def compared(known: Sequence[Evidence], mixture: Mixture) -> Comparison:
    """The excess of each measurement, and the slopes of all together."""
    comparisons = [each.compare(mixture) for each in known]
    by_weight, by_share = comparisons[0].slopes
    for each in comparisons[1:]:
        by_weight, by_share = by_weight + each.slopes.weights, by_share + each.slopes.shares
    excesses = np.concatenate([each.excesses for each in comparisons])
    return Comparison(excesses, Mixture(by_weight, by_share))


def _round(roots: Roots, layout: Layout, known: Sequence[Evidence], steps: int) -> float:
    """Move the roots down; and the largest excess among all measurements before the last step."""
    whole, by_weight, by_share = _whole(roots), *map(_memory, roots)
    worst, fading, fading_squares = 0.0, 1.0, 1.0
    for taken in range(steps):
        excesses, slopes = compared(known, mixture_of(roots, layout))
        worst = float(excesses.max())
        fading *= kernel.FADING
        fading_squares *= kernel.FADING_SQUARES
        length = LENGTH * (1 - taken / steps)
        left = 1 - fading, 1 - fading_squares
        down = kernel.root_slopes(roots.of_weights, slopes.weights[None], whole)
        kernel.step(roots.of_weights, down, by_weight, WEIGHTS_LENGTH * length, left)
        down = kernel.root_slopes(roots.of_shares, slopes.shares, layout.firsts)
        kernel.step(roots.of_shares, down, by_share, length, left)
    return worst


def _memory(root: Floats) -> tuple[Floats, Floats]:
    """Mean slopes and mean squares of slopes, nothing so far."""
    return np.zeros_like(root), np.zeros_like(root)


def _whole(roots: Roots) -> NDArray[np.int64]:
    """All weights together sum to one."""
    return np.array([0, roots.of_weights.size])
