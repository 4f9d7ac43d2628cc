"""Windows and sampling together: right whatever is planned, and never dear."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.engine import Change, EndRound
from casemate.track.instruction import Growth, Sample
from casemate.track.protocols.mixed.mixed import Mixed, allocated, automatic
from casemate.track.protocols.mixed.plan import LoadView, MixedPlan, Planner, plan_windows
from casemate.track.protocols.windows import Centred, centred_rule
from casemate.track.protocols.windows import centred as centred_windows
from casemate.track.simulate.runs import PlainRun

SITES = 6
alphas = st.sampled_from([0.02, 0.05, 0.1, 0.25, 0.5])
pieces = st.tuples(st.integers(0, SITES - 1), st.integers(0, SITES - 1), st.integers(1, 150))
streams = st.lists(pieces, min_size=1, max_size=40)


def items_of(stream: list[tuple[int, int, int]]) -> list[int]:
    """Runs of items that go to two sites in turn: loads that shift all the time."""
    return [(one, two)[i % 2] for one, two, many in stream for i in range(many)]


def run(engine: Mixed, items: list[int], sites: int = SITES) -> tuple[PlainRun, float]:
    """The run, and its largest error in counts relative to the truth."""
    plain, worst = PlainRun(sites, engine, draw=Random(0).random), 0.0
    for total, site in enumerate(items, start=1):
        plain.add(site)
        worst = max(worst, abs(plain.output - total) / total)
    return plain, worst


def centred_words(alpha: float, items: list[int], sites: int = SITES) -> int:
    return Centred(centred_rule(alpha)).words(np.bincount(items, minlength=sites))


def wild(seed: int) -> Planner:
    """A planner without any sense."""
    rng = Random(seed)

    def plan(view: LoadView) -> MixedPlan:
        most = int(view.tally.value())
        widths = np.array([float(rng.randint(0, most)) for _ in view.counts])
        kept = view.tally.top - view.tally.known
        asked = np.array([rng.random() < 0.5 for _ in view.counts])
        light = np.zeros(len(widths), dtype=np.bool_)
        return MixedPlan(light, None, np.where(asked, widths, kept), 1.02 * view.tally.value())

    return plan


# Surely true, against anybody


@given(alphas, streams)
def test_allocated_windows_are_never_off_by_more_than_alpha(
    alpha: float, stream: list[tuple[int, int, int]]
) -> None:
    _, worst = run(allocated(SITES, alpha), items_of(stream))
    assert worst <= alpha


@given(alphas, streams, st.integers(0, 99))
def test_windows_are_right_whatever_is_planned(
    alpha: float, stream: list[tuple[int, int, int]], seed: int
) -> None:
    _, worst = run(Mixed(SITES, alpha, wild(seed)), items_of(stream))
    assert worst <= alpha


@given(alphas, streams, st.integers(0, 99))
def test_words_are_at_most_twice_those_of_centred_windows_whatever_is_planned(
    alpha: float, stream: list[tuple[int, int, int]], seed: int
) -> None:
    items = items_of(stream)
    for planner in (plan_windows, wild(seed)):
        plain, _ = run(Mixed(SITES, alpha, planner), items)
        assert plain.server.words <= 2 * centred_words(alpha, items) + 7 * SITES + 1


@given(alphas, streams)
def test_the_truth_is_between_the_published_ends(
    alpha: float, stream: list[tuple[int, int, int]]
) -> None:
    engine = allocated(SITES, alpha)
    plain = PlainRun(SITES, engine, draw=Random(0).random)
    for total, site in enumerate(items_of(stream), start=1):
        plain.add(site)
        estimate = engine.estimate()
        assert estimate.lo <= total <= estimate.hi
        assert estimate.confidence == 1.0


@pytest.mark.parametrize(
    "make", [lambda: allocated(64, 0.01), lambda: automatic(64, 0.01, 0.01, 1e6)]
)
def test_a_single_busy_site_costs_what_it_costs_with_a_centred_window(
    make: Callable[[], Mixed],
) -> None:
    items = [7] * 30_000
    plain, _ = run(make(), items, 64)
    assert plain.server.words == centred_words(0.01, items, 64)


def test_a_plan_that_makes_everything_dear_is_given_up() -> None:
    """No site has a window any more; after its words are used up, everybody is centred again."""

    def no_windows(view: LoadView) -> MixedPlan:
        nobody = np.zeros(len(view.counts), dtype=np.bool_)
        return MixedPlan(nobody, None, np.zeros(len(view.counts)), np.inf)

    engine = Mixed(2, 0.1, no_windows)
    items = [i % 2 for i in range(3000)]
    plain, worst = run(engine, items, 2)
    assert plain.server.words_by_kind["answer"] > 0
    assert plain.server.rules == [centred_rule(0.1)] * 2
    assert plain.server.words <= 2 * centred_words(0.1, items, 2) + 15
    assert worst <= 0.1


def test_with_shifted_loads_windows_are_narrowed_before_anything_is_published() -> None:
    """Busy sites get small rates and others large ones; then the others become busy."""
    alpha, sites = 0.05, 8
    rng = Random(1)
    first = rng.choices(range(sites), weights=[1000, 300, 100, 30, 10, 3, 1, 1], k=60_000)
    engine = allocated(sites, alpha)
    plain = PlainRun(sites, engine, draw=rng.random)
    for site in first:
        plain.add(site)
    narrowed, worst = plain.server.words_by_kind["answer"], 0.0
    for total in range(len(first) + 1, len(first) + 60_000):
        plain.add(7)
        worst = max(worst, abs(plain.output - total) / total)
    assert plain.server.words_by_kind["answer"] > narrowed
    assert worst <= alpha


# What a server asks


def test_a_call_from_outside_makes_every_count_exact() -> None:
    engine = allocated(4, 0.1)
    plain, _ = run(engine, [i % 3 for i in range(5000)], 4)
    plain.server.call_round()
    assert engine.estimate().value - 5000 == pytest.approx(
        (engine.tally.high - engine.tally.low) * engine.tally.weight
    )
    assert engine.tally.low == 5000


def test_a_call_from_outside_ends_a_mixture_with_centred_windows() -> None:
    sites = 256
    engine = automatic(sites, 0.2, 0.1, 1e6)
    rng = Random(2)
    plain, _ = run(engine, rng.choices(range(sites), k=40_000), sites)
    assert any(isinstance(rule, Sample) for rule in plain.server.rules)
    before = engine.estimate().confidence
    plain.server.call_round()
    assert engine.tally.low == 40_000
    assert set(plain.server.rules) == {centred_rule(0.2)}
    assert engine.estimate().confidence == before


def test_many_calls_from_outside_never_spend_more_than_delta() -> None:
    sites = 512
    engine = automatic(sites, 0.1, 0.2, 1e6)
    plain, _ = run(engine, Random(2).choices(range(sites), k=40_000), sites)
    plain.server.call_round()
    assert all(isinstance(rule, Sample) for rule in plain.server.rules)
    spent = 1 - engine.estimate().confidence
    for _ in range(100):
        plain.server.call_round()
        assert spent <= 1 - engine.estimate().confidence < 0.2
    assert {type(rule) for rule in plain.server.rules} == {Growth}  # nothing is left to spend


@pytest.mark.parametrize(
    ("sites", "alpha", "delta", "before", "between"),
    [(64, 0.5, 0.5, 300, 3), (256, 0.1, 0.9, 4_000, 2)],
)
def test_a_call_from_outside_costs_no_more_than_itself(
    sites: int, alpha: float, delta: float, before: int, between: int
) -> None:
    engine, random, items = automatic(sites, alpha, delta, 1e8), Random(1), []
    plain = PlainRun(sites, engine, draw=Random(2).random)
    for calls in range(1, 101):
        fresh = random.choices(range(sites), k=before if calls == 1 else between)
        for site in fresh:
            plain.add(site)
        items += fresh
        plain.server.call_round()
        most = 2 * centred_words(alpha, items, sites) + 7 * sites + 1 + 2 * sites * calls
        assert plain.server.words <= most


batches = st.tuples(st.integers(0, SITES - 1), st.sampled_from([1, 2, 7, 50, 10**3, 10**6]))


@given(alphas, st.lists(st.one_of(st.none(), batches), max_size=60))
def test_batches_and_calls_from_outside_leave_the_count_within_alpha(
    alpha: float, moves: list[tuple[int, int] | None]
) -> None:
    engine, total = allocated(SITES, alpha), 0
    plain = PlainRun(SITES, engine, draw=Random(0).random)
    for move in moves:
        if move is None:
            plain.server.call_round()
        else:
            plain.sites[move[0]].add(move[1])
            total += move[1]
        assert abs(engine.estimate().value - total) <= alpha * total


def test_nothing_is_decided_while_answers_are_awaited() -> None:
    engine = allocated(3, 0.5)
    for site, count in ((0, 30), (1, 20)):
        engine.tally.hold(site, count, count + 9)
    wish = engine._start(None, {0: Growth(2, 1), 1: Growth(2, 1)}, 1.0)
    assert isinstance(wish, Change)
    assert set(wish.narrower) == {0, 1}
    assert engine.hear(2, engine._rule, 0, 1, 5) is None
    assert engine.decide(0) is None


def test_a_window_whose_count_is_known_needs_no_answer() -> None:
    engine = allocated(3, 0.5)
    engine.tally.hold(0, 1000, 1000)
    engine.tally.hold(1, 1000, 1001)
    wish = engine._send({0: Growth(101, 100), 1: Growth(101, 100)}, engine._exact(), 1e9)
    assert isinstance(wish, Change)
    assert (set(wish.wider), set(wish.narrower)) == ({0}, {1})


def test_a_round_of_all_sites_is_a_call() -> None:
    engine = allocated(2, 0.5)
    assert engine._send({0: Sample(0.5), 1: Sample(0.5)}, engine._exact(), 1e9) == EndRound()
    assert engine.summons() == [Sample(0.5), Sample(0.5)]


def test_loads_that_do_not_differ_are_left_alone() -> None:
    engine, centred = allocated(16, 0.05), centred_windows(16, 0.05)
    rng = Random(3)
    items = rng.choices(range(16), k=30_000)
    plain, _ = run(engine, items, 16)
    other = PlainRun(16, centred, draw=rng.random)
    for site in items:
        other.add(site)
    assert plain.server.words <= 1.02 * other.server.words


def test_skewed_loads_cost_less_than_with_centred_windows() -> None:
    rng = Random(4)
    items = rng.choices(range(64), weights=[1 / (i + 1) ** 1.5 for i in range(64)], k=100_000)
    plain, worst = run(allocated(64, 0.05), items, 64)
    assert plain.server.words < 0.75 * centred_words(0.05, items, 64)
    assert worst <= 0.05
