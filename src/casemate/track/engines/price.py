"""What centred windows would have sent for the same counts: the measure of what may be spent."""

import numpy as np

from casemate.track.engines.tally import Whole
from casemate.track.instruction import Growth

_FARTHEST = 1 << 45  # a site's count up to which reports are listed; more are not counted


class Centred:
    """A site's reports under a centred window from its first item on.

    Between two reports lie as many items as the window is wide, which is a whole number, so many
    reports in a row are equally far apart. They are listed as one stretch: its first report, the
    step, and how many reports came before it.
    """

    def __init__(self, rule: Growth) -> None:
        self._growth, self._unit = rule.numerator - rule.denominator, rule.denominator
        self._stretches: list[tuple[int, int, int]] = []
        self._next = (1, 0)  # the first report that is not listed, and the reports before it
        self._list_to(1)

    def words(self, counts: Whole) -> int:
        """The reports of sites with these counts.

        >>> Centred(Growth(3, 1)).words(np.array([0, 1, 3, 4, 13]))
        7
        """
        farthest = min(int(counts.max(initial=0)), _FARTHEST)
        if farthest >= self._next[0]:
            self._list_to(2 * farthest)
        begun = np.minimum(counts[counts > 0], self._next[0] - 1)
        at = np.searchsorted(self._firsts, begun, side="right") - 1
        return int((self._before[at] + (begun - self._firsts[at]) // self._steps[at] + 1).sum())

    def _list_to(self, count: int) -> None:
        while self._next[0] <= count:
            first, before = self._next
            step = 1 + first * self._growth // self._unit
            more = count  # of reports after the first: all, if the window never grows
            if self._growth:
                more = ((step * self._unit - 1) // self._growth - first) // step
            self._stretches.append((first, step, before))
            self._next = first + (more + 1) * step, before + more + 1
        self._firsts, self._steps, self._before = np.array(self._stretches, dtype=np.int64).T
