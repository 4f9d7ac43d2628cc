"""Walk every draw of noise of a whole conversation, within windows, and bound its privacy loss.

Each integer is drawn by the shipped sampler from bits that lead to it, as in `doors.draw_tree`. A
draw is *revealed* if what left says what it was, given the table: the noise of a measurement. Other
draws are hidden: those of the gate. An outcome can be reached only by one value of each revealed
draw, so whatever was not walked can add to it no more than the chance of those values times the
chance that a hidden draw was outside its window. That makes bounds sharp with small windows.

Two walks are compared only if the windows of revealed draws let the same things leave from both
tables: then an outcome that one of them did not reach needs a hidden draw outside its window there.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from doors.draw_tree import Branch, branches
from numpy.typing import NDArray

from casemate.privacy.noise import Noise, discrete_laplace

Window = Callable[[Fraction, int, int], range]
"""The integers to walk, by the scale of a draw, how many there are at once, and which it is."""

ONE = Fraction(1)


@dataclass
class Reached:
    """What is known of the probability of one outcome."""

    mass: Fraction = Fraction(0)  # at least this
    revealed: Fraction = ONE  # the chance of its revealed draws


@dataclass
class Walked:
    """Every outcome that was reached, and what may have been missed."""

    outcomes: dict[Hashable, Reached] = field(default_factory=dict)
    hidden: Fraction = Fraction(0)  # the chance that a hidden draw was outside its window

    @property
    def undecided(self) -> Fraction:
        """The probability of everything that was not walked."""
        return ONE - sum((each.mass for each in self.outcomes.values()), Fraction(0))

    def at_most(self, outcome: Hashable) -> Fraction:
        """An upper bound on the probability of an outcome."""
        found = self.outcomes.get(outcome, Reached())
        return found.mass + found.revealed * self.hidden

    def at_least(self, outcome: Hashable) -> Fraction:
        """A lower bound on the probability of an outcome."""
        return self.outcomes.get(outcome, Reached()).mass


def walk(
    program: Callable[[Noise], Hashable], window: Window, is_hidden: Callable[[Fraction], bool]
) -> Walked:
    """Run the program once for every combination of draws within their windows."""
    walked, path = Walked(), list[int]()
    while True:
        tape = _Tape(path, window)
        outcome = program(tape.noise)
        revealed = _product(b.mass for b, scale in tape.taken if not is_hidden(scale))
        places = [i for i, (_, scale) in enumerate(tape.taken) if is_hidden(scale)]
        walked.hidden = max(walked.hidden, sum(map(tape.missed, places), Fraction(0)))
        found = walked.outcomes.setdefault(outcome, Reached(revealed=revealed))
        found.mass += _product(branch.mass for branch, _ in tape.taken)
        found.revealed = max(found.revealed, revealed)
        while path and path[-1] == len(tape.choices[len(path) - 1]) - 1:
            path.pop()
        if not path:
            return walked
        path[-1] += 1


class _Tape:
    """Repeats the draws of a path, and takes the first of its window for each that is new."""

    def __init__(self, path: list[int], window: Window) -> None:
        self._path, self._window = path, window
        self.taken: list[tuple[Branch, Fraction]] = []
        self.choices: list[list[Branch]] = []

    def noise(self, scale: Fraction, size: int) -> NDArray[Any]:
        return np.array([self._one(scale, size, place) for place in range(size)])

    def _one(self, scale: Fraction, size: int, place: int) -> int:
        wanted = self._window(scale, size, place)
        reach = max(abs(wanted[0]), abs(wanted[-1]))
        self.choices.append([each for each in branches(scale, reach) if each.value in wanted])
        if len(self.taken) == len(self._path):
            self._path.append(0)
        branch = self.choices[-1][self._path[len(self.taken)]]
        self.taken.append((branch, scale))
        left = bytearray(branch.bits)
        value = int(discrete_laplace(scale, 1, lambda _: bytes([left.pop(0)]))[0])
        assert value == branch.value and not left, "the sampler is a function of its bits"
        return value

    def missed(self, place: int) -> Fraction:
        """The chance that this draw is outside its window."""
        return ONE - sum((branch.mass for branch in self.choices[place]), Fraction(0))


def _product(factors: Any) -> Fraction:
    top, bottom = 1, 1
    for factor in factors:
        top, bottom = top * factor.numerator, bottom * factor.denominator
    return Fraction(top, bottom)


# Two-sided bounds -------------------------------------------------------------------------------


def epsilon_at_least(one: Walked, other: Walked) -> float:
    """Epsilon is at least this: the outcome that tells most, whatever was not walked."""
    best = -math.inf
    for outcome, found in one.outcomes.items():
        there = other.at_most(outcome)
        best = max(best, math.log(found.mass / there) if there else math.inf)
    return best


def delta_at_most(one: Walked, other: Walked, epsilon: Fraction) -> float:
    """At most this delta is left at `epsilon`, given any revealed draws that were walked."""
    factor, over = Fraction(math.exp(epsilon)), Fraction(0)
    for outcome, found in one.outcomes.items():
        beyond = max(Fraction(0), found.mass - factor * other.at_least(outcome))
        over += beyond / found.revealed
    return float(over + one.hidden)


def delta_in_all(one: Walked, other: Walked, epsilon: Fraction) -> float:
    """At most this delta is left at `epsilon`, with everything that was not walked in it."""
    factor = Fraction(math.exp(epsilon))
    beyond = (
        max(Fraction(0), found.mass - factor * other.at_least(outcome))
        for outcome, found in one.outcomes.items()
    )
    return float(sum(beyond, one.undecided))
