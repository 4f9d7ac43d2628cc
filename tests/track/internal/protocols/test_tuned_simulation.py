import numpy as np
import pytest
from chance import assert_rate_at_most

from casemate.track.adversary.compiled import Rngs, named_adversary
from casemate.track.protocols.tuned.design import predicted_words
from casemate.track.protocols.tuned.simulation import simulate_robust_tuned
from casemate.track.protocols.tuned.tracker import RobustTuned
from casemate.track.setting import Run, Setting
from casemate.track.simulate.simulate import run_plain

ADVERSARIES = ["uniform", "zipf", "single-site", "stop-on-change", "group-hold-or-flush"]
CENTRED = {1024: 416_800, 4096: 1_384_212, 16_384: 4_403_467}


def rngs(seed: int) -> Rngs:
    one, two, three = np.random.default_rng(seed).spawn(3)
    return one, two, three


def fast(setting: Setting, adversary: str, seed: int) -> Run:
    return simulate_robust_tuned(setting, named_adversary(adversary, setting.sites), rngs(seed))


def slow(setting: Setting, adversary: str, seed: int) -> Run:
    who, where, noise = rngs(seed)
    s = setting
    engine = RobustTuned(s.sites, s.alpha, s.delta, noise.random)
    return run_plain(s, engine, named_adversary(adversary, s.sites).as_adversary(who), where.random)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("sites", [1, 3, 70])
def test_it_equals_the_run_over_real_sites_word_for_word(
    sites: int, adversary: str, seed: int
) -> None:
    setting = Setting(sites, 0.1, 0.05, 8_000)
    compiled_run, plain_run = fast(setting, adversary, seed), slow(setting, adversary, seed)
    assert compiled_run == plain_run
    assert compiled_run.rounds > 2


def test_a_run_that_ends_before_rounds_begin_sends_only_reports(seed: int) -> None:
    run = fast(Setting(100, 0.05, 0.01, 50), "uniform", seed)
    assert run.words_by_kind == {"report": 50, "call": 0, "answer": 0, "rule": 0}
    assert run.max_error_over_alpha == 0


@pytest.mark.theorem("001: Theorem 1")
@pytest.mark.parametrize("adversary", ["uniform", "stop-on-change", "group-hold-or-flush"])
def test_it_is_right_at_all_times_but_for_delta(adversary: str, seed: int) -> None:
    setting, runs = Setting(256, 0.05, 0.05, 60_000), 40
    errors = [fast(setting, adversary, seed + i).max_error_over_alpha for i in range(runs)]
    assert_rate_at_most(sum(error > 1 for error in errors), runs, setting.delta)
    with pytest.raises(AssertionError):
        assert_rate_at_most(sum(error > 0.3 for error in errors), runs, setting.delta)


def test_words_are_as_predicted(seed: int) -> None:
    setting = Setting(256, 0.02, 0.01, 2_000_000)
    run = fast(setting, "uniform", seed)
    predicted = predicted_words(256, 0.02, 0.01, 2e6)
    assert run.words == pytest.approx(predicted, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(("sites", "ratio"), [(1024, 0.80), (4096, 0.50), (16_384, 0.34)])
def test_many_sites_send_far_fewer_words_than_centred_windows(
    sites: int, ratio: float, seed: int
) -> None:
    run = fast(Setting(sites, 0.01, 0.01, 10**8), "uniform", seed)
    assert run.words <= ratio * CENTRED[sites]
    assert run.max_error_over_alpha < 1


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["stop-on-change", "group-hold-or-flush"])
def test_the_attacks_do_not_break_it(adversary: str, seed: int) -> None:
    run = fast(Setting(1024, 0.01, 0.01, 10**7), adversary, seed)
    assert run.max_error_over_alpha <= 1
