"""Compiled runs are those over real sites, servers and engines; and their figures."""

import numpy as np
import pytest

from casemate.track.adversary.compiled import Rngs, named_adversary
from casemate.track.modes import make_engine
from casemate.track.setting import Run, Setting
from casemate.track.simulate.simulate import fast_run, run_plain

MODES = ("exact", "deterministic", "deterministic-paper", "allocated", "auto")
ADVERSARIES = (
    "uniform",
    "zipf",
    "zipf:1.5",
    "single-site",
    "stop-on-change",
    "group-hold-or-flush",
)


def rngs(seed: int) -> Rngs:
    one, two, three = np.random.default_rng(seed).spawn(3)
    return one, two, three


def simulated(mode: str, setting: Setting, adversary: str, seed: int = 0) -> Run:
    return fast_run(mode, setting, named_adversary(adversary, setting.sites), rngs(seed))


def plainly(mode: str, setting: Setting, adversary: str, seed: int) -> Run:
    adversary_rng, site_rng, _ = rngs(seed)
    sender = named_adversary(adversary, setting.sites).as_adversary(adversary_rng)
    return run_plain(setting, make_engine(mode, setting), sender, site_rng.random)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "setting", [Setting(1, 0.3, 0.1, 200), Setting(9, 0.1, 0.1, 4000), Setting(130, 0.2, 0.2, 9000)]
)
def test_a_compiled_run_is_the_plain_one_word_for_word(
    mode: str, adversary: str, setting: Setting, seed: int
) -> None:
    assert simulated(mode, setting, adversary, seed) == plainly(mode, setting, adversary, seed)


def test_a_compiled_run_in_which_all_sites_are_sampled_is_the_plain_one(seed: int) -> None:
    setting = Setting(512, 0.05, 0.2, 60_000)
    run = simulated("auto", setting, "uniform", seed)
    assert run == plainly("auto", setting, "uniform", seed)
    assert run.rounds > 1


def test_a_compiled_run_in_which_light_sites_are_sampled_is_the_plain_one(seed: int) -> None:
    setting = Setting(600, 0.1, 0.2, 80_000)
    run = simulated("auto", setting, "zipf", seed)
    assert run == plainly("auto", setting, "zipf", seed)
    assert run.rounds == 0
    assert run.words_by_kind["answer"] > 2 * setting.sites  # some were called again and again


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", ["deterministic", "deterministic-paper", "allocated"])
def test_no_adversary_pushes_windows_past_alpha(mode: str, adversary: str, seed: int) -> None:
    for sites, alpha in ((16, 0.05), (64, 0.01)):
        run = simulated(mode, Setting(sites, alpha, items=300_000), adversary, seed)
        assert run.max_error_over_alpha <= 1.0


def test_everything_reported_is_one_word_an_item() -> None:
    run = simulated("exact", Setting(10, 0.1, items=12_345), "uniform")
    assert (run.words, run.max_error_over_alpha) == (12_345, 0.0)


@pytest.mark.parametrize("adversary", ["uniform", "zipf", "zipf:1.5", "single-site"])
@pytest.mark.parametrize(
    ("sites", "alpha"), [(2, 0.01), (16, 0.01), (64, 0.05), (256, 0.02), (1024, 0.05), (16384, 0.1)]
)
def test_auto_is_about_as_good_as_the_better_of_windows_and_sampling(
    sites: int, alpha: float, adversary: str
) -> None:
    setting = Setting(sites, alpha, items=1_000_000)
    better = min(simulated(m, setting, adversary).words for m in ("deterministic", "sampled"))
    assert simulated("auto", setting, adversary).words <= 1.05 * better


def test_where_sites_are_many_sampling_begins_in_time_and_ends_with_the_items() -> None:
    setting = Setting(4096, 0.1, 0.05, 1_000_000)
    sampled, auto = (simulated(m, setting, "uniform") for m in ("sampled", "auto"))
    assert auto.words < sampled.words
    assert auto.rounds <= sampled.rounds


@pytest.mark.parametrize("seed", range(5))
def test_rates_that_were_set_by_a_few_items_are_mended_later(seed: int) -> None:
    setting = Setting(2, 0.01, items=1_000_000)
    auto, centred = (simulated(m, setting, "zipf", seed).words for m in ("auto", "deterministic"))
    assert auto <= 1.03 * centred


def test_on_skewed_loads_auto_is_much_better_than_both() -> None:
    setting = Setting(256, 0.02, items=1_000_000)
    for adversary, ratio in (("zipf", 0.8), ("zipf:1.5", 0.5)):
        better = min(simulated(m, setting, adversary).words for m in ("deterministic", "sampled"))
        assert simulated("auto", setting, adversary).words <= ratio * better


@pytest.mark.slow
def test_the_figures_of_a_thousand_sites() -> None:
    setting = Setting(1024, 0.01, 0.01, 10**8)
    words = {m: simulated(m, setting, "uniform").words for m in (*MODES[1:], "sampled")}
    assert words["deterministic-paper"] == pytest.approx(766_400, rel=0.002)
    assert words["deterministic"] == pytest.approx(416_800, rel=0.002)
    assert words["sampled"] <= 0.76 * words["deterministic"]
    assert words["auto"] <= 1.05 * words["sampled"]
    for adversary in ("zipf", "zipf:1.5", "single-site"):
        better = min(simulated(m, setting, adversary).words for m in ("deterministic", "sampled"))
        assert simulated("auto", setting, adversary).words <= 1.05 * better
