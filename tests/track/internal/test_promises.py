"""What every protocol promises, in simulated runs: its words, its errors, and who breaks it."""

from dataclasses import replace

import pytest
from chance import assert_rate_at_most
from oracles.robust_words import most_words

from casemate.track.modes import MODES
from casemate.track.protocols.robust_theorem import constants
from casemate.track.setting import Run, Setting
from casemate.track.simulate.runs import simulate

ADVERSARIES = ("uniform", "zipf:1.5", "single-site", "stop-on-change", "group-hold-or-flush")
SMALL = Setting(256, 0.05, 0.01, 1_000_000)


def simulated(mode: str, setting: Setting, adversary: str = "uniform", seed: int = 0) -> Run:
    return simulate(setting, mode, adversary, seed=seed).runs[0]


def errors(mode: str, setting: Setting, adversary: str, runs: int, seed: int) -> list[float]:
    """The largest errors of runs, each of its own, over alpha."""
    found = simulate(setting, mode, adversary, runs=runs, seed=seed)
    return [run.max_error_over_alpha for run in found.runs]


# Words


@pytest.mark.parametrize(
    ("mode", "within"),
    [
        ("exact", 0.0),
        ("deterministic", 0.01),
        ("deterministic-paper", 0.01),
        ("allocated", 0.02),
        ("sampled", 0.06),
        ("robust", 0.05),
        ("robust-tuned", 0.06),
        ("huang-yi-zhang", 0.06),
        ("block", 0.06),
    ],
)
def test_even_loads_cost_what_is_predicted(mode: str, within: float, seed: int) -> None:
    for setting in (Setting(32, 0.02, 0.01, 1_000_000), SMALL):
        run = simulated(mode, setting, seed=seed)
        assert run.words == pytest.approx(MODES[mode].words(setting), rel=within)


@pytest.mark.parametrize("mode", MODES)
def test_a_word_an_item_before_reports_stand_for_more(mode: str, seed: int) -> None:
    setting = Setting(1024, 0.02, 0.01, 800)
    run = simulated(mode, setting, seed=seed)
    assert run.words == 800 and MODES[mode].words(setting) == pytest.approx(800)
    assert run.words_by_kind == {"report": 800, "call": 0, "answer": 0, "rule": 0}
    assert run.max_error_over_alpha == 0.0


@pytest.mark.parametrize("adversary", ["uniform", "zipf", "zipf:1.5", "single-site"])
@pytest.mark.parametrize(("sites", "alpha"), [(2, 0.01), (64, 0.05), (4096, 0.1)])
def test_auto_is_about_as_good_as_the_better_of_windows_and_sampling(
    sites: int, alpha: float, adversary: str
) -> None:
    setting = Setting(sites, alpha, items=300_000)
    better = min(simulated(m, setting, adversary).words for m in ("deterministic", "sampled"))
    assert simulated("auto", setting, adversary).words <= 1.05 * better


def test_on_skewed_loads_auto_is_much_better_than_both() -> None:
    setting = Setting(256, 0.02, items=1_000_000)
    for adversary, ratio in (("zipf", 0.8), ("zipf:1.5", 0.5)):
        better = min(simulated(m, setting, adversary).words for m in ("deterministic", "sampled"))
        assert simulated("auto", setting, adversary).words <= ratio * better
    setting = Setting(64, 0.05, items=100_000)
    centred, allocated = (
        simulated(m, setting, "zipf:1.5").words for m in ("deterministic", "allocated")
    )
    assert allocated < 0.75 * centred


@pytest.mark.theorem("001: Algorithm 2")
def test_a_round_takes_two_c_k_bits(seed: int) -> None:
    """Equation (4): C k <= bits; their mean is 2 C k."""
    t, run = constants(SMALL), simulated("robust", SMALL, seed=seed)
    bits = (run.words_by_kind["report"] - t.begins_at) / (run.rounds - 0.5)
    assert bits == pytest.approx(2 * t.factor * SMALL.sites, rel=0.05)
    busy = simulated("robust", SMALL, "single-site", seed)  # one site ends rounds early
    assert 1.5 * run.rounds < busy.rounds < 2.2 * run.rounds


# Errors


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("mode", ["deterministic", "deterministic-paper", "allocated"])
def test_no_adversary_pushes_windows_past_alpha(mode: str, adversary: str, seed: int) -> None:
    for sites, alpha in ((16, 0.05), (64, 0.01)):
        run = simulated(mode, Setting(sites, alpha, items=300_000), adversary, seed)
        assert run.max_error_over_alpha <= 1.0


@pytest.mark.theorem("001: Theorem 1")
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_no_adversary_breaks_it_and_words_stay_below_the_bound(adversary: str, seed: int) -> None:
    for setting in (SMALL, Setting(100, 0.3, 0.01, 1_000_000)):
        run = simulated("robust", setting, adversary, seed)
        assert 0.1 < run.max_error_over_alpha < 0.6
        assert run.words <= most_words(setting)


