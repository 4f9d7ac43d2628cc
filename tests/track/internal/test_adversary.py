"""Adversaries by name do what the plain ones do, and what those do is shown on small servers."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from chance import assert_follows, assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator, default_rng
from oracles import scripted_adversaries as plain
from oracles.scripted_adversaries import UniformSites, group_hold_or_flush

from casemate.errors import Misconfigured
from casemate.track.reporting_rule import Blocks, Draw, SiteStanding
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


@pytest.mark.parametrize(
    ("names", "sites", "said"),
    [
        (["", "Uniform", "stop", "single-site:3", "uniform:2"], 4, "choose one of uniform, zipf, "),
        (
            ["zipf:", "zipf:x", "zipf:-1", "zipf:nan", "zipf:inf"],
            4,
            "a Zipf load is a number of",
        ),
        (["uniform"], 0, "at least one site"),
    ],
)
def test_what_is_no_adversary_is_refused_in_a_sentence(
    names: list[str], sites: int, said: str
) -> None:
    for name in names:
        with pytest.raises(Misconfigured, match=said):
            named_adversary(name, sites)


@pytest.mark.parametrize(("blocks", "held"), [(2, True), (3, False)])
def test_a_group_is_held_if_the_pump_needed_few_blocks(blocks: int, held: bool) -> None:
    """The output moves every four reports, and the group of sites 1 and 2 made the others."""
    adversary = plain.as_adversary(named_adversary("group-hold-or-flush", 3), default_rng(0))
    assert {adversary.next_site(Seen(0.0, False, 0, 4.0)) for _ in range(16)} == {0}
    assert adversary.next_site(Seen(16.0, True, 0, 4.0)) == 1  # four blocks were four reports
    quiet = Seen(16.0, False, 0, 4.0)
    assert [adversary.next_site(quiet) for _ in range(3)] == [1, 2, 2]
    assert {adversary.next_site(quiet) for _ in range(4 * blocks)} == {0}
    after = adversary.next_site(Seen(32.0, True, 0, 4.0))
    assert after == (0 if held else 1)  # nobody is left to be moved, or the same once more


@dataclass
class Quantised:
    """The block scheme in one round, whose output moves only every `quantum` reports."""

    sites: int
    step: float
    quantum: int
    draw: Draw

    def bias_after(self, moves: int, adversary: Adversary) -> float:
        """How many reports too many there are after so many moves of the output."""
        rule, counts, reports = Blocks(self.step), [0] * self.sites, [0] * self.sites
        triggers = [rule.after(SiteStanding(0, 0, 0, 0), self.draw) for _ in counts]
        shown, changed = 0, False
        while shown < moves * self.quantum:
            site = adversary.next_site(Seen(shown * self.step, changed, 0, self.step))
            counts[site] += 1
            while counts[site] >= triggers[site]:
                reports[site] += 1
                at = SiteStanding(0, reports[site], triggers[site], counts[site])
                triggers[site] = rule.after(at, self.draw)
            now = sum(reports) // self.quantum * self.quantum
            shown, changed = now, now != shown
        return sum(reports) - sum(counts) / self.step


def _biased_runs(make: Callable[[int], Adversary], seed: int, sites: int = 64) -> int:
    """How many of 30 runs end with a bias of half the theory's 0.32 sqrt(sites * moves)."""
    moves, biased = 24, 0
    for rng in default_rng(seed).spawn(30):
        server = Quantised(sites, 8.0, 2 * math.isqrt(sites), rng.random)
        bias = server.bias_after(moves, make(sites))
        biased += bias > 0.16 * math.sqrt(sites * moves)
    return biased


def test_quantised_outputs_without_noise_are_biased_by_group_hold_or_flush(seed: int) -> None:
    assert_rate_at_most(30 - _biased_runs(group_hold_or_flush, seed), 30, 0.2)


def test_the_same_outputs_are_not_biased_by_items_that_do_not_look(seed: int) -> None:
    with pytest.raises(AssertionError):
        assert_rate_at_most(
            30 - _biased_runs(lambda sites: UniformSites(sites, default_rng(seed)), seed), 30, 0.2
        )
