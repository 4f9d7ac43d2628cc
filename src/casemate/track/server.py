"""The server of a tracker: it hears reports, publishes a count, and calls rounds.

A server keeps nothing between its runs. Epochs are microseconds of the clock, so one that starts
again calls a round under a newer epoch than any before and has the exact counts in the answers.

Guarantee  What is published was right, within the bound of its engine, when the reports that it
           rests on were sent. While answers are awaited on which that bound depends, an engine's
           own estimate is between two states; what it was before they were asked for is published.
           Everything that any incarnation of a site ever reported is in the count from the next
           round on, also where two processes report as one site.
"""

import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from casemate.errors import ClockWentBackwards, Misconfigured, UnknownSite
from casemate.track.engine import EndRound, Engine, PublishedCount, RuleChange, Wish
from casemate.track.messages import Order, SiteReport
from casemate.track.reporting_rule import Blocks, Rule
from casemate.track.setting import Count

SendOrder = Callable[[str, Order], None]
SendToAll = Callable[[Order], None]
Clock = Callable[[], float]


@dataclass
class _SiteRow:
    """What the server knows of one site."""

    name: str
    rule: Rule
    epoch: int = 0  # of the order that was sent last
    incarnation: int | None = None
    former: dict[int, int] = field(default_factory=dict)  # what earlier incarnations reported
    frozen: int = 0  # the sum of that, as the engine knows it
    since: int = 0  # the epoch at which this incarnation took the place of one before
    begun: int = 0
    reports: int = 0
    count: int = 0
    reported_epoch: int = 0  # of the newest report
    behind: int = 0  # reports in a row that show it did not take its last order
    unsure: bool = False  # whether the rule that followed its answer has reached it

    @property
    def total(self) -> int:
        """What this site counted as the engine knows it."""
        return self.frozen + self.count

    @property
    def formerly(self) -> int:
        return sum(self.former.values())


