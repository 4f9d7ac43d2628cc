"""Continual counting: publish a running total after every item, privately.

Source     Source document 001 (robust count tracking), Appendix B, Algorithm 3; after Chan, Shi
           and Song.
Guarantee  Theorem 2: epsilon-differential privacy for streams that differ in one item by at most
           `sensitivity`, and error O(log(L)^1.5 log(L/beta) / epsilon) at all L steps.
Cost       O(log L) memory; O(log L) time and one draw of noise an item. It spends epsilon once,
           when it is made, however few items follow.
Departure  The source splits epsilon over log L partial sums. An item enters up to L.bit_length()
           of them (two, not one, when L = 2), so we split it over that many.
           `test_the_papers_constant_is_not_private` shows the difference. Items and noise are
           integers, so that the noise is exact; the source's real numbers go on a grid first.
"""

import math
import operator
from fractions import Fraction

from casemate.errors import HorizonReached
from casemate.privacy.cost import Pure
from casemate.privacy.noise.noise import Noise, discrete_laplace, draw


class BinaryMechanism:
    """A private running total of at most `horizon` integers.

    >>> from casemate.privacy.noise.noise import silence
    >>> total = BinaryMechanism(horizon=4, epsilon=Fraction(1), noise=silence)
    >>> [total.add(item) for item in [1, 0, 1, 1]]
    [1, 1, 2, 3]
    >>> total.cost
    Pure(epsilon=Fraction(1, 1))
    """

    def __init__(
        self,
        horizon: int,  # L in the source
        epsilon: Fraction,
        noise: Noise = discrete_laplace,
        sensitivity: int = 1,
    ) -> None:
        if horizon < 1 or epsilon <= 0 or sensitivity < 1:
            raise ValueError(
                f"need horizon >= 1, epsilon > 0 and sensitivity >= 1, "
                f"got {horizon}, {epsilon} and {sensitivity}"
            )
        self.horizon = horizon
        self.cost = Pure(Fraction(epsilon))
        self.levels = horizon.bit_length()
        self.scale = sensitivity * self.levels / self.cost.epsilon
        self._noise = noise
        self._step = 0
        self._exact = [0] * self.levels  # newest partial sum of each level: c_i in the source
        self._noisy = [0] * self.levels  # those in use, as published: c-hat_i in the source

    def add(self, item: int) -> int:
        """Take the next item of the stream and return the private total so far."""
        if self._step == self.horizon:
            raise HorizonReached(self.horizon)
        number = operator.index(item)
        self._step += 1
        level = (self._step & -self._step).bit_length() - 1  # lowest set bit of the step
        self._exact[level] = sum(self._exact[:level]) + number
        self._noisy[level] = self._exact[level] + draw(self._noise, self.scale)
        self._noisy[:level] = [0] * level  # these sums are now part of `level`
        return sum(self._noisy)

    def error_bound(self, beta: float) -> float:
        """Bound the error of every answer at once, except with probability `beta`.

        An answer adds up the noise of as many sums as its step has ones in binary. Chernoff's bound
        on them, joined over the horizon, holds for each u in (0, 1); we take the best of a grid.
        The moments of Laplace's law, 1 / (1 - u^2), bound those of the discrete one, because
        (cosh(y) - 1) / y^2 grows with y.
        """
        if not 0 < beta < 1:
            raise ValueError(f"beta must lie between 0 and 1, got {beta}")
        summands = (self.horizon + 1).bit_length() - 1  # the most ones in a step
        log_odds = math.log(2 * self.horizon / beta)
        grid = (u / 100 for u in range(1, 100))
        return float(self.scale) * min((log_odds - summands * math.log1p(-u * u)) / u for u in grid)
