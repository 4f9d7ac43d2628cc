"""The questions that a plan is made for: those of a file, or a usual kind when there are none.

The usual ones are ranges over up to three attributes. They are spread evenly over all such ranges
by a fixed sequence without chance, so that everybody who plans has the same ones.
"""

import math
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from casemate.answer.asked import Asked, Linear
from casemate.surrogate.product import Mask, Product

USUAL_NUMBER = 10_000
"""So many questions are expected where nothing is known of them."""

USUAL_WIDTH = 3
"""And they look at so many attributes."""

SAMPLE = 128
"""So many of the usual questions are looked at; the others are like them."""

MOST_SCOPES = 4_096
"""Of more sets of attributes only the first are looked at."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Questions, and how many of their kind will be asked in all."""

    questions: tuple[Asked, ...]
    number: int

    def __post_init__(self) -> None:
        if not self.questions or self.number < 1:
            raise ValueError("a workload has at least one question")

    @property
    def times(self) -> float:
        """How many questions each of them stands for."""
        return self.number / len(self.questions)


def usual_questions(shape: tuple[int, ...], number: int = USUAL_NUMBER) -> Workload:
    """Ranges over three attributes, or over all where there are fewer.

    >>> usual_questions((2, 3)).questions[0].scope
    (0, 1)
    """
    width = min(USUAL_WIDTH, len(shape))
    scopes = list(islice(combinations(range(len(shape)), width), MOST_SCOPES))
    step = max(1, len(scopes) // SAMPLE)
    asked = []
    for place in range(SAMPLE):
        scope = scopes[place * step % len(scopes)]
        masks = {a: _range(shape[a], place, axis) for axis, a in enumerate(scope)}
        asked.append(Asked((Linear(((Product(shape, masks),),)),)))
    return Workload(tuple(asked), number)


def _range(codes: int, place: int, axis: int) -> Mask:
    """The codes of one range; ranges are spread evenly as `place` grows.

    Whichever two of the codes + 1 limits there are, they differ.
    """
    first = int(_even(place, 2 * axis) * (codes + 1))
    other = int(_even(place, 2 * axis + 1) * codes)
    other += other >= first
    low, high = min(first, other), max(first, other)
    return (np.arange(codes) >= low) & (np.arange(codes) < high)


def _even(place: int, series: int) -> float:
    """The fractional parts of multiples of a root, which are spread evenly over 0 to 1."""
    roots = (2, 3, 5, 7, 11, 13)
    return math.modf((place + 0.5) * math.sqrt(roots[series]))[0]