class Server:
    """The count of all sites, within the bound of its engine."""

    def __init__(
        self,
        sites: Sequence[str],
        engine: Engine,
        send: SendOrder,
        clock: Clock = time.time,
        send_all: SendToAll | None = None,  # one message for all sites, where there is such a thing
    ) -> None:
        check_names(sites)
        self._engine, self._send, self._clock = engine, send, clock
        self._send_all = send_all
        rule = engine.opening()
        self._rows = [_SiteRow(name, rule) for name in sites]
        self._index = {name: i for i, name in enumerate(sites)}
        self._epoch = 0
        self._owing: set[int] = set()  # sites that have not answered their last order
        self._collecting: int | None = None  # the epoch whose answers are awaited
        self._changing: set[int] = set()  # sites whose answers a change of windows waits for
        self._held: PublishedCount | None = None  # what is published until those answers are in
        self._rule_to_follow = False  # this round's rule goes out after the counts came in
        self.knows_more = False  # an earlier incarnation reported more since the last round
        self.rounds = 0
        self.words_by_kind = {"report": 0, "call": 0, "answer": 0, "rule": 0}

    @property
    def words(self) -> int:
        """Messages in both directions so far."""
        return sum(self.words_by_kind.values())

    @property
    def epoch(self) -> int:
        """The epoch of the newest order; 0 before the first."""
        return self._epoch

    @property
    def heard(self) -> int:
        """What the sites have said they counted; never more than they did."""
        return sum(row.formerly + row.count for row in self._rows)

    @property
    def rules(self) -> list[Rule]:
        """What each site was told last."""
        return [row.rule for row in self._rows]

    @property
    def collecting(self) -> bool:
        """Whether a round was called and has not begun."""
        return self._collecting is not None

    @property
    def holding(self) -> bool:
        """Whether what is published is as of before some answers were asked for."""
        return self._held is not None

    @property
    def awaited(self) -> list[str]:
        """The sites that owe an answer."""
        return [self._rows[site].name for site in sorted(self._owing)]

    def awaits(self, site: str) -> bool:
        """Whether this site owes an answer."""
        return self._index[site] in self._owing

    def incarnation(self, site: str) -> int | None:
        """The incarnation of a site that counts now; None before it was heard of."""
        return self._rows[self._index[site]].incarnation if site in self._index else None

    @property
    def hides(self) -> bool:
        """Whether the promise rests on nobody's knowing what was reported."""
        return any(isinstance(row.rule, Blocks) for row in self._rows)

    def is_double(self, report: SiteReport) -> bool:
        """Whether this is of a process that lives on although another took its place."""
        row = self._rows[self._index[report.site]]
        return report.incarnation in row.former and report.epoch > row.since

    def may_return(self, report: SiteReport) -> bool:
        """Whether this is no late word of a process whose place another has taken."""
        row = self._rows[self._index[report.site]]
        return report.count >= row.former.get(report.incarnation, report.count + 1)

    def let_return(self, report: SiteReport) -> None:
        """Count this incarnation again, as its successor is gone; what that reported stays."""
        row = self._rows[self._index[report.site]]
        count = row.former.pop(report.incarnation)
        if row.incarnation is not None:
            row.former[row.incarnation] = row.count
        row.frozen, row.since = row.formerly, row.epoch
        row.incarnation, row.reported_epoch, row.reports = report.incarnation, 0, 0
        row.begun = row.count = count

    def is_newest(self, report: SiteReport) -> bool:
        """Whether the engine knows of the site just what this report says, and nothing newer."""
        row = self._rows[self._index[report.site]]
        heard = (row.incarnation, row.epoch, row.reports, row.count)
        said = (report.incarnation, report.epoch, report.reports, report.count)
        return row.reported_epoch == row.epoch and heard == said

    def read(self) -> Count:
        """The count as of the reports that arrived."""
        estimate = self._held or self._engine.estimate()
        stale = tuple(self.awaited)
        return Count(
            estimate.value,
            estimate.lo,
            estimate.hi,
            estimate.confidence,
            0.0,
            self._epoch,
            stale,
            self.words,
        )

    def receive(self, report: SiteReport) -> None:
        """Take a report; one that is old or repeated changes nothing."""
        if report.site not in self._index:
            raise UnknownSite(report.site)
        site = self._index[report.site]
        row = self._rows[site]
        if report.epoch > row.epoch:
            raise ClockWentBackwards((report.epoch - row.epoch) / 1e6)
        self.words_by_kind["answer" if site in self._owing else "report"] += 1
        if report.count > row.former.get(report.incarnation, report.count):
            row.former[report.incarnation] = report.count
            self.knows_more = True
        news = self._is_news(row, report)
        if news:
            self._note(row, report)
        if report.incarnation == row.incarnation:
            self._remind(row)
        if news and self._collecting is not None:
            self._collect(site)
        elif news and row.reported_epoch == row.epoch:
            self._owing.discard(site)
            self._changing.discard(site)
            self._hear(site, row)

    def _hear(self, site: int, row: _SiteRow) -> None:
        """Tell the engine, and grant what it wishes for."""
        before = self._held or self._engine.estimate()
        wish = self._engine.hear(site, row.rule, row.frozen + row.begun, row.reports, row.total)
        unsettled = self._changing or _unsettles(wish)
        self._held = before if unsettled else None
        self._grant(wish)

    def _remind(self, row: _SiteRow) -> None:
        """Repeat an order that a site has not taken: it was lost, or came to one that is gone.

        The more it reports meanwhile the more seldom, so that a site that reports faster than
        orders travel is not answered each time. The first after a call may have crossed it.
        """
        row.behind = 0 if row.reported_epoch == row.epoch else row.behind + 1
        row.unsure = row.unsure and not row.reports
        if row.behind > self.collecting and not row.behind & (row.behind - 1):
            rule = None if self._rule_to_follow else row.rule
            kind = "rule" if self._collecting is None else "call"
            self._tell(kind, row, Order(row.epoch, rule, answer=True))
        elif row.unsure and not row.behind:
            self._tell("rule", row, Order(row.epoch, row.rule, answer=False))

    def _is_news(self, row: _SiteRow, report: SiteReport) -> bool:
        """Whether the report says more than what is known."""
        if report.incarnation in row.former:
            return False  # it is in the next round
        if report.incarnation != row.incarnation:
            return True
        newest = (row.reported_epoch, row.reports, row.count)
        return (report.epoch, report.reports, report.count) > newest

    def _note(self, row: _SiteRow, report: SiteReport) -> None:
        if report.incarnation != row.incarnation:
            if row.incarnation is not None:
                row.former[row.incarnation] = row.count
                row.frozen, row.since = row.formerly, row.epoch
            row.incarnation = report.incarnation
        row.reported_epoch, row.begun = report.epoch, report.begun
        row.reports, row.count = report.reports, report.count

    def poll(self) -> None:
        """Call a round now, unless the clock went backwards since the last."""
        now = int(self._clock() * 1e6)
        if now < self._epoch:
            raise ClockWentBackwards((self._epoch - now) / 1e6)
        self.call_round()

    def call_round(self) -> None:
        """Ask every site for its exact count, and begin a round when all have answered."""
        epoch = self._next_epoch()
        self._held = self._held or self._engine.estimate()  # a summons may change it
        self._changing = set()
        rule = self._engine.summons()
        self._collecting, self._rule_to_follow = epoch, rule is None
        for row in self._rows:
            row.epoch, row.unsure, row.behind = epoch, False, 0
            row.rule = row.rule if rule is None else rule
        self._owing = set(range(len(self._rows)))
        self._tell_all("call", Order(epoch, rule, answer=True))

    def call_again(self, unless: Container[str] = ()) -> None:
        """Repeat the call to those who have not answered, some of them excepted."""
        for row in [self._rows[site] for site in sorted(self._owing)]:
            if row.name not in unless:
                rule = None if self._rule_to_follow else row.rule
                self._tell("call", row, Order(row.epoch, rule, answer=True))

    def _collect(self, site: int) -> None:
        row = self._rows[site]
        if row.reported_epoch == self._collecting:
            self._owing.discard(site)
        if not self._owing:
            self._begin()

    def begin_without(self) -> None:
        """Begin the round with what is known of the sites that do not answer."""
        if self._collecting is not None:
            self._begin()

    def _begin(self) -> None:
        epoch, self._collecting = self._collecting, None
        self.rounds += 1
        for row in self._rows if self.knows_more else ():
            row.frozen = row.formerly
        self.knows_more = False
        bases = [
            row.frozen + (row.count if site in self._owing else row.begun)
            for site, row in enumerate(self._rows)
        ]
        rule = self._engine.begin(bases)
        self._held = None
        if rule is not None and epoch is not None:
            self._send_rule(epoch, rule)
        self._hear_what_came_meanwhile()

    def _send_rule(self, epoch: int, rule: Rule) -> None:
        self._rule_to_follow = False
        for row in self._rows:
            row.rule, row.unsure = rule, True
        self._tell_all("rule", Order(epoch, rule, answer=False))

    def _hear_what_came_meanwhile(self) -> None:
        for site, row in enumerate(self._rows):
            if self._collecting is None and row.reported_epoch == row.epoch and row.reports:
                self._hear(site, row)

    def _grant(self, wish: Wish) -> None:
        match wish:
            case EndRound():
                self.call_round()
            case RuleChange(wider, narrower):
                self._change(wider, answer=False)
                self._change(narrower, answer=True)

    def _change(self, rules: Mapping[int, Rule], answer: bool) -> None:
        if not rules:
            return
        epoch = self._next_epoch()
        for site, rule in rules.items():
            row = self._rows[site]
            row.epoch, row.rule, row.unsure, row.behind = epoch, rule, False, 0
        self._owing = self._owing | rules.keys() if answer else self._owing - rules.keys()
        if answer:
            self._changing |= {site for site, rule in rules.items() if _needs_answer(rule)}
        for site, rule in rules.items():
            self._tell("rule", self._rows[site], Order(epoch, rule, answer))

    def _tell(self, kind: str, row: _SiteRow, order: Order) -> None:
        self.words_by_kind[kind] += 1
        self._send(row.name, order)

    def _tell_all(self, kind: str, order: Order) -> None:
        """One message where there is such a thing; k words in any case."""
        if self._send_all is not None:
            self.words_by_kind[kind] += len(self._rows)
            self._send_all(order)
            return
        for row in self._rows:
            self._tell(kind, row, order)

    def _next_epoch(self) -> int:
        """A later epoch than any so far, by the clock where that will do."""
        self._epoch = max(int(self._clock() * 1e6), self._epoch + 1)
        return self._epoch


def check_names(sites: Sequence[str]) -> None:
    """Refuse no sites at all, and two of one name."""
    if not sites:
        raise Misconfigured("a tracker needs at least one site, and each a name of its own")
    twice = [name for name, times in Counter(sites).items() if times > 1]
    if twice:
        raise Misconfigured(
            f"a tracker needs sites with each a name of its own; {twice[0]!r} is given twice"
        )


def _needs_answer(rule: Rule) -> bool:
    """Whether a bound depends on when a site took this rule; blocks have it in their noise."""
    return not isinstance(rule, Blocks)


def _unsettles(wish: Wish) -> bool:
    """Whether an engine's estimate is right only once its wish is granted and answered."""
    if isinstance(wish, RuleChange):
        return any(map(_needs_answer, wish.narrower.values()))
    return isinstance(wish, EndRound)
