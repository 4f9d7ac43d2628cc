"""Sites and their rules: what they count is never lost, and what they say is cumulative."""

import json
import sys
import threading
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from chance import assert_follows
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from casemate.errors import UnknownSite
from casemate.track.journal import FileJournal
from casemate.track.messages import Order, SiteReport, encode
from casemate.track.reporting_rule import (
    FIXED_POINT_ONE,
    Blocks,
    Every,
    Growth,
    Rule,
    Sample,
    SiteStanding,
    gap,
)
from casemate.track.site import MAX_LOOPED_TRIGGERS, Site


@given(st.lists(st.integers(0, 50), max_size=60))
def test_it_reports_at_every_trigger_and_nowhere_else(items: list[int]) -> None:
    sent: list[SiteReport] = []
    site = Site("a", sent.append, Growth(3, 2))
    expected, known = [], 0
    for n in items:
        site.add(n)
        if site.count > known * 3 // 2:
            known = site.count
            expected.append(known)
    assert [report.count for report in sent] == expected
    assert site.count == sum(items)


def test_what_arrives_at_once_is_reported_once_and_passes_every_trigger() -> None:
    sent: list[SiteReport] = []
    site = Site("a", sent.append, Blocks(10.0), draw=lambda: 0.5)
    site.add(47)
    assert [(report.reports, report.count) for report in sent] == [(5, 47)]


def test_an_order_is_taken_once_and_answered_as_often_as_it_comes() -> None:
    sent: list[SiteReport] = []
    site = Site("a", sent.append, Growth(2, 1))
    site.add(5)
    order = Order(9, Sample(1.0), answer=True)
    site.obey(order)
    site.obey(order)
    assert sent[1:] == [SiteReport("a", 0, 9, 5, 0, 5)] * 2
    site.obey(Order(8, Every(), answer=True))
    assert site.epoch == 9 and len(sent) == 3


def test_after_a_collection_the_rule_counts_from_the_answer() -> None:
    sent: list[SiteReport] = []
    site = Site("a", sent.append, draw=lambda: 0.0)
    site.add(5)
    site.obey(Order(1, None, answer=True))
    site.add(25)  # after the answer and before the rule
    assert len(sent) == 2
    site.obey(Order(1, Blocks(10.0), answer=False))
    assert sent[-1] == SiteReport("a", 0, 1, 5, 2, 30)


@pytest.mark.parametrize(
    "n", [-1, -0.5, 1.5, float("nan"), float("inf"), 2**53 + 1, 10**30, "x", None, np.int8(-1)]
)
@pytest.mark.parametrize("kept", [False, True])
def test_what_is_no_count_is_refused_and_changes_nothing(
    n: object, kept: bool, tmp_path: Path
) -> None:
    sent: list[SiteReport] = []
    journal = FileJournal(tmp_path / "site") if kept else None
    site = Site("a", sent.append, journal=journal)
    with pytest.raises(ValueError, match=r"counts upwards|in whole numbers|counts up to 2\^53"):
        site.add(n)  # type: ignore[arg-type] # what is refused
    assert site.count == 0 and not sent
    site.add(3)
    assert site.count == 3 and len(sent) == 1


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int64, bool])
def test_whole_numbers_of_every_kind_are_counted_as_ints(kind: type, tmp_path: Path) -> None:
    sent: list[SiteReport] = []
    site = Site("a", sent.append, journal=FileJournal(tmp_path / "site"))
    for _ in range(7):
        site.add(kind(100))
    assert type(site.count) is int and site.count == 7 * int(kind(100))
    assert [json.loads(encode(report))[-1] for report in sent][-1] == site.count


@pytest.mark.parametrize("rule", [Every(), Growth(3, 2), Sample(0.5), Blocks(7.0)])
def test_no_site_counts_beyond_what_is_exact(rule: Rule) -> None:
    sent: list[SiteReport] = []
    site = Site("a", sent.append, rule, draw=Random(0).random)
    site.add(2**53)
    said = len(sent)
    with pytest.raises(ValueError, match=r"counts up to 2\^53"):
        site.add()
    assert site.count == 2**53 and len(sent) == said