@pytest.mark.theorem("001: Lemma 7")
def test_the_error_is_within_reach_of_what_is_promised(seed: int) -> None:
    """The lag alone, T of 8 C sqrt(k) bits, is a quarter of alpha."""
    assert 0.25 < simulated("robust", SMALL, seed=seed).max_error_over_alpha < 0.6


@pytest.mark.theorem("001: Theorem 1")
@pytest.mark.parametrize("adversary", ["uniform", "stop-on-change", "group-hold-or-flush"])
@pytest.mark.parametrize(
    ("mode", "setting", "runs", "boast"),
    [
        ("robust", Setting(9, 0.4, 0.05, 20_000), 50, 0.25),
        ("robust-tuned", replace(SMALL, items=40_000), 30, 0.3),
    ],
)
def test_violations_are_rarer_than_delta(
    *, mode: str, setting: Setting, runs: int, boast: float, adversary: str, seed: int
) -> None:
    """The twin is the same count sold with a part of alpha."""
    found = errors(mode, setting, adversary, runs, seed)
    assert_rate_at_most(sum(error > 1 for error in found), runs, setting.delta)
    with pytest.raises(AssertionError):
        assert_rate_at_most(sum(error > boast for error in found), runs, setting.delta)


def wrong(setting: Setting, adversary: str, runs: int, seed: int) -> int:
    return sum(error > 1 for error in errors("sampled", setting, adversary, runs, seed))


@pytest.mark.parametrize("adversary", ["uniform", "single-site", "stop-on-change"])
def test_at_most_delta_of_all_sampled_runs_are_ever_wrong(adversary: str, seed: int) -> None:
    found = wrong(Setting(16, 0.1, 0.05, 20_000), adversary, 150, seed)
    assert_rate_at_most(found, 150, 0.05)
    assert found > 0 or adversary != "uniform", "the bound is true but says nothing"


def test_runs_made_for_ten_times_delta_are_found_out(seed: int) -> None:
    found = wrong(Setting(16, 0.1, 0.5, 20_000), "stop-on-change", 150, seed)
    with pytest.raises(AssertionError, match="has probability"):
        assert_rate_at_most(found, 150, 0.05)


@pytest.mark.parametrize(("mode", "least"), [("huang-yi-zhang", 3.2), ("block", 4.0)])
def test_what_items_that_do_not_look_seldom_do_stop_on_change_always_does(
    mode: str, least: float, seed: int
) -> None:
    setting = Setting(256, 0.02, items=200_000)
    unseen = errors(mode, setting, "uniform", 20, seed)
    assert_rate_at_most(sum(error > 1 for error in unseen), 20, 0.05)
    assert min(unseen) > 0.2  # they do err
    attacked = errors(mode, setting, "stop-on-change", 10, seed)
    assert least < min(attacked) and max(attacked) < 2 * least


# Large


@pytest.mark.slow
def test_the_figures_of_a_thousand_sites() -> None:
    setting = Setting(1024, 0.01, 0.01, 10**8)
    modes = ("deterministic", "deterministic-paper", "allocated", "auto", "sampled")
    words = {m: simulated(m, setting).words for m in modes}
    assert words["deterministic-paper"] == pytest.approx(766_400, rel=0.002)
    assert words["deterministic"] == pytest.approx(416_800, rel=0.002)
    assert words["sampled"] <= 0.76 * words["deterministic"]
    assert words["auto"] <= 1.05 * words["sampled"]
    for adversary in ("zipf", "zipf:1.5", "single-site"):
        better = min(simulated(m, setting, adversary).words for m in ("deterministic", "sampled"))
        assert simulated("auto", setting, adversary).words <= 1.05 * better


@pytest.mark.slow
@pytest.mark.theorem("001: Theorem 1")
def test_the_reference_run_takes_two_and_a_half_million_words(seed: int) -> None:
    run = simulated("robust", Setting(1024, 0.01, 0.01, 10**8), seed=seed)
    assert run.words == pytest.approx(2.52e6, rel=0.01)
    assert 0.3 < run.max_error_over_alpha < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sites", "ratio", "centred"),
    [(1024, 0.80, 416_800), (4096, 0.50, 1_384_212), (16_384, 0.34, 4_403_467)],
)
def test_many_sites_send_far_fewer_words_than_centred_windows(
    sites: int, ratio: float, centred: int, seed: int
) -> None:
    run = simulated("robust-tuned", Setting(sites, 0.01, 0.01, 10**8), seed=seed)
    assert run.words <= ratio * centred
    assert run.max_error_over_alpha < 1
