"""The server of a tracker: it hears reports, publishes a count, and calls rounds.

A server keeps nothing between its runs. Epochs are microseconds of the clock, so one that starts
again calls a round under a newer epoch than any before and has the exact counts in the answers.
"""

import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from casemate.errors import ClockWentBackwards, Misconfigured, UnknownSite
from casemate.track.count import Count
from casemate.track.engine import Change, EndRound, Engine, Rules, Wish
from casemate.track.instruction import Rule
from casemate.track.messages import Order, Report

SendOrder = Callable[[str, Order], None]
SendToAll = Callable[[Order], None]
Clock = Callable[[], float]


@dataclass
class _Row:
    """What the server knows of one site."""

    name: str
    rule: Rule
    epoch: int = 0  # of the order that was sent last
    incarnation: int | None = None
    former: set[int] = field(default_factory=set)  # incarnations that are over
    frozen: int = 0  # what they had counted
    begun: int = 0
    reports: int = 0
    count: int = 0
    told: int = 0  # the epoch of the newest report
    behind: int = 0  # reports in a row that show it did not take its last order
    unsure: bool = False  # whether the rule that followed its answer has reached it

    @property
    def total(self) -> int:
        return self.frozen + self.count


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
        if len(set(sites)) != len(sites) or not sites:
            raise Misconfigured("a tracker needs at least one site, and each a name of its own")
        self._engine, self._send, self._clock = engine, send, clock
        self._send_all = send_all
        rules = _each(engine.opening(), len(sites))
        self._rows = [_Row(name, rule) for name, rule in zip(sites, rules, strict=True)]
        self._index = {name: i for i, name in enumerate(sites)}
        self._epoch = 0
        self._owing: set[int] = set()  # sites that have not answered their last order
        self._collecting: int | None = None  # the epoch whose answers are awaited
        self._rules_to_follow = False  # this round's rules go out after the counts came in
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
        return sum(row.total for row in self._rows)

    @property
    def rules(self) -> list[Rule]:
        """What each site was told last."""
        return [row.rule for row in self._rows]

    @property
    def collecting(self) -> bool:
        """Whether a round was called and has not begun."""
        return self._collecting is not None

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

    def read(self) -> Count:
        """The count as of the reports that arrived."""
        estimate = self._engine.estimate()
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

    def receive(self, report: Report) -> None:
        """Take a report; one that is old or repeated changes nothing."""
        if report.site not in self._index:
            raise UnknownSite(report.site)
        site = self._index[report.site]
        row = self._rows[site]
        if report.epoch > row.epoch:
            raise ClockWentBackwards((report.epoch - row.epoch) / 1e6)
        self.words_by_kind["answer" if site in self._owing else "report"] += 1
        news = self._is_news(row, report)
        if news:
            self._note(row, report)
        if report.incarnation == row.incarnation:
            self._remind(row)
        if news and self._collecting is not None:
            self._collect(site)
        elif news and row.told == row.epoch:
            self._owing.discard(site)
            self._grant(self._engine.hear(site, row.rule, *self._told(row)))

    def _remind(self, row: _Row) -> None:
        """Repeat an order that a site has not taken: it was lost, or came to one that is gone.

        The more it reports meanwhile the more seldom, so that a site that reports faster than
        orders travel is not answered each time.
        """
        row.behind = 0 if row.told == row.epoch else row.behind + 1
        row.unsure = row.unsure and not row.reports
        if row.behind and not row.behind & (row.behind - 1):
            rule = None if self._rules_to_follow else row.rule
            kind = "rule" if self._collecting is None else "call"
            self._tell(kind, row, Order(row.epoch, rule, answer=True))
        elif row.unsure and not row.behind:
            self._tell("rule", row, Order(row.epoch, row.rule, answer=False))

    def _is_news(self, row: _Row, report: Report) -> bool:
        """Whether the report says more than what is known."""
        if report.incarnation in row.former:
            return False
        if report.incarnation != row.incarnation:
            return True
        newest = (row.told, row.reports, row.count)
        return (report.epoch, report.reports, report.count) > newest

    def _note(self, row: _Row, report: Report) -> None:
        if report.incarnation != row.incarnation:
            row.frozen += row.count
            row.former |= set() if row.incarnation is None else {row.incarnation}
            row.incarnation = report.incarnation
        row.told, row.begun = report.epoch, report.begun
        row.reports, row.count = report.reports, report.count

    def _told(self, row: _Row) -> tuple[int, int, int]:
        return row.frozen + row.begun, row.reports, row.total

    def poll(self) -> None:
        """Call a round now, unless the clock went backwards since the last."""
        now = int(self._clock() * 1e6)
        if now < self._epoch:
            raise ClockWentBackwards((self._epoch - now) / 1e6)
        self.call_round()

    def call_round(self) -> None:
        """Ask every site for its exact count, and begin a round when all have answered."""
        epoch = self._next_epoch()
        rules = self._engine.summons()
        self._collecting, self._rules_to_follow = epoch, rules is None
        each: Sequence[Rule | None]
        each = [None] * len(self._rows) if rules is None else _each(rules, len(self._rows))
        for row, rule in zip(self._rows, each, strict=True):
            row.epoch, row.unsure, row.behind = epoch, False, 0
            row.rule = row.rule if rule is None else rule
        self._owing = set(range(len(self._rows)))
        self._tell_all("call", [Order(epoch, rule, answer=True) for rule in each])

    def call_again(self, unless: Container[str] = ()) -> None:
        """Repeat the call to those who have not answered, some of them excepted."""
        for row in [self._rows[site] for site in sorted(self._owing)]:
            if row.name not in unless:
                rule = None if self._rules_to_follow else row.rule
                self._tell("call", row, Order(row.epoch, rule, answer=True))

    def _collect(self, site: int) -> None:
        row = self._rows[site]
        if row.told == self._collecting:
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
        bases = [
            row.frozen + (row.count if site in self._owing else row.begun)
            for site, row in enumerate(self._rows)
        ]
        rules = self._engine.begin(bases)
        if rules is not None and epoch is not None:
            self._send_rules(epoch, rules)
        self._hear_what_came_meanwhile()

    def _send_rules(self, epoch: int, rules: Rules) -> None:
        self._rules_to_follow = False
        for row, rule in zip(self._rows, _each(rules, len(self._rows)), strict=True):
            row.rule, row.unsure = rule, True
        self._tell_all("rule", [Order(epoch, row.rule, answer=False) for row in self._rows])

    def _hear_what_came_meanwhile(self) -> None:
        for site, row in enumerate(self._rows):
            if self._collecting is None and row.told == row.epoch and row.reports:
                self._grant(self._engine.hear(site, row.rule, *self._told(row)))

    def _grant(self, wish: Wish) -> None:
        match wish:
            case EndRound():
                self.call_round()
            case Change(wider, narrower):
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
        for site, rule in rules.items():
            self._tell("rule", self._rows[site], Order(epoch, rule, answer))

    def _tell(self, kind: str, row: _Row, order: Order) -> None:
        self.words_by_kind[kind] += 1
        self._send(row.name, order)

    def _tell_all(self, kind: str, orders: Sequence[Order]) -> None:
        """One message where all orders are one and it can be sent; k words in any case."""
        if self._send_all is not None and orders.count(orders[0]) == len(orders):
            self.words_by_kind[kind] += len(orders)
            self._send_all(orders[0])
            return
        for row, order in zip(self._rows, orders, strict=True):
            self._tell(kind, row, order)

    def _next_epoch(self) -> int:
        """A later epoch than any so far, by the clock where that will do."""
        self._epoch = max(int(self._clock() * 1e6), self._epoch + 1)
        return self._epoch


def _each(rules: Rules, sites: int) -> Sequence[Rule]:
    return rules if isinstance(rules, Sequence) else [rules] * sites
