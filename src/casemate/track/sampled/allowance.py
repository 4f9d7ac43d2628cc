"""How much of delta rounds may have used up by the time of a count.

A round may fail with what is allowed at the count it begins with, less what earlier rounds took: in
the long run, with what the growth of the count since the round before has earned. So all rounds
together take at most delta, surely, however many there are and however long it runs.
"""

import math
from dataclasses import dataclass

FOR_EVER = 0.01
"""The share of delta that is kept for counts beyond the horizon."""

_IN_DEBT = 1 / 16  # of a round's usual share of what is left, where nothing was earned


@dataclass(frozen=True)
class Allowance:
    """Even over the logarithm of the count up to the horizon, and a little that lasts for ever."""

    delta: float
    advance: float  # what the first round may take
    first: float  # logarithm of the count at which sampling begins
    horizon: float  # logarithm of the count up to which delta is spread

    def until(self, count: float) -> float:
        """What may be used by rounds that begin up to this count; it increases, below delta.

        >>> allowance = Allowance(0.1, advance=0.009, first=1.0, horizon=4.0)
        >>> [round(allowance.until(math.exp(x)), 4) for x in (0.5, 1.0, 2.0, 4.0, 8.0, 600.0)]
        [0.009, 0.009, 0.039, 0.099, 0.0995, 0.1]
        """
        log = math.log(count)
        passed = (min(max(log, self.first), self.horizon) - self.first) / (
            self.horizon - self.first
        )
        beyond = 1 - self.horizon / max(log, self.horizon)
        usual = self.delta * (1 - FOR_EVER) - self.advance
        return self.advance + usual * passed + self.delta * FOR_EVER * beyond

    def for_round(self, count: float, spent: float) -> float:
        """What a round that begins at this count may fail with, after others have spent so much.

        Rounds that are called out of turn run into debt until the count has grown; then they take
        a small part of what is left of delta, which never uses it up.
        """
        left = max(self.delta - spent, 0.0)
        in_debt = _IN_DEBT * self.advance / self.delta * left
        return min(max(self.until(count) - spent, in_debt), left)
