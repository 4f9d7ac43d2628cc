"""Compiled runs are the plain ones, word for word and error for error."""

import numpy as np
import pytest

from casemate.track.adversary.compiled import named_adversary
from casemate.track.modes import MODES, make_engine
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.setting import Run, Setting
from casemate.track.simulate.simulate import fast_run, run_plain

ADVERSARIES = ("uniform", "zipf:1.5", "single-site", "stop-on-change", "group-hold-or-flush")
SHORT = (Setting(5, 0.1, 0.1, 1_500), Setting(1, 0.3, 0.1, 500))
LONG = (Setting(16, 0.2, 0.05, 6_000), Setting(7, 0.05, 0.1, 10_000))


def plain(mode: str, setting: Setting, adversary: str, seed: int) -> Run:
    one, two, three = np.random.default_rng(seed).spawn(3)
    engine = make_engine(mode, setting, three.random)
    chosen = named_adversary(adversary, setting.sites).as_adversary(one)
    return run_plain(setting, engine, chosen, two.random)


def fast(mode: str, setting: Setting, adversary: str, seed: int, pace: Pace = UNWATCHED) -> Run:
    one, two, three = np.random.default_rng(seed).spawn(3)
    return fast_run(
        mode, setting, named_adversary(adversary, setting.sites), (one, two, three), pace
    )


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_compiled_run_is_the_plain_one(mode: str, adversary: str, seed: int) -> None:
    for setting in SHORT:
        assert fast(mode, setting, adversary, seed) == plain(mode, setting, adversary, seed)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_pauses_is_the_one_that_does_not(mode: str, adversary: str, seed: int) -> None:
    for setting, every in zip(SHORT, (7, 1), strict=True):
        told: list[int] = []
        run = fast(mode, setting, adversary, seed, Pace(told.append, every))
        assert run == fast(mode, setting, adversary, seed)
        pauses = [*range(every, setting.items, every), setting.items]
        assert told == sorted(told) and sorted(set(told)) == pauses


def test_the_output_that_changed_just_before_a_pause_is_seen_after_it(seed: int) -> None:
    """With every item reported an adversary that waits for a change goes on at every item."""
    setting = Setting(3, 0.1, 0.1, 60)
    for mode in ("exact", "sampled", "robust", "robust-tuned", "block"):
        adversary = named_adversary("stop-on-change", 3)
        one, two, three = np.random.default_rng(seed).spawn(3)
        fast_run(mode, setting, adversary, (one, two, three), Pace(every=1))
        unpaused = named_adversary("stop-on-change", 3)
        one, two, three = np.random.default_rng(seed).spawn(3)
        fast_run(mode, setting, unpaused, (one, two, three))
        assert adversary.memory.tolist() == unpaused.memory.tolist()
        assert adversary.numbers.tolist() == unpaused.numbers.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_longer_compiled_run_is_the_plain_one(mode: str, adversary: str, seed: int) -> None:
    for setting in LONG:
        assert fast(mode, setting, adversary, seed) == plain(mode, setting, adversary, seed)
