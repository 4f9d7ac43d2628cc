"""Gaussian noise with exact accounting: the honest baseline of everything that saves questions.

Source     Balle and Wang, arXiv:1805.06530, Theorem 8: noise of deviation s on a number that moves
           by one is (epsilon, delta)-private exactly if Phi(m/2 - epsilon/m) - exp(epsilon)
           Phi(-m/2 - epsilon/m) <= delta, with m = 1/s. Many such numbers together behave like one
           whose m squared is the sum of theirs (Dong, Roth and Su, arXiv:1905.02383).
Guarantee  Floats, for comparison only: the ledger adds up rho, for questions that are chosen along
           the way, and this is for questions that are all fixed in advance.
"""

import math

ROUNDS = 200
LARGEST_EXPONENT = 700.0


def exact_gaussian(epsilon: float, delta: float) -> float:
    """The least deviation of noise, to one sensitivity, that is (epsilon, delta)-private.

    >>> round(exact_gaussian(1.0, 1e-6), 3)
    4.225
    """
    if epsilon <= 0 or not 0 < delta < 1:
        raise ValueError(f"need epsilon > 0 and 0 < delta < 1, got {epsilon} and {delta}")
    low, high = 1e-6, 1e9  # of the deviation: delta falls while it grows
    for _ in range(ROUNDS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delta_of(middle, epsilon) > delta else (low, middle)
    return high


def delta_of(deviation: float, epsilon: float) -> float:
    """The delta of noise of this deviation at epsilon."""
    m = 1 / deviation
    above = _normal(m / 2 - epsilon / m)
    below = _normal(-m / 2 - epsilon / m)
    return above - (math.exp(min(epsilon, LARGEST_EXPONENT)) * below if below else 0.0)


def _normal(x: float) -> float:
    """P(X <= x)."""
    return math.erfc(-x / math.sqrt(2)) / 2
