"""A question for the gate: how far a stand-in is from the private cells of one statement.

Guarantee  A statement is one question, whatever the number of its cells: the largest deviation,
           each divided by how far its cell can move between neighbours, moves by at most 1. In
           `units` to one sensitivity, rounded down, it moves by at most `units`: rounding down
           keeps a whole bound on a difference, where rounding half to even would not
           (`test_rounding_a_difference_half_to_even_moves_by_two`).
Exact      The stand-in's answers are on the grid before anything is subtracted, so only integers
           are subtracted, and the division is by a rational.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from operator import index, sub

from casemate.doors.scan import Cells, Scan, scanned


@dataclass(frozen=True)
class Part:
    """Cells of one aggregate: what the stand-in says of them, and how far one of them can move."""

    stand_in: tuple[int, ...]
    sensitivity: int | Fraction = 1

    def __post_init__(self) -> None:
        if not isinstance(self.sensitivity, Rational) or self.sensitivity <= 0:
            raise ValueError(f"a sensitivity is a positive rational, got {self.sensitivity!r}")
        if not self.stand_in:
            raise ValueError("a part of a question has at least one cell, got none")
        object.__setattr__(self, "stand_in", tuple(index(cell) for cell in self.stand_in))


@dataclass(frozen=True)
class Deviation:
    """How far the stand-in falls short at most, and how far it exceeds at most; both secret."""

    short: int = field(repr=False)
    over: int = field(repr=False)

    @property
    def magnitude(self) -> int:
        """The larger of the two."""
        return max(self.short, self.over)


@dataclass(frozen=True)
class Question:
    """A normalised text, the public parts it is compared by, and the scan that reads its cells.

    `after` is the number of the newest entry of the transcript that the stand-in was built from.
    Another process may append while the question is on its way, so the answer records it: whoever
    replays the transcript up to there has the very stand-in that was compared.

    >>> asked = Question("count by sex", (Part((30, 10)),), lambda: [[28, 15]])
    >>> asked.deviation().short, asked.deviation().over
    (5, 2)
    """

    text: str
    parts: tuple[Part, ...]
    exact: Scan = field(repr=False)
    after: int = -1

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a question has at least one part, got none")

    def deviation(self, units: int = 1) -> Deviation:
        """Read the private cells and compare."""
        cells = scanned(self.exact, [len(part.stand_in) for part in self.parts])
        pairs = list(zip(self.parts, cells, strict=True))
        return Deviation(
            short=max(_largest(exact, part.stand_in, part, units) for part, exact in pairs),
            over=max(_largest(part.stand_in, exact, part, units) for part, exact in pairs),
        )


def _largest(high: Cells, low: Cells, part: Part, units: int) -> int:
    """The largest difference in units; rounding down keeps the order, so it is rounded once."""
    difference: int = max(map(sub, high, low))
    scale = Fraction(part.sensitivity)
    return difference * units * scale.denominator // scale.numerator


def on_grid(answers: Iterable[float], step: Fraction = Fraction(1)) -> tuple[int, ...]:
    """A stand-in's answers in whole steps of the grid; they are public, so any rounding will do.

    >>> on_grid([2.4, 2.6, 7.0], Fraction(1, 2))
    (5, 5, 14)
    """
    return tuple(round(Fraction(answer) / step) for answer in answers)
