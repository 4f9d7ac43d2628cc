"""How often whole runs are ever wrong, for the protocols that promise it seldom happens."""

import numpy as np
import pytest
from chance import assert_rate_at_most

from casemate.track.adversary.compiled import named_adversary
from casemate.track.protocols.mixed.mixed import automatic
from casemate.track.protocols.mixed.simulation import simulate_tallied
from casemate.track.setting import Run, Setting
from casemate.track.simulate.simulate import fast_run

RUNS = 400


def runs_of(mode: str, setting: Setting, adversary: str, seed: int) -> list[Run]:
    found = []
    for rng in np.random.default_rng(seed).spawn(RUNS):
        one, two, three = rng.spawn(3)
        against = named_adversary(adversary, setting.sites)
        found.append(fast_run(mode, setting, against, (one, two, three)))
    return found


def wrong(runs: list[Run]) -> int:
    return sum(run.violated for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["uniform", "single-site", "stop-on-change"])
def test_sampled_rounds_are_ever_wrong_in_at_most_delta_of_runs(adversary: str, seed: int) -> None:
    runs = runs_of("sampled", Setting(64, 0.05, 0.05, 300_000), adversary, seed)
    assert_rate_at_most(wrong(runs), RUNS, 0.05)
    loose = runs_of("sampled", Setting(64, 0.05, 0.25, 300_000), adversary, seed)
    with pytest.raises(AssertionError, match="has probability"):
        assert_rate_at_most(wrong(loose), RUNS, 0.05)


def runs_of_auto(delta: float, adversary: str, seed: int) -> tuple[list[Run], list[float]]:
    """The runs, and what each says that it spent of delta."""
    setting, runs, spent = Setting(256, 0.1, delta, 30_000), [], []
    for rng in np.random.default_rng(seed).spawn(RUNS):
        one, two, three = rng.spawn(3)
        engine = automatic(256, 0.1, delta, 30_000)
        runs.append(
            simulate_tallied(setting, engine, named_adversary(adversary, 256), (one, two, three))
        )
        spent.append(1.0 - engine.estimate().confidence)
    return runs, spent


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["uniform", "zipf", "stop-on-change"])
def test_auto_is_ever_wrong_in_at_most_delta_of_runs(adversary: str, seed: int) -> None:
    runs, spent = runs_of_auto(0.05, adversary, seed)
    assert max(spent) <= 0.05
    assert sum(each > 0 for each in spent) > RUNS / 2, "it must sample to be put to the test"
    assert_rate_at_most(wrong(runs), RUNS, 0.05)


@pytest.mark.slow
def test_auto_made_for_twelve_times_delta_is_found_out(seed: int) -> None:
    loose, _ = runs_of_auto(0.6, "uniform", seed)
    with pytest.raises(AssertionError, match="has probability"):
        assert_rate_at_most(wrong(loose), RUNS, 0.05)
