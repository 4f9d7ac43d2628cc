import numpy as np
import pytest
from chance import assert_rate_at_most

from casemate.track.adversary.compiled import Rngs, named_adversary
from casemate.track.protocols.robust.simulation import simulate_robust
from casemate.track.protocols.robust.theorem import constants, most_words, predicted_words
from casemate.track.protocols.robust.tracker import Robust
from casemate.track.setting import Run, Setting
from casemate.track.simulate.simulate import run_plain

ADVERSARIES = ["uniform", "zipf", "single-site", "stop-on-change", "group-hold-or-flush"]


def rngs(seed: int) -> Rngs:
    one, two, three = np.random.default_rng(seed).spawn(3)
    return one, two, three


def fast(setting: Setting, adversary: str, seed: int) -> Run:
    return simulate_robust(setting, named_adversary(adversary, setting.sites), rngs(seed))


def slow(setting: Setting, adversary: str, seed: int) -> Run:
    who, where, noise = rngs(seed)
    s = setting
    engine = Robust(s.sites, s.alpha, s.delta, s.items, noise.random)
    return run_plain(s, engine, named_adversary(adversary, s.sites).as_adversary(who), where.random)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("sites", [1, 3, 16, 50])
def test_it_equals_the_run_over_real_sites_word_for_word(
    sites: int, adversary: str, seed: int
) -> None:
    setting = Setting(sites, 0.4, 0.05, 12_000)
    compiled_run, plain_run = fast(setting, adversary, seed), slow(setting, adversary, seed)
    assert compiled_run == plain_run
    assert compiled_run.rounds > 2


@pytest.mark.parametrize("items", [1, 2, *range(200, 212)])
def test_it_equals_the_real_run_where_rounds_begin(items: int, seed: int) -> None:
    setting = Setting(4, 0.6, 0.05, items)
    assert 203 < constants(setting).begins_at < 209 or items < 3
    assert fast(setting, "uniform", seed) == slow(setting, "uniform", seed)


SMALL = Setting(256, 0.05, 0.01, 1_000_000)


@pytest.mark.theorem("001: Theorem 1")
@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_no_adversary_breaks_it_and_words_stay_below_the_bound(adversary: str, seed: int) -> None:
    for setting in (SMALL, Setting(100, 0.3, 0.01, 1_000_000)):
        run = fast(setting, adversary, seed)
        assert 0.1 < run.max_error_over_alpha < 0.6
        assert not run.violated
        s = setting
        assert run.words <= most_words(s.sites, s.alpha, s.delta, s.items)


def errors(adversary: str, seed: int, runs: int = 100) -> list[float]:
    """The largest errors of runs, each of its own."""
    setting = Setting(9, 0.4, 0.05, 20_000)
    seeds = np.random.default_rng(seed).integers(0, 2**62, runs).tolist()
    return [fast(setting, adversary, run).max_error_over_alpha for run in seeds]


@pytest.mark.theorem("001: Theorem 1")
@pytest.mark.parametrize("adversary", ["uniform", "stop-on-change", "group-hold-or-flush"])
def test_violations_are_rarer_than_delta(adversary: str, seed: int) -> None:
    found = errors(adversary, seed)
    assert_rate_at_most(sum(error > 1.0 for error in found), len(found), 0.05)


def test_a_quarter_of_the_error_would_not_be_kept(seed: int) -> None:
    """The twin: the same count sold with a quarter of alpha."""
    found = errors("uniform", seed)
    with pytest.raises(AssertionError):
        assert_rate_at_most(sum(error > 0.25 for error in found), len(found), 0.05)


@pytest.mark.theorem("001: Lemma 7")
def test_the_error_is_within_reach_of_what_is_promised(seed: int) -> None:
    """The lag alone, T of 8 C sqrt(k) bits, is a quarter of alpha."""
    assert 0.25 < fast(SMALL, "uniform", seed).max_error_over_alpha < 0.6


def test_words_are_as_predicted(seed: int) -> None:
    for sites, alpha in [(256, 0.05), (64, 0.1), (1024, 0.3)]:
        run = fast(Setting(sites, alpha, 0.01, 1_000_000), "uniform", seed)
        assert run.words == pytest.approx(predicted_words(sites, alpha, 0.01, 10**6), rel=0.05)


@pytest.mark.theorem("001: Algorithm 2")
def test_a_round_takes_two_c_k_bits(seed: int) -> None:
    """Equation (4): C k <= bits; their mean is 2 C k."""
    t = constants(SMALL)
    run = fast(SMALL, "uniform", seed)
    bits = (run.words_by_kind["report"] - t.begins_at) / (run.rounds - 0.5)
    assert bits == pytest.approx(2 * t.factor * SMALL.sites, rel=0.05)


def test_one_busy_site_ends_rounds_early(seed: int) -> None:
    busy, even = fast(SMALL, "single-site", seed), fast(SMALL, "uniform", seed)
    assert 1.5 * even.rounds < busy.rounds < 2.2 * even.rounds


@pytest.mark.slow
@pytest.mark.theorem("001: Theorem 1")
def test_the_reference_run_takes_two_and_a_half_million_words(seed: int) -> None:
    run = fast(Setting(1024, 0.01, 0.01, 10**8), "uniform", seed)
    assert run.words == pytest.approx(2.52e6, rel=0.01)
    assert 0.3 < run.max_error_over_alpha < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["stop-on-change", "group-hold-or-flush"])
def test_neither_attack_breaks_it_at_the_reference_size(adversary: str, seed: int) -> None:
    run = fast(Setting(1024, 0.01, 0.01, 10**8), adversary, seed)
    assert run.max_error_over_alpha < 0.6
