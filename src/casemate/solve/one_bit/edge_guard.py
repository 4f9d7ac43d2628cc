"""Whether bits at the edge come as often as the law says: a bet that can be left running.

Method     Against the claim that hits come at no more than 1.15 times (and at no less than 0.85
           times) the predicted chance, money is bet on more (1.8 and 4 times as many) and on fewer
           (0.4 and 0.05 times). While the claim holds, the money is a supermartingale, so that by
           Ville's inequality it ever reaches 1 / alarm with probability at most `alarm`: over the
           whole stream, however long.
           A wrong law may begin to matter late, so new bets are opened whenever the number of
           counted bits has doubled, out of a purse that is never empty: shares 1 / (k (k + 1)).
Cost       Four numbers for each doubling.
Departure  The chances are those of a normal belief. Under uniform noise they are close (hits come
           at 0.96 to 1.03 times the prediction), which is what the margins are for. The bound is a
           theorem for exact chances only: noise with one edge had 1 alarm in 60 runs at 0.001.
"""

import numpy as np

from casemate.solve.one_bit.protocol import Floats

MOST_BETS = 50
RAREST_HIT = 1e-12
TOO_MANY, TOO_FEW = 1.15, 0.85
"""The claim to be refuted: hits come at parts of their predicted chance between these."""

MORE, FAR_MORE, FEWER, FAR_FEWER = 1.8, 4.0, 0.4, 0.05
"""What is bet on instead."""


class Guard:
    """Watches hits against their predicted chances."""

    def __init__(self, alarm: float) -> None:
        if not 0 < alarm < 1:
            raise ValueError(f"need a rate of false alarms between 0 and 1, got {alarm}")
        self.alarm = alarm
        self.money: Floats = np.zeros((MOST_BETS, 4))
        self.bets = 0
        self.counted = 0

    def opens(self) -> bool:
        """Whether new bets are opened before the next counted bit."""
        return self.counted + 1 == 1 << self.bets and self.bets < MOST_BETS

    def count(self, chance: float, hit: bool) -> bool:
        """Take note of a bit that was a hit with some chance; whether the alarm goes off."""
        if self.opens():
            self.money[self.bets] = 0.25 / ((self.bets + 1) * (self.bets + 2))
            self.bets += 1
        self.counted += 1
        self.money[: self.bets] *= odds(chance, hit)
        return bool(self.money[: self.bets].sum() >= 1 / self.alarm)

    def begun(self) -> int:
        """Which bet has gained most: from where on the law has been wrong."""
        return int(np.argmax(self.money[: self.bets].max(axis=1)))


def odds(chance: float, hit: bool) -> tuple[float, float, float, float]:
    """By what the money of each bet is multiplied."""
    chance = max(chance, RAREST_HIT)
    most, least = min(TOO_MANY * chance, 0.5 + 0.5 * chance), TOO_FEW * chance
    more = min(MORE * chance, 0.7 + 0.3 * chance)
    far_more = min(FAR_MORE * chance, 0.85 + 0.15 * chance)
    fewer, far_fewer = FEWER * chance, FAR_FEWER * chance
    if hit:
        return more / most, far_more / most, fewer / least, far_fewer / least
    no, yes = 1 - most, 1 - least
    return (1 - more) / no, (1 - far_more) / no, (1 - fewer) / yes, (1 - far_fewer) / yes
