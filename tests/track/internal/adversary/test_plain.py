"""What the two attacks do, shown on servers small enough to see through."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from chance import assert_rate_at_most
from numpy.random import default_rng
from oracles.scripted_adversaries import (
    Adversary,
    Seen,
    UniformSites,
    group_hold_or_flush,
    stop_on_change,
)

from casemate.track.instruction import Blocks, Draw, SiteStanding


def test_stop_on_change_leaves_a_site_when_the_output_jumps_by_more_than_it_received() -> None:
    adversary = stop_on_change(3)
    outputs = [100.0, 100.0, 111.0, 111.0, 122.0, 133.0]
    named = [adversary.next_site(seen) for seen in _shown(outputs, step=10.0)]
    assert named == [0, 0, 1, 1, 2, 0]


@pytest.mark.parametrize(("items", "left"), [(5, True), (6, False)])
def test_stop_on_change_leaves_a_block_only_if_it_reported_in_its_first_half(
    items: int, left: bool
) -> None:
    adversary = stop_on_change(2)
    seen = _shown([0.0] * items + [10.0], step=10.0)  # a block of ten
    assert [adversary.next_site(s) for s in seen] == [0] * items + [int(left)]


def test_stop_on_change_begins_again_with_each_round() -> None:
    adversary = stop_on_change(3)
    assert adversary.next_site(Seen(0.0, False, 0, 2.0)) == 0
    assert adversary.next_site(Seen(9.0, True, 0, 2.0)) == 1
    assert adversary.next_site(Seen(9.0, True, 1, 2.0)) == 0


def test_group_hold_or_flush_pumps_one_site_where_reports_have_no_size() -> None:
    adversary = group_hold_or_flush(9)
    shown = _shown([float(i) for i in range(50)], step=0.0)
    assert {adversary.next_site(seen) for seen in shown} == {0}


def test_group_hold_or_flush_moves_a_group_to_the_middle_and_pumps_until_the_output_moves() -> None:
    adversary = group_hold_or_flush(4)  # groups of two: 1 and 2; 3
    seen = [Seen(0.0, False, 0, 4.0)] * 3 + [Seen(16.0, True, 0, 4.0)]
    assert [adversary.next_site(s) for s in seen] == [0, 0, 0, 1]
    quiet = Seen(16.0, False, 0, 4.0)
    assert [adversary.next_site(quiet) for _ in range(5)] == [1, 2, 2, 0, 0]


@pytest.mark.parametrize(("blocks", "held"), [(2, True), (3, False)])
def test_a_group_is_held_if_the_pump_needed_few_blocks(blocks: int, held: bool) -> None:
    """The output moves every four reports, and the group of sites 1 and 2 made the others."""
    adversary = group_hold_or_flush(3)
    assert {adversary.next_site(Seen(0.0, False, 0, 4.0)) for _ in range(16)} == {0}
    assert adversary.next_site(Seen(16.0, True, 0, 4.0)) == 1  # four blocks were four reports
    quiet = Seen(16.0, False, 0, 4.0)
    assert [adversary.next_site(quiet) for _ in range(3)] == [1, 2, 2]
    assert {adversary.next_site(quiet) for _ in range(4 * blocks)} == {0}
    after = adversary.next_site(Seen(32.0, True, 0, 4.0))
    assert after == (0 if held else 1)  # nobody is left to be moved, or the same once more


def _shown(outputs: list[float], step: float) -> list[Seen]:
    before = [outputs[0], *outputs]
    return [Seen(now, now != then, 0, step) for now, then in zip(outputs, before, strict=False)]


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
