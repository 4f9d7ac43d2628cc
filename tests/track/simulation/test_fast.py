"""Compiled runs are the plain ones, word for word and error for error."""

import numpy as np
import pytest

from casemate.track.adversary.compiled import compiled
from casemate.track.modes import MODES, make_engine
from casemate.track.setting import Run, Setting
from casemate.track.simulation.fast import fast_run
from casemate.track.simulation.plain import run_plain

ADVERSARIES = ("uniform", "zipf:1.5", "single-site", "stop-on-change", "group-hold-or-flush")
SHORT = (Setting(5, 0.1, 0.1, 1_500), Setting(1, 0.3, 0.1, 500))
LONG = (Setting(16, 0.2, 0.05, 6_000), Setting(7, 0.05, 0.1, 10_000))


def plain(mode: str, setting: Setting, adversary: str, seed: int) -> Run:
    one, two, three = np.random.default_rng(seed).spawn(3)
    engine = make_engine(mode, setting, three.random)
    chosen = compiled(adversary, setting.sites).as_adversary(one)
    return run_plain(setting, engine, chosen, two.random)


def fast(mode: str, setting: Setting, adversary: str, seed: int) -> Run:
    one, two, three = np.random.default_rng(seed).spawn(3)
    return fast_run(mode, setting, compiled(adversary, setting.sites), (one, two, three))


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_compiled_run_is_the_plain_one(mode: str, adversary: str, seed: int) -> None:
    for setting in SHORT:
        assert fast(mode, setting, adversary, seed) == plain(mode, setting, adversary, seed)


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", MODES)
def test_a_longer_compiled_run_is_the_plain_one(mode: str, adversary: str, seed: int) -> None:
    for setting in LONG:
        assert fast(mode, setting, adversary, seed) == plain(mode, setting, adversary, seed)
