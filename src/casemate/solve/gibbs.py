"""A chain of whole points, each drawn from the last, that forgets where it started.

Method     Gibbs sampling: each unknown is drawn anew given the others. Where sums are known well,
           no value can change alone, so a sweep also takes a unit from each unknown and puts it
           elsewhere: at a place drawn from a Gaussian stand-in, accepted by Metropolis and
           Hastings; without room for the stand-in, offered to an unknown of the same equation.
Cost       A sweep reads every entry twice and, with a stand-in, every pair of unknowns twice; the
           stand-in takes 4 bytes for each pair.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.solve.inner_products import inner_products
from casemate.solve.law import Noisy
from casemate.solve.rows import Floats

MOST_PAIRS = 2**26
"""With more pairs of unknowns there is no stand-in."""

MOST_CHANCES = 2**25
"""No table of chances is larger."""

RENEWAL = 16
"""Sweeps after which sums that were kept up to date are computed afresh."""


class Model:
    """What chains share: the answers, the ranges, the prior, and the Gaussian stand-in."""

    def __init__(self, answers: Noisy, low: Floats, high: Floats, prior: Floats | None) -> None:
        self.answers, self.low, self.high = answers, low, high
        self.unknowns = answers.equations.width
        self.span = int((high - low).max(initial=0)) + 1
        if self.unknowns * self.span > MOST_CHANCES:
            raise ValueError(
                f"{self.unknowns} unknowns of up to {self.span} values are too many to weigh each; "
                f"give narrower ranges"
            )
        self._prior = log_prior(prior, self.unknowns, self.span)
        self._curvature = self._stand_in()
        self._diagonal = np.diag(self._curvature).astype(np.float64)

    def _stand_in(self) -> NDArray[np.float32]:
        if not self.has_stand_in:
            return np.zeros((0, 0), np.float32)
        variance = self.answers.law.variance * self.answers.spread**2
        return inner_products(self.answers.equations, 1 / variance)

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
        return (self.low, self.high, self._prior, *stand_in, sharpness)


def log_prior(prior: Floats | None, unknowns: int, span: int) -> Floats:
    """The logarithms of a prior, as a table of one line or one for each unknown."""
    if prior is None:
        return np.zeros((0, 0))
    table = np.atleast_2d(prior).astype(np.float64)
    if table.shape not in {(1, span), (unknowns, span)} or not (table >= 0).all():
        raise ValueError(
            f"a prior needs a weight for each of {span} values, in one line or in {unknowns}, "
            f"got {table.shape[0]} by {table.shape[1]}, or a weight below 0"
        )
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(table), -1e300)


class Chain:
    """A point that wanders over the whole values, and the chances it has met."""

    def __init__(self, model: Model, start: NDArray[Any], random: np.random.Generator) -> None:
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
        from casemate.solve import gibbs_kernel as kernel

        model, random, unknowns = self._model, self._random, len(self.point)
        system, setting = model.answers.system, model.setting(sharpness)
        chain = self.point, self.left, self._fields
        draws = random.permutation(unknowns), random.random(unknowns), random.random(unknowns)
        kernel.values_sweep(
            system, chain, setting, draws, np.zeros((0, 0)) if tally is None else tally
        )
        # Not each unknown once: a swap can be undone from its other end only, so only a free choice
        # of where to begin leaves the posterior as it is.
        offers = (random.integers(0, unknowns, unknowns), *random.random((4, unknowns)))
        if model.has_stand_in:
            kernel.swaps_sweep(system, chain, setting, offers)
        else:
            rows = model.answers.equations.starts, model.answers.equations.columns
            kernel.neighbour_swaps_sweep(system, rows, chain, setting, offers)
        self._done += 1
        if self._done % RENEWAL == 0:
            self._renew()