def test_a_site_whose_journal_is_closed_says_so(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "site")
    site = Site("a", lambda _: None, journal=journal)
    site.add(2)
    journal.close()
    with pytest.raises(ValueError, match="the site 'a' is closed"):
        site.add()
    assert site.count == 2


@given(st.lists(st.one_of(st.integers(1, 30), st.none()), max_size=40), st.booleans())
def test_a_killed_site_goes_on_as_if_nothing_had_happened(
    steps: list[int | None], blocks: bool
) -> None:
    """None kills it: nothing is closed or flushed, another one is made from the same file."""
    import tempfile

    rule = Blocks(7.0) if blocks else Growth(5, 4)
    with tempfile.TemporaryDirectory() as folder:
        sent: list[SiteReport] = []
        unbroken_sent: list[SiteReport] = []
        journal = FileJournal(Path(folder) / "site")
        site = Site("a", sent.append, rule, journal, draw=lambda: 0.25)
        unbroken = Site("a", unbroken_sent.append, rule, draw=lambda: 0.25)
        for step in steps:
            if step is None:
                journal.close()
                journal = FileJournal(Path(folder) / "site")
                site = Site("a", sent.append, rule, journal, draw=lambda: 0.25)
            else:
                site.add(step)
                unbroken.add(step)
        journal_count = site.count
        journal.close()
    assert journal_count == unbroken.count
    assert [(r.reports, r.count) for r in sent] == [(r.reports, r.count) for r in unbroken_sent]


def test_orders_from_another_thread_lose_no_count_and_no_trigger(tmp_path: Path) -> None:
    """The one that adds takes no lock unless it reports; threads change places all the time."""
    journal = FileJournal(tmp_path / "site")
    sent: list[SiteReport] = []
    site = Site("a", sent.append, Growth(3, 2), journal)
    over = threading.Event()

    def order() -> None:
        rules = (Every(), Sample(0.1), Growth(101, 100), Blocks(7.0), None)
        for epoch in range(1, 4_000):
            site.obey(Order(epoch, rules[epoch % 5], answer=epoch % 2 == 0))
        site.obey(Order(4_000, Every(), answer=True))
        over.set()

    before, added = sys.getswitchinterval(), 0
    sys.setswitchinterval(1e-6)
    try:
        other = threading.Thread(target=order)
        other.start()
        while not over.is_set() or added < 20_000:
            site.add()
            added += 1
        other.join()
    finally:
        sys.setswitchinterval(before)
    assert site.count == added == journal.cells[0]
    newest = max(sent, key=lambda report: (report.epoch, report.reports, report.count))
    assert (newest.epoch, newest.count) == (4_000, added)  # every item was reported at the end
    entry = journal.load()
    assert entry is not None and entry.next_trigger == added + 1
    for report in sent:
        assert report.begun <= report.count <= added
    journal.close()


def test_a_site_that_is_refused_says_so_at_every_item_until_it_is_ordered_about() -> None:
    sent: list[SiteReport] = []
    site = Site("berlin", sent.append)
    site.obey(Order(1, Growth(1000, 1), False))
    site.add()
    site.refuse()
    for _ in range(2):
        with pytest.raises(UnknownSite, match="'berlin' is none of the sites here"):
            site.add()
    assert (site.refused, len(sent)) == (True, 1)  # what it said before
    assert site.count == 1  # so that whoever tries again counts nothing twice
    site.obey(Order(1, Growth(1000, 1), True))  # the same once more: its next trigger is as before
    site.add(10)
    site.add(990)
    assert not site.refused
    assert [(report.reports, report.count) for report in sent] == [(1, 1), (1, 1), (2, 1001)]


