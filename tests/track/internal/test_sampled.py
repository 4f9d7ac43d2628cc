from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.engine import EndRound
from casemate.track.instruction import Every, Sample
from casemate.track.protocols.sampled.design import design
from casemate.track.protocols.sampled.sampled import Sampled
from casemate.track.setting import Setting
from casemate.track.simulate.runs import PlainRun

SETTING = Setting(4, 0.2, 0.1, 10**4)


def fresh() -> Sampled:
    return Sampled(design(4, 0.2, 0.1, 1e4))


def sampling() -> tuple[Sampled, list[int], float]:
    """An engine in its first sampled round, with the exact counts and the probability."""
    engine = fresh()
    each = engine.design.exact_until(0.0) // 4 + 1
    for site in range(4):
        engine.hear(site, Every(), 0, each, each)
    rule = engine.summons()
    assert isinstance(rule, Sample)
    counts = [each] * 4
    engine.begin(counts)
    return engine, counts, rule.probability


# Exactly true


def test_at_first_every_item_is_reported_and_the_count_is_exact() -> None:
    engine = fresh()
    assert engine.opening() == Every()
    assert engine.hear(2, Every(), 0, 1, 7) is None  # a batch of seven
    estimate = engine.estimate()
    assert (estimate.value, estimate.lo, estimate.hi, estimate.confidence) == (7, 7, 7, 1)
    assert isinstance(engine.hear(1, Every(), 0, 1, 10**6), EndRound)


def test_a_round_begins_exact_and_every_report_stands_for_one_over_p() -> None:
    engine, counts, p = sampling()
    assert engine.estimate().value == sum(counts)
    engine.hear(0, Sample(p), counts[0], 1, counts[0] + 3)
    engine.hear(3, Sample(p), counts[3], 2, counts[3] + 5)
    assert engine.estimate().value == pytest.approx(sum(counts) + 3 / p)


def test_a_report_takes_the_place_of_the_one_before() -> None:
    engine, counts, p = sampling()
    for _ in range(3):
        engine.hear(0, Sample(p), counts[0], 2, counts[0] + 9)
    assert engine.estimate().value == pytest.approx(sum(counts) + 2 / p)


def test_a_site_that_comes_back_begins_where_it_was_last_known_to_be() -> None:
    engine, counts, p = sampling()
    engine.hear(0, Sample(p), counts[0], 2, counts[0] + 9)
    engine.hear(0, Sample(p), counts[0] + 9, 0, counts[0] + 9)
    assert engine.estimate().value == sum(counts) + 9


def test_a_round_is_over_when_it_has_its_reports() -> None:
    engine, counts, p = sampling()
    reports = engine.design.round(sum(counts), p, 0.0).reports
    assert engine.hear(1, Sample(p), counts[1], reports - 1, counts[1] + 50) is None
    assert engine.hear(2, Sample(p), counts[2], 1, counts[2] + 5) == EndRound()


def test_a_server_that_starts_again_is_exact_at_once_and_samples_again_soon() -> None:
    engine = fresh()
    assert engine.summons() == Every()
    engine.begin([10**5] * 4)
    assert engine.estimate().value == 4 * 10**5
    assert engine.hear(0, Every(), 10**5, 1, 10**5 + 1) == EndRound()
    assert isinstance(engine.summons(), Sample)


def test_the_interval_is_what_alpha_says_and_never_below_what_is_known() -> None:
    engine, counts, p = sampling()
    engine.hear(0, Sample(p), counts[0], 1, counts[0] + 1)
    estimate = engine.estimate()
    assert estimate.lo == max(estimate.value / 1.2, sum(counts) + 1)
    assert estimate.hi == pytest.approx(estimate.value / 0.8)
    assert estimate.confidence == pytest.approx(0.9)
    engine.hear(1, Sample(p), counts[1], 1, 10**7)  # a batch that no estimate has heard of
    late = engine.estimate()
    assert late.lo == late.value < late.hi == 10**7 + 3 * counts[0] + 1


def test_rounds_that_are_called_by_hand_never_take_more_than_delta() -> None:
    engine, counts, _ = sampling()
    for _ in range(2000):
        engine.summons()
        engine.begin(counts)
    assert engine.spent <= SETTING.delta and engine.estimate().confidence >= 1 - SETTING.delta


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 400)), max_size=60), st.integers(0, 99))
def test_the_truth_is_in_the_interval_whenever_the_count_is_within_alpha(
    batches: list[tuple[int, int]], seed: int
) -> None:
    engine = fresh()
    run = PlainRun(4, engine, Random(seed).random)
    for site, n in batches:
        run.sites[site].add(n)
        truth, estimate = sum(each.count for each in run.sites), engine.estimate()
        right = abs(estimate.value - truth) <= 0.2 * truth
        inside = estimate.lo * (1 - 1e-12) <= truth <= estimate.hi * (1 + 1e-12)
        assert inside or not right
        assert engine.spent <= SETTING.delta


@given(st.integers(0, 10**6))
def test_the_largest_so_far_never_falls_and_is_no_worse_than_the_worst_so_far(seed: int) -> None:
    run = PlainRun(4, fresh(), Random(seed).random)
    largest = worst = 0.0
    for items in range(1, 400):
        run.add(items % 4)
        largest, worst = max(largest, run.output), max(worst, abs(run.output - items) / items)
        assert abs(largest - items) <= worst * items + 1e-9
