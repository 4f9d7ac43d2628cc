"""Noise for tests: written down beforehand, or the shipped one out of bulk draws."""

from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.privacy.noise import Bits, Noise, discrete_laplace


class Scripted:
    """Noise that is read from a list, then silent; it remembers the scales it was asked for."""

    def __init__(self, *numbers: int) -> None:
        self.numbers, self.scales = list(numbers), list[Fraction]()

    def __call__(self, scale: Fraction, size: int) -> NDArray[Any]:
        self.scales.append(scale)
        return np.array([self.numbers.pop(0) if self.numbers else 0 for _ in range(size)], object)


def in_stock(bits: Bits, factor: Fraction = Fraction(1)) -> Noise:
    """Real noise, drawn many at a time; a `factor` other than 1 is a mistake to notice."""
    stores: dict[Fraction, list[int]] = defaultdict(list)

    def noise(scale: Fraction, size: int) -> NDArray[Any]:
        store = stores[scale]
        if len(store) < size:
            store.extend(discrete_laplace(scale * factor, 10_000 + size, bits).tolist())
        return np.array([store.pop() for _ in range(size)])

    return noise
