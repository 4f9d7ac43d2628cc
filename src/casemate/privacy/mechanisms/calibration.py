"""How much noise a sparse vector run takes, what it costs, and how accurate that leaves it.

Source     The noise of AboveThreshold and NumericSparse behind source document 003 (Theorem 3.28
           as recalled there), and of the form without resampling: Lyu, Su and Li, "Understanding
           the Sparse Vector Technique for Differential Privacy", PVLDB 10(6), 2017, Algorithm 1.
Guarantee  The cost is computed from the scales in use, never from the epsilon that was asked for.
Cost       Constant time; floats choose a split or state an error, only rationals state a cost.
Departure  Noise is a discrete Laplace on the integers, so every error bound is an integer from
           that law's exact tail. docs/derivations/sparse_vector.md has the proofs.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from casemate.privacy.cost import Concentrated, Pure
from casemate.privacy.noise.law import noise_bound, round_up

SHARE_STEPS = 4096  # a split chosen by a formula is a multiple of 1 / SHARE_STEPS


@dataclass(frozen=True)
class Calibration:
    """The noise of one run, for queries that move by at most `sensitivity` between neighbours.

    `monotone` promises that between two neighbours all queries move in the same direction.

    >>> Calibration.of(Fraction(1))
    Calibration(threshold=Fraction(2, 1), query=Fraction(4, 1), positives=1, sensitivity=1, \
monotone=False)
    """

    threshold: Fraction  # scale of the noise drawn once, on the threshold
    query: Fraction  # scale of the noise drawn for every comparison
    positives: int = 1  # c: positive answers before the run halts
    sensitivity: int = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        if self.threshold <= 0 or self.query <= 0:
            raise ValueError(f"scales must be positive, got {self.threshold} and {self.query}")
        if self.positives < 1 or self.sensitivity < 1:
            raise ValueError(
                f"need positives >= 1 and sensitivity >= 1, "
                f"got {self.positives} and {self.sensitivity}"
            )

    @classmethod
    def of(
        cls,
        epsilon: Fraction,
        share: Fraction = Fraction(1, 2),
        *,
        positives: int = 1,
        sensitivity: int = 1,
        monotone: bool = False,
    ) -> Self:
        """Spend at most `epsilon`, and `share` of it on the threshold; one half is the source's."""
        if epsilon <= 0 or not 0 < share < 1:
            raise ValueError(f"need epsilon > 0 and 0 < share < 1, got {epsilon} and {share}")
        shifts = _shifts(positives, monotone)
        threshold = round_up(sensitivity / (Fraction(epsilon) * share))
        query = round_up(shifts * sensitivity / (Fraction(epsilon) * (1 - share)))
        return cls(threshold, query, positives, sensitivity, monotone)

    @property
    def epsilon(self) -> Fraction:
        """The exact worst-case loss of a run, gaps included."""
        shifts = _shifts(self.positives, self.monotone)
        return self.sensitivity * (1 / self.threshold + shifts / self.query)

    @property
    def cost(self) -> Pure:
        """What opening a run costs, whether or not it ever fires."""
        return Pure(self.epsilon)

    @property
    def concentrated_cost(self) -> Concentrated:
        """The same in zCDP: an epsilon-private step is epsilon^2/2-concentrated."""
        return Concentrated(self.epsilon**2 / 2)

    def error_bound(self, comparisons: int, beta: float, runs: int = 1) -> int:
        """Bound every error of `runs` runs at once, except with probability `beta`.

        A positive answer then means value >= threshold - bound, a negative one value <
        threshold + bound, and threshold + gap is within bound of the value. A two-sided question
        is two comparisons.
        """
        return noise_bound(self.threshold, runs, beta / 2) + noise_bound(
            self.query, comparisons, beta / 2
        )

    def error_bound_at(self, question: int, beta: float, runs: int = 1, sides: int = 2) -> int:
        """Bound the error at question 1, 2, 3, ... without knowing how many there will be.

        All of these hold at once except with probability `beta`: question i may fail with
        beta/(2 i^2), which adds up to beta pi^2/12, and the thresholds with beta/6.
        """
        if question < 1:
            raise ValueError(f"questions are numbered from 1, got {question}")
        return noise_bound(self.threshold, runs, beta / 6) + noise_bound(
            self.query, sides, beta / (2 * question**2)
        )


def accuracy_share(
    comparisons: int, beta: float, *, positives: int = 1, runs: int = 1, monotone: bool = False
) -> Fraction:
    """Return the threshold's share of epsilon that makes `error_bound` least."""
    threshold = math.log(2 * runs / beta)
    query = _shifts(positives, monotone) * math.log(2 * comparisons / beta)
    return _on_grid(math.sqrt(threshold) / (math.sqrt(threshold) + math.sqrt(query)))


def run_epsilon(rho: Fraction, runs: int) -> Fraction:
    """Return the most epsilon each of `runs` runs may spend within a total of `rho`, rounded down.

    >>> round(float(run_epsilon(Fraction(2436, 100_000), 30)), 4)
    0.0403
    """
    if rho <= 0 or runs < 1:
        raise ValueError(f"need rho > 0 and runs >= 1, got {rho} and {runs}")
    return Fraction(math.isqrt(math.floor(2 * Fraction(rho) / runs * 4**40)), 2**40)


def _shifts(positives: int, monotone: bool) -> int:
    """How many sensitivities the noise of the positive answers must hide."""
    return positives if monotone else 2 * positives


def _on_grid(share: float) -> Fraction:
    return Fraction(min(max(round(share * SHARE_STEPS), 1), SHARE_STEPS - 1), SHARE_STEPS)
