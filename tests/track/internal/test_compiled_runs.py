"""Compiled runs are the plain ones, word for word and error for error."""

import numpy as np
import pytest
from oracles.scripted_adversaries import as_adversary

from casemate.track.modes import MODES, make_engine
from casemate.track.setting import Run, Setting
from casemate.track.simulate.adversary import CompiledAdversary, named_adversary
from casemate.track.simulate.compiled_run import run_compiled
from casemate.track.simulate.pace import UNWATCHED, Pace
from casemate.track.simulate.runs import run_plain

ADVERSARIES = ("uniform", "zipf:1.5", "single-site", "stop-on-change", "group-hold-or-flush")
SHORT = (Setting(5, 0.1, 0.1, 1_500), Setting(1, 0.3, 0.1, 500), Setting(16, 0.4, 0.05, 3_000))
LONG = (
    Setting(130, 0.2, 0.2, 9_000),
    Setting(7, 0.05, 0.1, 10_000),
    Setting(50, 0.4, 0.05, 12_000),
)


def plain(mode: str, setting: Setting, adversary: str, seed: int) -> Run:
    one, two, three = np.random.default_rng(seed).spawn(3)
    engine = make_engine(mode, setting, three.random)
    chosen = as_adversary(named_adversary(adversary, setting.sites), one)
    return run_plain(setting, engine, chosen, two.random)


def fast(
    mode: str, setting: Setting, against: str | CompiledAdversary, seed: int, pace: Pace = UNWATCHED
) -> Run:
    one, two, three = np.random.default_rng(seed).spawn(3)
    engine = make_engine(mode, setting, three.random)
    if isinstance(against, str):
        against = named_adversary(against, setting.sites)
    return run_compiled(setting, engine, against, (one, two), pace)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_compiled_run_is_the_plain_one_and_so_is_one_that_pauses(
    mode: str, adversary: str, seed: int
) -> None:
    for setting, every in zip(SHORT, (7, 1, 301), strict=True):
        told: list[int] = []
        run = fast(mode, setting, adversary, seed, Pace(told.append, every))
        assert run == fast(mode, setting, adversary, seed) == plain(mode, setting, adversary, seed)
        pauses = [*range(every, setting.items, every), setting.items]
        assert told == sorted(told) and sorted(set(told)) == pauses


@pytest.mark.parametrize(("sites", "adversary"), [(512, "uniform"), (600, "zipf")])
def test_a_run_in_which_all_sites_or_the_light_ones_are_sampled_is_the_plain_one(
    sites: int, adversary: str, seed: int
) -> None:
    setting = Setting(sites, 0.05 if adversary == "uniform" else 0.1, 0.2, 60_000)
    run = fast("auto", setting, adversary, seed)
    assert run == plain("auto", setting, adversary, seed)
    if adversary == "uniform":
        assert run.rounds > 1
    else:
        assert run.rounds == 0 and run.words_by_kind["answer"] > sites  # called again and again


@pytest.mark.parametrize("mode", MODES)
def test_the_output_that_changed_just_before_a_pause_is_seen_after_it(mode: str, seed: int) -> None:
    """With every item reported an adversary that waits for a change goes on at every item."""
    setting = Setting(3, 0.1, 0.1, 60)
    paused, whole = named_adversary("stop-on-change", 3), named_adversary("stop-on-change", 3)
    fast(mode, setting, paused, seed, Pace(every=1))
    fast(mode, setting, whole, seed)
    assert paused.memory.tolist() == whole.memory.tolist()
    assert paused.numbers.tolist() == whole.numbers.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_longer_compiled_run_is_the_plain_one(mode: str, adversary: str, seed: int) -> None:
    for setting in LONG:
        run = fast(mode, setting, adversary, seed)
        assert run == plain(mode, setting, adversary, seed)
