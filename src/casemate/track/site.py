"""A site: it counts, and reports when its count reaches the next trigger of its reporting rule.

Which counts are triggers is decided in `reporting_rule`. A site that counts very many things at
once passes the triggers in between in one `leap`.

Cost       `add` is an addition, a store and a comparison; everything else happens at reports.
Guarantee  A site with a file for its journal that is killed at any moment goes on, when it is made
           again, as if nothing had happened: its messages are cumulative, so repeating the last
           one counts nothing twice. One thread adds; orders may come from another, which takes the
           lock that `add` takes only at reports.
"""

import math
import threading
from collections.abc import Callable

import numpy as np

from casemate.errors import UnknownSite
from casemate.track.journal import Journal, JournalEntry, MemoryJournal
from casemate.track.messages import Order, SiteReport, whole
from casemate.track.reporting_rule import (
    UNPREDICTABLE,
    UNREACHABLE_COUNT,
    Blocks,
    Draw,
    Every,
    Rule,
    Sample,
    SiteStanding,
)
from casemate.track.setting import MOST_COUNTED

MAX_LOOPED_TRIGGERS = 1000
"""Triggers that are passed one after another, about; beyond it takes too long."""


def leap(rule: Rule, at: SiteStanding, draw: Draw) -> SiteStanding:
    """Where the site stands when it has passed what a loop would take too long for.

    It is the very law of the loop: how many of independent items are drawn is binomial, and the
    next one forgets where it comes from; every block that is full has had its one report.

    >>> leap(Blocks(4.0), SiteStanding(0, 1, 3, 10**9 + 3), lambda: 0.5).reports
    249999999
    """
    match rule:
        case Sample(probability) if (at.count - at.trigger) * probability > MAX_LOOPED_TRIGGERS:
            lot = np.random.default_rng(int(draw() * 2**53))  # as unpredictable as its draw
            drawn = int(lot.binomial(at.count - at.trigger, probability))
            return SiteStanding(at.begun, at.reports + drawn, at.count, at.count)
        case Blocks(size) if (at.count - at.begun) / size - at.reports > MAX_LOOPED_TRIGGERS:
            full = math.floor((at.count - at.begun) / size) - 1  # one less, for floats
            return SiteStanding(at.begun, full, at.trigger, at.count)
        case _:
            return at


# The site ----------------------------------------------------------------------------------------


Send = Callable[[SiteReport], None]


