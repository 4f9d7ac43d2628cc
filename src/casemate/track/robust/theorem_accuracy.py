"""Lemma 7 with exact tails: by what argument, and whether, a round stays within alpha N0.

Source     Source document 001, Lemmas 6 and 7 and the proof of Theorem 1.
Guarantee  Where `Accuracy.proved`, the count is within alpha N0 <= alpha N of N at all times until
           the horizon, with probability at least 1 - delta, against anybody who sees the
           published counts alone. The argument is in docs/derivations/robust_literal.md.
Cost       Milliseconds: the law of the noise is tabulated.
Departure  The printed proof drops a factor 4 and the constant of Theorem 2: its bound on the
           noise of the Binary Mechanism, C sqrt(k), is passed often
           (`test_the_printed_bound_on_the_noise_fails`). The sum 8 C sqrt(k) holds all the same:
           we take the exact law of the noise, and Theorem 7 in place of Theorem 4. It is proved
           for every number of sites tried but 2, where it is not claimed
           (`test_lemma_7_is_proved_for_every_number_of_sites_but_two`). Up to some 300 sites the
           blocks that are under way are too few for any adversary: privacy is not needed.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from casemate.privacy.best_bound import best
from casemate.privacy.generalisation import Setting as Mechanism
from casemate.track.robust.theorem import SPARE, Constants, most_rounds
from casemate.track.robust.theorem_kernel import beyond, laws_of_sums


@dataclass(frozen=True)
class Accuracy:
    """What a count may be off in a round, in bits, each worth a block of items."""

    rounds: int  # so many rounds are covered
    failure: float  # what is allowed to fail in each of them
    lag: float  # T: bits of the phase that is not over
    binary_mechanism: float  # its error alone
    threshold_noise: float  # the largest excess of a noisy threshold, alone
    noise: float  # the two together, by the law of their sum
    generalisation: float  # what an adversary gains who adapts, and plain chance
    statement: str  # by which the last one is bounded
    budget: float  # 8 C sqrt(k) = alpha N0

    @property
    def total(self) -> float:
        """The proved bound."""
        return self.lag + self.noise + self.generalisation

    @property
    def proved(self) -> bool:
        """Whether the bound is within what Lemma 7 promises."""
        return self.total <= self.budget


@lru_cache(maxsize=256)
def accuracy(tracker: Constants, among: tuple[str, ...] = ("Theorem 7",)) -> Accuracy:
    """Sum up what a count may be off; `among` names the statements that may bound the last part."""
    rounds = most_rounds(tracker)
    failure = (1 - SPARE) * tracker.setting.delta / rounds
    noise = RoundNoise(tracker)
    both = noise.quantile(failure / 2)
    gain, statement = _generalisation(tracker, tracker.threshold + both, failure, among)
    return Accuracy(
        rounds=rounds,
        failure=failure,
        lag=tracker.threshold,
        binary_mechanism=noise.of_mechanism(failure / 2),
        threshold_noise=noise.of_threshold(failure / 2),
        noise=both,
        generalisation=gain,
        statement=statement,
        budget=tracker.budget,
    )


def _generalisation(
    tracker: Constants, error: float, failure: float, among: tuple[str, ...]
) -> tuple[float, str]:
    """Lemma 6: from the error about the bits that were sent to that about their mean.

    A query touches one block of each site, and each phase gives away one block.
    """
    sites = tracker.setting.sites
    samples = sites * (tracker.blocks + 1)
    mechanism = Mechanism(
        samples=samples,
        epsilon=tracker.epsilon,
        alpha=error / samples,
        beta=failure / 2,
        leaked=tracker.phases,
        touched=sites,
    )
    bound = best(mechanism, failure, among)
    return bound.deviation * samples - error, bound.statement


class RoundNoise:
    """The noise of a round: of the Binary Mechanism after each phase, and of each threshold."""

    def __init__(self, tracker: Constants) -> None:
        self._tracker = tracker
        ones = [phase.bit_count() for phase in range(1, tracker.phases + 1)]
        self._times = np.bincount(ones)[1:]  # how many phases add up so many draws of noise
        self._laws = laws_of_sums(tracker.levels * tracker.noise_scale, len(self._times))
        self._reach = self._laws.shape[1] // 2
        self._beyond = tracker.phases * beyond(len(self._times))
        self._values = np.arange(-self._reach, self._reach + 1, dtype=float)

    def quantile(self, failure: float) -> float:
        """What the error about the bits, less T, exceeds with at most this probability."""
        low, high = 0.0, float(self._reach)
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self._exceeds(middle) <= failure else (middle, high)
        return high

    def _exceeds(self, excess: float) -> float:
        """The chance that after some phase the count is above by T + excess, or below.

        Below, the bits of the next phase are missing as well, up to its noisy threshold.
        """
        above = self._values > self._tracker.threshold + excess
        chances = self._laws[:, above].sum(1) + self._laws @ self._threshold_above(
            excess - self._values
        )
        first = self._threshold_above(np.array([excess]))[0]
        return float(first + self._times @ chances + self._beyond)

    def _threshold_above(self, excess: NDArray[np.float64]) -> NDArray[np.float64]:
        """The chance that a noisy threshold, which is positive, is above T by more than this."""
        scaled = excess / self._tracker.noise_scale
        tail = np.where(scaled > 0, np.exp(-np.abs(scaled)) / 2, 1 - np.exp(-np.abs(scaled)) / 2)
        chances: NDArray[np.float64] = np.minimum(1.0, tail / (1 - self._tracker.redrawn))
        return chances

    def of_mechanism(self, failure: float) -> float:
        """What the Binary Mechanism's error exceeds in some phase with at most this probability."""
        upper = self._times @ self._laws[:, self._reach :]
        tails = 2 * (np.cumsum(upper[::-1])[::-1] - upper) + self._beyond
        return float(np.argmax(tails <= failure))

    def of_threshold(self, failure: float) -> float:
        """What some threshold's noise exceeds with at most this probability."""
        odds = self._tracker.phases / (2 * (1 - self._tracker.redrawn) * failure)
        return self._tracker.noise_scale * math.log(odds)
