"""All coins of a small tuned tracker, one after another, with their exact probabilities."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from casemate.track.engine import RuleChange
from casemate.track.messages import Order, SiteReport
from casemate.track.protocols.tuned import TunedDesign, TunedRound
from casemate.track.reporting_rule import Blocks
from casemate.track.site import Site


class Tape:
    """Choices made so far; new ones take their first option."""

    def __init__(self, places: list[int]) -> None:
        self.places, self.options = places, list[int]()
        self.weight = Fraction(1)

    def choose(self, weights: list[Fraction]) -> int:
        """The next choice among options of these probabilities."""
        turn = len(self.options)
        if turn == len(self.places):
            self.places.append(0)
        self.options.append(len(weights))
        self.weight *= weights[self.places[turn]]
        return self.places[turn]

    def following(self) -> list[int] | None:
        """The choices that come next in order, or None after the last."""
        places = self.places[:]
        while places and places[-1] == self.options[len(places) - 1] - 1:
            places.pop()
        if not places:
            return None
        return [*places[:-1], places[-1] + 1]


@dataclass(frozen=True)
class Outcome:
    """What was published, where open blocks stand, and which have reported: and how likely."""

    transcript: tuple[float, ...]
    offsets: tuple[int, ...]
    reported: tuple[bool, ...]
    weight: Fraction


class SmallTracker:
    """A round over real sites; the adversary's next site depends on what was published."""

    def __init__(self, plan: TunedDesign, size: int, items: int, adversary: int) -> None:
        self._plan, self._size, self._items, self._adversary = plan, size, items, adversary
        self._even = [Fraction(1, size)] * size
        self._lengths = self._length_weights()
        self._uniforms = [
            float(sum(self._lengths[:i], Fraction(0)) + weight / 2)
            for i, weight in enumerate(self._lengths)
        ]
        self._chosen: dict[tuple[float, ...], int] = {}

    def outcomes(self) -> Iterator[Outcome]:
        """Every way the coins can fall."""
        places: list[int] | None = []
        while places is not None:
            tape = Tape(places)
            yield self._run(tape)
            places = tape.following()

    def _run(self, tape: Tape) -> Outcome:
        plan, size = self._plan, self._size
        tracked = TunedRound(plan, [0] * plan.sites, size, lambda: self._length(tape))
        epochs = [0] * plan.sites
        sites: list[Site] = []

        def receive(report: SiteReport) -> None:
            site = int(report.site)
            wish = tracked.hear(site, report.begun, report.reports)
            if isinstance(wish, RuleChange):
                epochs[site] += 1
                sites[site].obey(Order(epochs[site], wish.narrower[site], answer=True))

        rule = Blocks(float(size))
        for i in range(plan.sites):
            sites.append(Site(str(i), receive, rule, draw=lambda: self._point(tape)))
        transcript = [tracked.middle()]
        while len(transcript) <= self._items and tracked.passed < plan.phases:
            sites[self._next_site(tuple(transcript))].add()
            transcript.append(tracked.middle())
        if tracked.passed == plan.phases:  # everybody is called, and nothing is secret any more
            nobody = (False,) * plan.sites
            return Outcome((*transcript, -1.0), (0,) * plan.sites, nobody, tape.weight)
        counts = [
            site.count - int(begun)
            for site, begun in zip(sites, tracked.tally.reported, strict=True)
        ]
        offsets = tuple(count % size for count in counts)
        reported = tuple(
            bool(r > count // size) for r, count in zip(tracked.tally.drawn, counts, strict=True)
        )
        return Outcome(tuple(transcript), offsets, reported, tape.weight)

    def _next_site(self, transcript: tuple[float, ...]) -> int:
        if transcript not in self._chosen:
            chooser = random.Random(f"{self._adversary} {transcript}")
            self._chosen[transcript] = chooser.randrange(self._plan.sites)
        return self._chosen[transcript]

    def _point(self, tape: Tape) -> float:
        return (tape.choose(self._even) + 0.5) / self._size

    def _length_weights(self) -> list[Fraction]:
        """The probabilities of lengths; long ones are all the same; without noise there is one."""
        q, t = Fraction(self._plan.lengths.ratio), self._plan.threshold
        if not q:
            return [Fraction(1)]
        total = (1 + q - q**t) / (1 - q)
        weights = [q ** abs(c - t) / total for c in range(1, self._items + 1)]
        return [*weights, 1 - sum(weights, Fraction(0))]

    def _length(self, tape: Tape) -> float:
        """A uniform number that stands for the chosen length."""
        return self._uniforms[tape.choose(self._lengths)]
