"""The block scheme of Section 1.3: unbiased, and what an adversary makes of it."""

import math

import pytest
from chance import assert_follows, assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from track.oblivious.runs import RUNS, attacked, wrong_at_the_end

from casemate.track.instruction import Blocks
from casemate.track.messages import Order, Report
from casemate.track.protocols.oblivious.block import (
    BlockEstimate,
    block,
    chance_of_error,
    simulate_block,
)
from casemate.track.setting import Setting
from casemate.track.site import Site


@pytest.mark.theorem("001: Section 1.3 (block scheme)")
@given(st.integers(1, 50), st.integers(0, 2**32))
def test_a_site_reports_exactly_once_in_each_block(size: int, seed: int) -> None:
    sent: list[Report] = []
    site = Site("a", sent.append, Blocks(float(size)), draw=default_rng(seed).random)
    for block_number in range(1, 6):
        for _ in range(size):
            site.add()
        assert len(sent) == block_number


@pytest.mark.theorem("001: Section 1.3 (block scheme)")
def test_the_report_comes_at_a_uniform_point_of_its_block(seed: int) -> None:
    assert_follows(_points(10.0, seed), lambda point: min(1.0, max(0.0, point / 10)))


def test_a_point_that_is_not_uniform_is_found_out(seed: int) -> None:
    with pytest.raises(AssertionError):
        assert_follows(_points(9.0, seed), lambda point: min(1.0, max(0.0, point / 10)))


def _points(size: float, seed: int) -> list[int]:
    """Where in their third block 20,000 sites report."""
    rng, found = default_rng(seed), []
    for _ in range(20_000):
        sent: list[Report] = []
        site = Site("a", sent.append, draw=rng.random)
        site.obey(Order(1, Blocks(size), answer=False))
        site.add(2 * int(size))
        before = len(sent)
        while len(sent) == before:
            site.add()
        found.append(site.count - 2 * int(size))
    return found


@pytest.mark.theorem("001: Section 1.3 (block scheme)")
def test_the_server_shows_a_block_for_each_report() -> None:
    scheme = BlockEstimate()
    scheme.begin(Blocks(12.5))
    scheme.hear(0, 100, 1, 107)
    scheme.hear(4, 50, 2, 70)
    scheme.hear(0, 100, 3, 131)
    scheme.hear(0, 100, 3, 131)
    assert scheme.gained() == 5 * 12.5


@pytest.mark.theorem("001: Section 1.3 (block scheme)")
def test_at_one_time_it_is_wrong_at_most_as_often_as_hoeffding_says(seed: int) -> None:
    assert chance_of_error(3.0) == 2 * math.exp(-4.5)
    assert_rate_at_most(wrong_at_the_end(block, 3.0, seed), RUNS, chance_of_error(3.0))


def test_that_bound_says_something(seed: int) -> None:
    with pytest.raises(AssertionError):
        assert_rate_at_most(wrong_at_the_end(block, 0.5, seed), RUNS, chance_of_error(3.0))


@pytest.mark.parametrize(
    ("sites", "alpha", "items", "least"),
    [(256, 0.02, 400_000, 4.0), (1024, 0.01, 800_000, 8.5), (4096, 0.01, 1_600_000, 15.0)],
)
def test_stop_on_change_drives_every_run_far_past_alpha(
    sites: int, alpha: float, items: int, least: float, seed: int
) -> None:
    setting = Setting(sites, alpha, items=items)
    assert min(attacked(simulate_block, setting, "stop-on-change", seed)) > least
