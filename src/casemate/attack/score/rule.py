"""When a guess is right, and which single guess is right most often.

A whole number is right when it is exactly that after rounding, any other number when it is within
the tolerance. A secret of several numbers is right when all of them are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.attack.subjects import Places, combined
from casemate.exact import Floats

SLACK = 1e-9
"""A tolerance is stretched by this share, so that rounding in its last digits decides nothing."""


@dataclass(frozen=True, eq=False)
class Rule:
    """Which of a secret's numbers are whole, and how far the other one may be off.

    >>> rule = Rule(np.array([True]), 0.0)
    >>> rule.right(np.array([[2.4], [1.5]]), np.array([[2.0], [1.0]])).tolist()
    [True, False]
    """

    whole: NDArray[np.bool_]
    tolerance: float

    def __post_init__(self) -> None:
        """Refuse what cannot be judged."""
        if not (np.isfinite(self.tolerance) and self.tolerance >= 0):
            raise ValueError("the tolerance must be a finite number, 0 or above")
        if (~self.whole).sum() > 1:
            raise ValueError("a secret with several numbers that are not whole cannot be scored")

    @property
    def reach(self) -> float:
        """How far apart a guess and the truth may be, with room for rounding."""
        return self.tolerance * (1 + SLACK)

    def settled(self, values: Floats) -> Floats:
        """The values as they are judged: whole ones rounded."""
        return np.where(self.whole, np.rint(values), values)

    def right(self, guesses: Floats, truth: Floats) -> NDArray[np.bool_]:
        """Which guesses are right; a row for each secret."""
        apart = np.abs(self.settled(guesses) - self.settled(truth))
        return np.asarray((apart <= np.where(self.whole, 0.0, self.reach)).all(axis=1))

    def frequency(self, values: Floats) -> Floats:
        """Of how many of the values each of them would be the right guess, itself included."""
        groups, number = self._parts(values)
        order = np.lexsort((number, groups))
        place = _spread(groups, number, order, self.reach)
        first = np.searchsorted(place, place - self.reach, side="left")
        last = np.searchsorted(place, place + self.reach, side="right")
        found = np.empty(len(values))
        found[order] = last - first
        return found

    def guesses(self, values: Floats, most: int) -> tuple[Floats, Places]:
        """The single guesses that are right most often, and which of them is right for each value.

        Each is the best for the values that those before it missed; a value that none of `most`
        guesses hits has their number.
        """
        groups, number = self._parts(values)
        if self.whole.all():
            found, classes = _commonest(groups, most)
            return self.settled(values)[found], classes
        return self._windows(groups, number, values, most)

    def _parts(self, values: Floats) -> tuple[Places, Floats]:
        """A code for the whole numbers together, and the one that is not whole (0: none)."""
        settled = self.settled(values)
        whole = [np.unique(each, return_inverse=True)[1] for each in settled[:, self.whole].T]
        rest = settled[:, ~self.whole]
        number = rest[:, 0] if rest.shape[1] else np.zeros(len(values))
        return combined([each.astype(np.int64) for each in whole], len(values)), number

    def _windows(
        self, groups: Places, number: Floats, values: Floats, most: int
    ) -> tuple[Floats, Places]:
        """Again and again the window, twice the tolerance wide, that holds most of what is left."""
        order = np.lexsort((number, groups))
        place, left = _spread(groups, number, order, self.reach), order
        classes = np.full(len(values), most, np.int64)
        found: list[Floats] = []
        while len(left) and len(found) < most:
            ends = np.searchsorted(place, place + 2 * self.reach, side="right")
            start = int(np.argmax(ends - np.arange(len(place))))
            held = left[start : ends[start]]
            guess = self.settled(values[held[0]])
            guess[~self.whole] = (number[held[0]] + number[held[-1]]) / 2
            classes[held] = len(found)
            found.append(guess)
            rest = np.r_[:start, ends[start] : len(left)]
            left, place = left[rest], place[rest]
        classes[classes == most] = len(found)
        return np.array(found).reshape(-1, values.shape[1]), classes


def _commonest(groups: Places, most: int) -> tuple[Places, Places]:
    """One member of each of the largest groups, and which of these each record is in."""
    _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    ranked = np.argsort(-sizes, kind="stable")[:most]
    number = np.full(len(sizes), len(ranked), np.int64)
    number[ranked] = np.arange(len(ranked))
    return first[ranked].astype(np.int64), number[groups]


def _spread(groups: Places, number: Floats, order: Places, reach: float) -> Floats:
    """The numbers in order, moved so far apart that no window holds two groups."""
    ordered = number[order]
    gap = float(np.ptp(number)) + 4 * reach + 1 if len(number) else 0.0
    return np.asarray((ordered - ordered.min(initial=np.inf)) + gap * groups[order])
