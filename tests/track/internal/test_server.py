"""The server: rounds, answers, incarnations, and what it ignores."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured, UnknownSite
from casemate.track.engine import EndRound, PublishedCount, RuleChange, Wish
from casemate.track.messages import Order, SiteReport
from casemate.track.reporting_rule import Blocks, Every, Growth, Rule, Sample
from casemate.track.server import Server


class Script:
    """An engine that notes what it hears and wants what it is told to want."""

    def __init__(self, wishes: Sequence[Wish] = (), collect_first: bool = False) -> None:
        self.wishes, self.collect_first = list(wishes), collect_first
        self.heard: list[tuple[int, Rule, int, int, int]] = []
        self.begun: list[Sequence[int]] = []

    def opening(self) -> Rule:
        return Every()

    def summons(self) -> Rule | None:
        return None if self.collect_first else Sample(0.5)

    def begin(self, counts: Sequence[int]) -> Rule | None:
        self.begun.append(list(counts))
        return Sample(0.25) if self.collect_first else None

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        self.heard.append((site, rule, begun, reports, count))
        return self.wishes.pop(0) if self.wishes else None

    def estimate(self) -> PublishedCount:
        total = sum({site: count for site, _, _, _, count in self.heard}.values())
        return PublishedCount(total, total, total, 1.0)


class World:
    """A server, and the orders it gave."""

    def __init__(self, engine: Script, sites: int = 2) -> None:
        self.engine, self.time = engine, 100.0
        self.orders: list[tuple[str, Order]] = []
        names = [str(i) for i in range(sites)]
        self.server = Server(names, engine, self.take, clock=lambda: self.time)

    def take(self, site: str, order: Order) -> None:
        self.orders.append((site, order))


def test_a_round_begins_when_all_have_answered_with_the_counts_they_answered() -> None:
    world = World(Script([EndRound()]))
    world.server.receive(SiteReport("0", 7, 0, 0, 1, 1))
    epoch = world.orders[0][1].epoch
    assert [(s, o.rule, o.answer) for s, o in world.orders] == [
        ("0", Sample(0.5), True),
        ("1", Sample(0.5), True),
    ]
    world.server.receive(SiteReport("1", 8, epoch, 30, 2, 35))
    assert world.server.read().stale_sites == ("0",)
    world.server.receive(SiteReport("0", 7, epoch, 20, 0, 20))
    assert world.engine.begun == [[20, 30]]
    assert world.engine.heard[1:] == [(1, Sample(0.5), 30, 2, 35)]  # what came meanwhile
    assert world.server.words_by_kind == {"report": 1, "call": 2, "answer": 2, "rule": 0}


def test_where_counts_are_collected_first_the_rules_follow() -> None:
    world = World(Script([EndRound()], collect_first=True))
    world.server.receive(SiteReport("0", 7, 0, 0, 1, 1))
    epoch = world.orders[0][1].epoch
    for site in "01":
        world.server.receive(SiteReport(site, 7, epoch, 5, 0, 5))
    assert [o.rule for _, o in world.orders] == [None, None, Sample(0.25), Sample(0.25)]
    assert {o.epoch for _, o in world.orders} == {epoch}
    assert world.server.words == 1 + 2 + 2 + 2
    world.server.receive(SiteReport("0", 9, 0, 0, 1, 1))  # one that knows of no order yet
    assert world.orders[-1] == ("0", Order(epoch, Sample(0.25), answer=True))


def test_a_change_is_told_to_the_sites_it_names() -> None:
    wish = RuleChange(wider={1: Growth(2, 1)}, narrower={0: Growth(3, 2)})
    world = World(Script([wish]), sites=3)
    world.server.receive(SiteReport("0", 7, 0, 0, 1, 9))
    assert [(s, o.rule, o.answer) for s, o in world.orders] == [
        ("1", Growth(2, 1), False),
        ("0", Growth(3, 2), True),
    ]
    world.server.receive(SiteReport("0", 7, world.orders[1][1].epoch, 9, 0, 9))
    assert world.engine.heard[-1] == (0, Growth(3, 2), 9, 0, 9)


class Moving(Script):
    """An engine whose own estimate is nonsense while answers are awaited."""

    def estimate(self) -> PublishedCount:
        return PublishedCount(len(self.heard), 0.0, 1e9, 1.0)


@pytest.mark.parametrize("wish", [EndRound(), RuleChange(narrower={0: Growth(3, 2)})])
def test_while_answers_are_awaited_what_was_known_before_is_published(wish: Wish) -> None:
    world = World(Moving([None, wish]))
    world.server.receive(SiteReport("0", 7, 0, 0, 1, 9))
    world.server.receive(SiteReport("0", 7, 0, 0, 2, 10))
    assert world.server.read().value == 1
    epoch = world.server.epoch
    world.server.receive(SiteReport("0", 7, epoch, 10, 0, 10))
    if isinstance(wish, EndRound):
        assert world.server.read().value == 1
        world.server.receive(SiteReport("1", 8, epoch, 0, 0, 0))
    assert world.server.read().value == len(world.engine.heard) > 1
    assert not world.server.holding


@pytest.mark.parametrize(
    "wish", [None, RuleChange(wider={0: Growth(3, 2)}), RuleChange(narrower={0: Blocks(8.0)})]
)
def test_nothing_is_held_where_the_bound_depends_on_no_answer(wish: Wish) -> None:
    world = World(Moving([wish]))
    world.server.receive(SiteReport("0", 7, 0, 0, 1, 9))
    assert not world.server.holding and world.server.read().value == 1


def test_a_report_that_may_have_crossed_a_call_is_not_answered() -> None:
    world = World(Script())
    world.server.poll()
    world.orders.clear()
    world.server.receive(SiteReport("0", 7, 0, 0, 1, 5))
    assert world.orders == []
    world.server.receive(SiteReport("0", 7, 0, 0, 2, 6))
    assert [site for site, _ in world.orders] == ["0"]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50), st.booleans()), min_size=1))
def test_whoever_returns_every_incarnation_counts_for_the_most_that_it_reported(
    said: list[tuple[int, int, bool]],
) -> None:
    world, most = World(Script(), sites=1), dict[int, int]()
    for incarnation, count, returns in said:
        report = SiteReport("0", incarnation, 0, 0, count, count)
        most[incarnation] = max(most.get(incarnation, 0), count)
        if returns and world.server.may_return(report):
            world.server.let_return(report)
        world.server.receive(report)
        assert world.server.heard == sum(most.values())


def test_an_unknown_site_is_refused_and_changes_nothing() -> None:
    world = World(Script())
    with pytest.raises(UnknownSite, match="'9'"):
        world.server.receive(SiteReport("9", 7, 0, 0, 1, 50))
    assert world.server.words == 0 and not world.engine.heard


@pytest.mark.parametrize("sites", [[], ["a", "a"]])
def test_sites_need_names_of_their_own(sites: list[str]) -> None:
    with pytest.raises(Misconfigured, match="each a name of its own"):
        Server(sites, Script(), lambda _site, _order: None)
