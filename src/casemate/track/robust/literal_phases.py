"""The server of one round: bits come in, and a private count of them goes out after each phase.

Source     Source document 001, Algorithm 2, with Algorithm 3 (the Binary Mechanism) inside.
Guarantee  Lemma 5: what goes out is (epsilon, 0, L)-partially private for the sites' thresholds,
           where each of the L phases gives away the one block that ended it.
Cost       O(1) for a bit, O(log L) and four draws for a phase.
Departure  - Line 9 prints "j > sqrt(k)"; the Binary Mechanism has L = ceil(sqrt(k)) places, so the
             round ends after phase L.
           - Lemma 5 is false for a threshold of 0 or less, which acts like 1: it is drawn again
             (docs/derivations/partial_privacy.md, section 6).
           - The noise of the Binary Mechanism is the discrete Laplace law, as its inputs are whole
             numbers, and splits epsilon / 4 over floor(log2 L) + 1 levels.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.privacy.binary_mechanism import BinaryMechanism
from casemate.track.instruction import Draw
from casemate.track.robust.theorem import Constants


class Phases:
    """The phases of one round."""

    def __init__(self, tracker: Constants, draw: Draw) -> None:
        self._tracker, self._draw = tracker, draw
        epsilon = Fraction(tracker.epsilon) / 4
        self._mechanism = BinaryMechanism(tracker.phases, epsilon, whole_noise(draw))
        self._left = tracker.phases
        self._bits = 0  # c_j
        self.total = 0  # b-hat: the private count of the bits of the phases that are over
        self._threshold = self._noisy_threshold()

    def _noisy_threshold(self) -> int:
        """How many bits end the phase: the first whole number that is not below T-hat."""
        while True:
            noise = self._tracker.noise_scale * laplace(self._draw)
            if self._tracker.threshold + noise > 0:
                return math.ceil(self._tracker.threshold + noise)

    @property
    def over(self) -> bool:
        """Whether the last phase has ended."""
        return not self._left

    @property
    def room(self) -> int:
        """How many bits may still come without ending the phase."""
        return self._threshold - 1 - self._bits

    def take(self, bits: int) -> None:
        """Count so many bits, one after the other, until the last phase is over."""
        while bits > 0 and not self.over:
            taken = min(bits, self.room + 1)
            bits -= taken
            self._bits += taken
            if self._bits == self._threshold:
                self._end_phase()

    def _end_phase(self) -> None:
        self.total = self._mechanism.add(self._bits)
        self._bits = 0
        self._left -= 1
        if self._left:
            self._threshold = self._noisy_threshold()


def laplace(draw: Draw) -> float:
    """Laplace noise of scale 1: the difference of two exponential variables."""
    return math.log1p(-draw()) - math.log1p(-draw())


def whole_noise(draw: Draw) -> Callable[[Fraction, int], NDArray[Any]]:
    """Discrete Laplace noise: the difference of two geometric variables, by inversion.

    It hides thresholds, not people, and only from who sees counts alone, so that uniform numbers
    of 53 bits will do.
    """

    def draw_many(scale: Fraction, size: int) -> NDArray[Any]:
        s = float(scale)
        up_down = [(math.log1p(-draw()), math.log1p(-draw())) for _ in range(size)]
        return np.array([int(-s * up) - int(-s * down) for up, down in up_down], dtype=np.int64)

    return draw_many
