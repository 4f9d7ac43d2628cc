"""Scales: where a value stands between the two ends of an axis, and which values to name there."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

STEPS = (1, 2, 5, 10)
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Tick:
    """A value that is named on an axis."""

    value: float
    label: str


class Scale(Protocol):
    """Maps values to the part of an axis that lies before them, from 0 to 1."""

    def share(self, value: float) -> float:
        """Where a value stands between the ends."""

    def ticks(self) -> Sequence[Tick]:
        """The values to name."""


@dataclass(frozen=True)
class Linear:
    """Equal differences take equal room."""

    low: float
    high: float
    at_most: int = 5

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"a linear scale needs low < high, not {self.low} and {self.high}")

    @classmethod
    def over(cls, values: Iterable[float]) -> "Linear":
        """From 0 to the round number after the largest of some values.

        >>> Linear.over([3, 17])
        Linear(low=0.0, high=20.0, at_most=5)
        """
        most = max([0.0, *values]) or 1.0
        step = _step(most / 5)
        return cls(0.0, math.ceil(most / step) * step)

    def share(self, value: float) -> float:
        """Where a value stands between the ends."""
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> Sequence[Tick]:
        """Round numbers, at most so many and the two ends' worth."""
        step = _step((self.high - self.low) / self.at_most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [Tick(i * step, f"{round(i * step, 9):,.10g}") for i in range(first, last + 1)]


@dataclass(frozen=True)
class Logarithmic:
    """Equal ratios take equal room."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            raise ValueError(
                f"a logarithmic scale needs 0 < low < high, not {self.low} and {self.high}"
            )

    def share(self, value: float) -> float:
        """Where a value stands between the ends."""
        return math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> Sequence[Tick]:
        """Powers of ten, or of less where there are too few of them."""
        first = math.floor(math.log10(self.low) + 1e-9)
        last = math.ceil(math.log10(self.high) - 1e-9)
        every = max(1, math.ceil((last - first) / 6))
        powers = [(power, 1) for power in range(first, last + 1, every)]
        if last - first < 3:
            powers = [(power, step) for power in range(first, last) for step in STEPS[:-1]]
            powers.append((last, 1))
        found = [Tick(step * 10.0**power, _power(power, step)) for power, step in powers]
        return [each for each in found if -1e-9 <= self.share(each.value) <= 1 + 1e-9]


@dataclass(frozen=True)
class Bands:
    """Some names in order, each with a band of the same width; a value is a name's position."""

    labels: tuple[str, ...]

    def share(self, value: float) -> float:
        """The middle of a band."""
        return (value + 0.5) / max(1, len(self.labels))

    def ticks(self) -> Sequence[Tick]:
        """Every name, in the middle of its band."""
        return [Tick(place, label) for place, label in enumerate(self.labels)]


def _step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... times a power of ten that is not below."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))


def _power(power: int, step: int) -> str:
    if -3 <= power <= 4:
        return f"{step * 10.0**power:,.10g}"
    times = "" if step == 1 else f"{step}·"
    return f"{times}10{str(power).translate(SUPERSCRIPT)}"
