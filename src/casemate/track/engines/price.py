"""What centred windows would have sent for the same counts: the measure of what may be spent."""

import numpy as np

from casemate.track.engines.tally import Whole
from casemate.track.instruction import Growth

_FARTHEST = 1 << 45  # a site's count up to which reports are listed; more are not counted


class Centred:
    """A site's reports under a centred window from its first item on."""

    def __init__(self, rule: Growth) -> None:
        self._rule = rule
        self._triggers = np.array([1], dtype=np.int64)

    def words(self, counts: Whole) -> int:
        """The reports of sites with these counts.

        >>> Centred(Growth(3, 1)).words(np.array([0, 1, 3, 4, 13]))
        7
        """
        farthest = min(int(counts.max(initial=0)), _FARTHEST)
        if farthest >= self._triggers[-1]:
            self._list_to(2 * farthest)
        return int(np.searchsorted(self._triggers, counts, side="right").sum())

    def _list_to(self, count: int) -> None:
        triggers = self._triggers.tolist()
        while triggers[-1] <= count:
            triggers.append(self._rule.top(triggers[-1]) + 1)
        self._triggers = np.array(triggers, dtype=np.int64)