class Site:
    """One of the places where things happen that are counted together.

    >>> sent = []
    >>> site = Site("edge-7", sent.append)
    >>> site.add(); site.add(3)
    >>> site.count, [report.count for report in sent]
    (4, [1, 4])
    """

    __slots__ = (
        "_cells",
        "_count",
        "_draw",
        "_epoch",
        "_journal",
        "_lock",
        "_next",
        "_put_off",
        "_refused",
        "_rule",
        "_send",
        "_standing",
        "name",
    )

    def __init__(
        self,
        name: str,
        send: Send,
        rule: Rule = Every(),  # noqa: B008 - immutable
        journal: Journal[JournalEntry] | None = None,
        draw: Draw = UNPREDICTABLE,
    ) -> None:
        self.name = name
        self._send, self._draw = send, draw
        self._lock, self._refused = threading.Lock(), False
        self._journal = journal or MemoryJournal()
        self._cells = self._journal.cells
        self._count = self._cells[0]
        entry = self._journal.load() or self._fresh(rule)
        self._epoch, self._rule = entry.epoch, entry.rule
        self._standing, self._next = entry.standing, entry.next_trigger
        self._put_off = self._next  # the next trigger of a site that is refused
        self._save()  # or one killed before its first report would begin where it was killed

    def _fresh(self, rule: Rule) -> JournalEntry:
        count = self._count
        standing = SiteStanding(count, 0, count, count)
        return JournalEntry(0, rule, standing, _possible(rule.after(standing, self._draw)))

    @property
    def count(self) -> int:
        """Everything this site has counted."""
        return self._count

    @property
    def epoch(self) -> int:
        """The epoch of the order it follows; 0 before the first."""
        return self._epoch

    @property
    def refused(self) -> bool:
        """Whether a server said that it does not know this site, and none orders it about."""
        return self._refused

    def refuse(self) -> None:
        """Let the next `add` raise, and every one after it until an order comes."""
        with self._lock:
            if not self._refused:
                self._put_off, self._next = self._next, 0  # so that `add` need not look at more
            self._refused = True

    def add(self, n: int = 1) -> None:
        """Count n things, now; what is refused is not counted."""
        if n.__class__ is not int or n < 0:
            n = _upwards(n)
        try:
            self._cells[0] = self._count = count = self._count + n  # the journal first
        except (ValueError, OverflowError):
            raise self._impossible(n) from None
        if count >= self._next:
            self._due(n)

    def _impossible(self, n: int) -> ValueError:
        if self._count + n > MOST_COUNTED:
            return ValueError(f"a site counts up to 2^53, and this would be more, got n = {n}")
        return ValueError(f"the site {self.name!r} is closed, so it counts nothing any more")

    def _due(self, n: int) -> None:
        """Pass every trigger up to the count, write that down, and report."""
        with self._lock:
            if self._refused or self._count > MOST_COUNTED:
                self._cells[0] = self._count = self._count - n
                raise UnknownSite(self.name) if self._refused else self._impossible(n)
            if not self._pass_triggers():
                return
            report = self._report()
        self._send(report)  # without the lock: the server may order something at once

    def _pass_triggers(self) -> bool:
        count, before = self._count, self._standing.reports
        while (rule := self._rule) is not None and count >= self._next:
            at = self._standing
            passed_one = SiteStanding(at.begun, at.reports + 1, self._next, count)
            self._standing = leap(rule, passed_one, self._draw)
            self._next = _possible(rule.after(self._standing, self._draw))
        passed = self._standing.reports > before
        if passed:
            self._save()
        return passed

    def report(self) -> None:
        """Send what is known; repeating it is harmless."""
        with self._lock:
            report = self._report()
        self._send(report)

    def _report(self) -> SiteReport:
        at = self._standing
        incarnation = self._journal.incarnation
        return SiteReport(self.name, incarnation, self._epoch, at.begun, at.reports, self._count)

    def obey(self, order: Order) -> None:
        """Take an order; an old one is ignored, a repeated one is answered again."""
        with self._lock:
            if order.epoch < self._epoch:
                return
            self._accept()
            self._follow(order)
            passed = self._pass_triggers()
            report = self._report()
        if order.answer or passed:
            self._send(report)

    def _accept(self) -> None:
        """Be refused no more: go on to the trigger that is next."""
        if self._refused:
            self._refused, self._next = False, self._put_off

    def _follow(self, order: Order) -> None:
        count = self._count
        if order.epoch > self._epoch:
            self._epoch = order.epoch
            self._take(order.rule, SiteStanding(count, 0, count, count))
        elif self._rule is None and order.rule is not None:
            self._take(order.rule, self._standing)

    def _take(self, rule: Rule | None, standing: SiteStanding) -> None:
        self._rule, self._standing = rule, standing
        self._next = _possible(
            UNREACHABLE_COUNT if rule is None else rule.after(standing, self._draw)
        )
        self._save()

    def _save(self) -> None:
        self._journal.save(JournalEntry(self._epoch, self._rule, self._standing, self._next))


def _upwards(n: int) -> int:
    number = whole(n)
    if number < 0:
        raise ValueError(f"a site counts upwards: n must be at least 0, got {n!r}")
    return number


def _possible(trigger: int) -> int:
    """The trigger, or the first count that is too large, which has to be noticed as well."""
    return min(trigger, MOST_COUNTED + 1)
