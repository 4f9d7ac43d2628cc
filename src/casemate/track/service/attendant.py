"""What a server on a network needs besides its protocol: a clock, patience, and attendance.

Messages are lost, sites are away, and a site that is silent may have nothing to say or be gone. The
attendant repeats calls that are not answered, begins rounds without those who stay away, and calls
a round when one of them is back, because the round began without its count. A site that falls
silent, because it ended or is gone, brings one round more, which takes the last count it reported.
Of two processes of one name the newer counts; once that is silent, the older does again.

Guarantee  `lag` is such that the count is right, within the bound of its engine, for a moment at
           most `lag` seconds ago at every site that is not named stale, whatever was lost: a site's
           newest report says everything, so what the server knows of a site was true when that
           report was sent.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from casemate.errors import ClockWentBackwards, Misconfigured, UnknownSite
from casemate.track.messages import SiteReport
from casemate.track.server import Server
from casemate.track.setting import Count
from casemate.track.transport.network import Notes

_MAX_NAMED_SITES = 5  # sites that a note names


@dataclass(frozen=True)
class Timing:
    """How long a server waits, in seconds."""

    repeat: float = 0.25  # until a call that was not answered is repeated
    patience: float = 10.0  # until a silent site is stale and a round begins without it
    interval: float = 1.0  # between two counts that are shown

    def __post_init__(self) -> None:
        if not (0 < self.repeat < self.patience and self.interval > 0):  # nor a NaN
            raise Misconfigured(
                f"a server repeats its calls before its patience ends and shows a count now and "
                f"then: need 0 < repeat < patience and interval > 0, got {self.repeat:g}, "
                f"{self.patience:g} and {self.interval:g} s"
            )


class Attendant:
    """A server together with what is known about who is there."""

    def __init__(
        self,
        server: Server,
        sites: Sequence[str],
        timing: Timing,
        clock: Callable[[], float] = time.monotonic,
        notes: Notes | None = None,
        *,
        disown: Callable[[str], None] = lambda _: None,  # tell a site that it is none of ours
    ) -> None:
        self.server, self._disown = server, disown
        self._timing, self._clock, self._notes = timing, clock, notes or Notes()
        self._heard_at = dict.fromkeys(sites, clock())  # when each was heard last
        self._news_at = dict(self._heard_at)  # when what the engine knows of each was said last
        self._counting_at = dict(self._heard_at)  # when the incarnation that counts was heard last
        self._missing: set[str] = set()  # a round began without them
        self._settled: set[str] = set()  # stale, and the last that they said is in a round
        self._double: dict[str, float] = {}  # when one was heard whose place another has taken
        self._call_at = math.inf  # when a round is to be called, whatever the engine wants
        self._epoch = 0
        self._called = self._asked = self._heard_at[sites[0]]
        self._travel = self._travel_before = 0.0  # the longest way there and back, in two calls
        self._late = 0.0, -1  # how long one was waited for who was away, and in which round
        self._as_of: float | None = None  # of a count that is held until answers are in

    def open(self) -> None:
        """Ask every site for its exact count: this is all that a server needs to begin."""
        now = self._clock()
        self._call_round(now)
        self._see_call(now, now)

    def receive(self, report: SiteReport) -> None:
        """Take a report; one that cannot be taken is noted and changes nothing."""
        if report.site not in self._heard_at:
            self._notes.say(str(UnknownSite(report.site)), about=UnknownSite)
            self._disown(report.site)
            return
        now, site = self._clock(), report.site
        awaited, incarnation = self.server.awaits(site), self.server.incarnation(site)
        self._let_return(report, now)
        try:
            self.server.receive(report)
        except ClockWentBackwards as error:  # try a later epoch when the clock may be right again
            self._call_at = min(self._call_at, now + self._timing.patience)
            self._notes.say(str(error), about=ClockWentBackwards)
            return
        news_at, self._heard_at[site] = self._news_at[site], now
        self._settled.discard(site)
        if self.server.is_double(report):
            self._see_double(site, now)
        if self.server.is_newest(report):  # not one that was overtaken, or an order not yet taken
            self._news_at[site] = now
        if report.incarnation == self.server.incarnation(site):
            self._counting_at[site] = now
        is_another = incarnation not in (None, self.server.incarnation(site))
        if awaited and not self.server.awaits(site):
            self._see_answer(site, now, was_away=is_another or site in self._missing)
        if is_another:
            self._call_at = now
        if self.server.knows_more:
            self._call_at = min(self._call_at, now + self._timing.repeat)
        self._see_call(now, news_at)

    def poll(self) -> None:
        """Call a round now, unless the clock went backwards since the last."""
        now = self._clock()
        before, self._called = self._called, now
        try:
            self.server.poll()
        except ClockWentBackwards:
            self._called = before
            raise
        self._see_call(now, now)

    def tick(self) -> None:
        """Do what is due; call this several times for each `repeat`."""
        now = self._clock()
        if now - self._asked < self._timing.repeat:
            return
        if now >= self._call_at or self._is_one_lost(now):
            self._call_at = math.inf
            self._call_round(now)
        elif self.server.awaited:
            self._chase(now)
        self._asked = now
        self._see_call(now, now)

    def read(self) -> Count:
        """The count with its lag, and the sites whose counts are frozen."""
        now = self._clock()
        names = list(self._heard_at)
        stale = tuple(n for n in names if self._is_stale(n, now) or self._is_double(n, now))
        count = self.server.read()
        least = count.lo if self.server.hides else max(count.lo, float(self.server.heard))
        return replace(
            count,
            value=max(count.value, least),
            lo=least,
            hi=max(count.hi, least),
            lag=self._lag(now),
            stale_sites=stale,
        )

    def _call_round(self, now: float) -> None:
        self._called = now  # before it is: within one process answers come at once
        self.server.call_round()

    def _let_return(self, report: SiteReport, now: float) -> None:
        """Let an earlier process of a name count again, when the one after it is silent."""
        silent = now - self._counting_at[report.site] >= self._timing.patience
        if silent and self.server.may_return(report):
            self.server.let_return(report)
            self._double.pop(report.site, None)

    def _see_answer(self, site: str, now: float, was_away: bool) -> None:
        """How long it took, and whether a round began without it."""
        if was_away:  # that was no time of travel; the round that follows will tell it
            self._late = now - self._called, self.server.rounds
        else:
            self._travel = max(self._travel, now - self._called)
        if site in self._missing:
            self._missing.discard(site)
            self._call_at = now

    def _see_double(self, site: str, now: float) -> None:
        self._double[site] = now
        self._notes.say(
            f"two processes report as site {site!r}; stop one of them, or give it another name",
            about=("two", site),
        )

    def _see_unknown(self) -> None:
        """Say of whom nothing is known when the first round begins: a server keeps nothing."""
        unknown = [site for site in self._heard_at if self.server.incarnation(site) is None]
        if self.server.rounds or not unknown:
            return
        names = ", ".join(unknown[:_MAX_NAMED_SITES])
        if len(unknown) > _MAX_NAMED_SITES:
            names += f" and {len(unknown) - _MAX_NAMED_SITES:,} more"
        self._notes.say(
            f"nothing was heard from {names} since this server started: "
            f"what was counted there before is in no count until they are back with their journals",
            about="unknown",
        )

    def _see_call(self, now: float, report_at: float) -> None:
        """Notice that answers were asked for, by us or by what a report led to.

        A count that is held is as old as it was before that report: as what its site said last.
        """
        if not self.server.holding:
            self._as_of = None
        elif self._as_of is None:
            self._as_of = min(report_at, now - self._age(now))
        if self.server.epoch != self._epoch:
            self._epoch, self._called, self._asked = self.server.epoch, now, now
            if self._travel:  # orders that need no answer tell nothing of it
                self._travel_before, self._travel = self._travel, 0.0

    def _chase(self, now: float) -> None:
        stale = {site for site in self.server.awaited if self._is_stale(site, now)}
        hopeless = now - self._called >= self._timing.patience or len(stale) == len(
            self.server.awaited
        )
        if self.server.collecting and hopeless:
            self._missing.update(self.server.awaited)
            self._settled.update(self.server.awaited)
            self._see_unknown()
            self.server.begin_without()
        elif self.server.holding and hopeless:
            self._call_round(now)  # which can begin without them
        else:
            self.server.call_again(unless=stale)

    def _is_one_lost(self, now: float) -> bool:
        """Whether a site fell silent whose last words may be no part of the count.

        An engine may make nothing of a count between two triggers. A round that begins without the
        site begins with its last count, so one that ended in order is counted exactly.
        """
        if self.server.collecting:
            return False
        silent = (site for site in self._heard_at if self._is_stale(site, now))
        return any(site not in self._settled for site in silent)

    def _is_stale(self, site: str, now: float) -> bool:
        return site in self._missing or now - self._heard_at[site] >= self._timing.patience

    def _is_double(self, site: str, now: float) -> bool:
        """Whether only some of what is counted in its name is known in time."""
        return site in self._double and now - self._double[site] < self._timing.patience

    def _age(self, now: float) -> float:
        """How old the oldest news is that the count rests on; of the newest if all are stale."""
        times = [at for site, at in self._news_at.items() if not self._is_stale(site, now)]
        return now - (min(times) if times else max(self._news_at.values()))

    def _lag(self, now: float) -> float:
        """That age and the time of travel; while a count is held, as of before it was."""
        age = self._age(now) if self._as_of is None else now - self._as_of
        late, in_round = self._late
        travel = max(self._travel, self._travel_before)
        return age + (max(late, travel) if in_round == self.server.rounds else travel)


# When a site says again what it said -------------------------------------------------------------


BEATS_PER_HEARTBEAT = 16
"""Beats in a heartbeat, after which a silent site repeats itself in any case."""

_EARLY_REPEAT_BEATS = (1, 4)  # beats after which something new is said again


class Beats:
    """The silence of one site, in beats.

    A window is used up when its site reports, so a report that is lost is an error that grows until
    the next one. Said again after a sixteenth of a heartbeat and after a quarter of one, it is late
    for a moment instead; that is at most two words more for each that has something new, and none
    for a site that has something new all the time.

    >>> beats = Beats()
    >>> beats.note_sent(SiteReport("a", 7, 3, 10, 2, 15))
    >>> [beat for beat in range(40) if beats.is_due()]
    [1, 4, 16, 32]
    """

    def __init__(self) -> None:
        self._said: tuple[int, int] | None = None
        self._new = False
        self._silent = 0

    def note_sent(self, report: SiteReport) -> None:
        """Something was sent, perhaps new; any thread may say so."""
        said = report.epoch, report.reports
        if said != self._said:
            self._said, self._new = said, True

    def is_due(self) -> bool:
        """Whether the site should say again what it said; ask once in each beat."""
        self._silent = 0 if self._new else self._silent + 1
        self._new = False
        if self._silent in _EARLY_REPEAT_BEATS:
            return True
        return self._silent > 0 and self._silent % BEATS_PER_HEARTBEAT == 0


# How a process that runs for ever learns that it is over -----------------------------------------


class Over(Protocol):
    """Something to look at now and then."""

    def is_set(self) -> bool:
        """Whether it is over."""
        ...


class Flag:
    """Set by a signal's handler: it takes no lock, because the handler may interrupt who has it."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """It is over now."""
        self._set = True

    def is_set(self) -> bool:
        """Whether it is over."""
        return self._set
