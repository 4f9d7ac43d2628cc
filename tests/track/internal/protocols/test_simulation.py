import numpy as np
import pytest
from chance import assert_rate_at_most
from numpy.random import Generator

from casemate.track.adversary.compiled import named_adversary
from casemate.track.protocols.mixed.mixed import Sampled
from casemate.track.protocols.sampled.design import RoundDesign, design, predicted_words
from casemate.track.protocols.sampled.simulation import simulate_rounds, simulate_sampled
from casemate.track.setting import Setting
from casemate.track.simulate.simulate import run_plain

ADVERSARIES = ["uniform", "zipf", "single-site", "stop-on-change", "group-hold-or-flush"]


def three(rng: Generator) -> tuple[Generator, Generator, Generator]:
    adversary, sites, server = rng.spawn(3)
    return adversary, sites, server


# Exactly true


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize(("sites", "alpha", "items"), [(16, 0.1, 6000), (1, 0.3, 2000)])
def test_a_compiled_run_is_the_run_over_real_sites_and_server(
    adversary: str, sites: int, alpha: float, items: int, seed: int
) -> None:
    setting = Setting(sites, alpha, 0.1, items)
    fast = simulate_sampled(
        setting, named_adversary(adversary, sites), three(np.random.default_rng(seed))
    )
    rngs = three(np.random.default_rng(seed))
    against = named_adversary(adversary, sites).as_adversary(rngs[0])
    assert fast == run_plain(setting, Sampled(setting), against, rngs[1].random)
    assert fast.rounds > 5


def test_a_run_costs_the_words_that_were_predicted(seed: int) -> None:
    setting = Setting(64, 0.05, 0.05, 10**6)
    run = simulate_sampled(setting, named_adversary("zipf", 64), three(np.random.default_rng(seed)))
    assert run.words == pytest.approx(predicted_words(64, 0.05, 0.05, 1e6), rel=0.05)


# True with a stated probability

RUNS = 400


def violations(plan: RoundDesign, adversary: str, seed: int) -> int:
    rngs = np.random.default_rng(seed).spawn(RUNS)
    runs = (
        simulate_rounds(plan, 20_000, named_adversary(adversary, 16), three(rng)) for rng in rngs
    )
    return sum(run.violated for run in runs)


@pytest.mark.parametrize("adversary", ["uniform", "single-site", "stop-on-change"])
def test_at_most_delta_of_all_runs_are_ever_wrong(adversary: str, seed: int) -> None:
    wrong = violations(design(16, 0.1, 0.05, 2e4), adversary, seed)
    assert_rate_at_most(wrong, RUNS, 0.05)
    assert wrong > 0, "the bound is true but says nothing"


def test_runs_made_for_five_times_delta_are_found_out(seed: int) -> None:
    wrong = violations(design(16, 0.1, 0.25, 2e4), "stop-on-change", seed)
    with pytest.raises(AssertionError, match="has probability"):
        assert_rate_at_most(wrong, RUNS, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["uniform", "zipf:1.5", "single-site", "stop-on-change"])
def test_long_runs_of_many_sites_are_wrong_at_most_as_often(adversary: str, seed: int) -> None:
    plan = design(64, 0.05, 0.05, 3e5)
    rngs = np.random.default_rng(seed).spawn(RUNS)
    runs = (
        simulate_rounds(plan, 300_000, named_adversary(adversary, 64), three(rng)) for rng in rngs
    )
    assert_rate_at_most(sum(run.violated for run in runs), RUNS, 0.05)
