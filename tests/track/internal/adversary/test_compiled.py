"""Adversaries by name: the compiled ones do, item by item, what the plain ones do."""

import random

import numpy as np
import pytest
from chance import assert_follows
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator, default_rng
from oracles import scripted_adversaries as plain

from casemate.errors import Misconfigured
from casemate.track.simulate.adversary import NAMES, Adversary, Seen, named_adversary

BY_NAME = [name.replace("EXPONENT", "1.5") for name in NAMES]
QUIET = Seen(0.0, False, 0, 0.0)


def plain_adversary(name: str, sites: int, rng: Generator) -> Adversary:
    match name.partition(":"):
        case "uniform", _, _:
            return plain.UniformSites(sites, rng)
        case "zipf", _, exponent:
            return plain.Zipf(sites, rng, float(exponent or 1))
        case "single-site", _, _:
            return plain.SingleSite()
        case "stop-on-change", _, _:
            return plain.stop_on_change(sites)
        case _:
            return plain.group_hold_or_flush(sites)


@st.composite
def histories(draw: st.DrawFn) -> list[Seen]:
    """What some server might show: jumps of any size now and then, rounds, steps."""
    chaos = random.Random(draw(st.integers(0, 2**32)))
    jump = draw(st.sampled_from([0.02, 0.3, 1.0]))
    output, round_number, step, seen = 0.0, 0, 0.0, []
    for _ in range(draw(st.integers(1, 400))):
        changed = chaos.random() < jump
        output += changed * chaos.choice([step, 3 * step, chaos.uniform(-5, 40)])
        if chaos.random() < 0.01:
            round_number, step = round_number + 1, chaos.choice([0.0, 2.0, 3.7, 10.0])
        seen.append(Seen(output, changed, round_number, step))
    return seen


@pytest.mark.parametrize("name", BY_NAME)
@given(histories(), st.integers(1, 20))
def test_a_compiled_adversary_names_the_sites_that_the_plain_one_names(
    name: str, history: list[Seen], sites: int
) -> None:
    fast = plain.as_adversary(named_adversary(name, sites), default_rng(1))
    slow = plain_adversary(name, sites, default_rng(1))
    for seen in history:
        site = slow.next_site(seen)
        assert fast.next_site(seen) == site
        assert 0 <= site < sites


@pytest.mark.parametrize("name", ["stop-on-change", "group-hold-or-flush"])
def test_two_runs_do_not_share_their_memory(name: str) -> None:
    first, second = named_adversary(name, 4), named_adversary(name, 4)
    plain.as_adversary(first, default_rng(0)).next_site(QUIET)
    assert not np.array_equal(first.memory, second.memory)


@pytest.mark.parametrize(
    ("name", "weights"),
    [("uniform", [1, 1, 1, 1]), ("zipf", [12, 6, 4, 3]), ("zipf:2", [144, 36, 16, 9])],
)
def test_the_load_of_a_site_is_as_its_name_says(name: str, weights: list[int], seed: int) -> None:
    sites = _sites(name, seed)
    assert_follows(sites, lambda site: sum(weights[: site + 1]) / sum(weights))


def test_the_loads_can_be_told_apart(seed: int) -> None:
    with pytest.raises(AssertionError):
        assert_follows(_sites("zipf:1.2", seed), lambda site: (0.48, 0.72, 0.88, 1.0)[site])


def _sites(name: str, seed: int) -> list[int]:
    adversary = plain.as_adversary(named_adversary(name, 4), default_rng(seed))
    return [adversary.next_site(QUIET) for _ in range(20_000)]


@pytest.mark.parametrize("name", ["", "Uniform", "stop", "single-site:3", "uniform:2"])
def test_an_unknown_name_is_answered_with_the_choices(name: str) -> None:
    with pytest.raises(Misconfigured, match=r"no adversary .*; choose one of uniform, zipf, "):
        named_adversary(name, 4)


@pytest.mark.parametrize("name", ["zipf:", "zipf:x", "zipf:-1", "zipf:nan", "zipf:inf"])
def test_an_exponent_that_is_none_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(Misconfigured, match="the exponent of a Zipf load is a number of at least"):
        named_adversary(name, 4)


def test_an_adversary_needs_a_site() -> None:
    with pytest.raises(Misconfigured, match="at least one site"):
        named_adversary("uniform", 0)