def reported(rule: Rule, added: int, seed: int) -> SiteReport:
    """The last thing a site says that counts so much at once, after seven of them one by one."""
    sent: list[SiteReport] = []
    site = Site("s", sent.append, rule, draw=np.random.default_rng(seed).random)
    for _ in range(7):
        site.add()
    site.add(added)
    return sent[-1]


@pytest.mark.parametrize("rule", [Sample(0.001), Sample(0.9), Blocks(2.0), Blocks(3.7), Every()])
def test_a_site_counts_a_million_million_at_once(rule: Rule, seed: int) -> None:
    said = reported(rule, 10**12, seed)
    assert said.count == 10**12 + 7
    match rule:
        case Sample(probability):
            assert said.reports == pytest.approx(probability * 1e12, rel=0.01)
        case Blocks(size):
            assert said.reports == pytest.approx(said.count / size, abs=1)


def test_after_a_leap_over_blocks_the_site_reports_once_in_each_of_the_next(seed: int) -> None:
    sent: list[SiteReport] = []
    site = Site("s", sent.append, Blocks(5.0), draw=np.random.default_rng(seed).random)
    site.add(5 * 10**6)
    assert sent[-1].reports == 10**6
    for _ in range(50):
        site.add()
    assert [report.reports for report in sent[1:]] == list(range(10**6 + 1, 10**6 + 11))
    blocks = [(report.count - 1) // 5 for report in sent[1:]]
    assert blocks == list(range(10**6, 10**6 + 10))


@pytest.mark.parametrize(
    ("items", "probability"), [(4 * MAX_LOOPED_TRIGGERS, 0.5), (10**12, 0.25), (10**15, 1e-4)]
)
def test_what_is_sampled_in_a_leap_and_after_it_is_binomial(
    items: int, probability: float, seed: int
) -> None:
    found = [reported(Sample(probability), items, seed + i).reports for i in range(2000)]
    more = [reports + reports // 20 for reports in found]
    points = np.unique([point for reports in found + more for point in (reports - 1, reports)])
    chances = stats.binom(items + 7, probability).cdf(points)  # at once: one by one it is slow
    law = dict(zip(points.tolist(), chances.tolist(), strict=True)).__getitem__
    assert_follows(found, law)
    with pytest.raises(AssertionError):
        assert_follows(more, law, alarm=1e-6)


counts = st.integers(min_value=0, max_value=10**9)
rules: st.SearchStrategy[Rule] = st.one_of(
    st.just(Every()),
    st.builds(
        Growth, st.integers(FIXED_POINT_ONE, 2 * FIXED_POINT_ONE), st.integers(1, FIXED_POINT_ONE)
    ),
    st.builds(Sample, st.floats(1e-6, 1)),
    st.builds(Blocks, st.floats(1, 1e6)),
)


def at(count: int) -> SiteStanding:
    return SiteStanding(count, 0, count, count)


@given(rules, counts, st.floats(0, 1, exclude_max=True))
def test_the_next_trigger_lies_ahead(rule: Rule, count: int, uniform: float) -> None:
    assert rule.after(at(count), lambda: uniform) > count


@given(counts, st.fractions(Fraction(1, 1000), Fraction(9, 10)))
def test_a_window_holds_every_count_up_to_the_ratio(count: int, ratio: Fraction) -> None:
    numerator = int((1 + ratio) * FIXED_POINT_ONE)
    top = Growth(numerator, FIXED_POINT_ONE).top(count)
    assert top <= Fraction(numerator, FIXED_POINT_ONE) * count < top + 1


def test_a_gap_is_geometric(seed: int) -> None:
    uniforms = np.random.default_rng(seed).random(20_000).tolist()
    gaps = [gap(u, 0.2) for u in uniforms]
    assert_follows(gaps, lambda n: 1 - 0.8 ** max(n, 0))
    with pytest.raises(AssertionError):  # one that counts from zero is not
        assert_follows([each - 1 for each in gaps], lambda n: 1 - 0.8 ** max(n, 0))
