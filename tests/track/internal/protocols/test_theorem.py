import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.robust_words import laplace_sum, most_words

from casemate.track.protocols.robust.theorem import (
    RobustConstants,
    _smooth_rounds,
    _whole_rounds,
    constants,
    laws_of_sums,
    most_rounds,
    predicted_words,
)
from casemate.track.setting import Setting

settings = st.builds(
    Setting,
    sites=st.integers(1, 5000),
    alpha=st.floats(0.001, 0.9),
    delta=st.floats(1e-9, 0.9),
    items=st.integers(1, 10**10),
)


def tracker(sites: int, alpha: float, items: int = 10**8) -> RobustConstants:
    return constants(Setting(sites, alpha, 0.01, items))


@pytest.mark.theorem("001: Theorem 1")
@pytest.mark.parametrize(
    ("sites", "alpha", "factor", "epsilon", "start"),
    [
        (16, 0.05, 6.4, 1.59, 4074),
        (64, 0.05, 8.0, 1.00, 10273),
        (256, 0.02, 10.0, 0.62, 63826),
        (1024, 0.01, 11.9, 0.37, 305369),
        (4096, 0.01, 13.7, 0.21, 701933),
        (16384, 0.005, 15.7, 0.12, 3224510),
    ],
)
def test_the_constants_are_those_of_the_source(
    sites: int, alpha: float, factor: float, epsilon: float, start: int
) -> None:
    t = tracker(sites, alpha)
    assert round(t.factor, 1) == factor
    assert t.epsilon == pytest.approx(epsilon, abs=0.006)
    assert round(t.start) == start
    assert t.threshold == pytest.approx(2 * t.factor * math.sqrt(sites))
    assert t.phases == math.isqrt(sites)
    assert t.growth == pytest.approx(1 + alpha * math.sqrt(sites) / 4)
    assert t.blocks == math.ceil(t.factor * sites)


@given(settings)
def test_c_satisfies_both_of_its_definitions(setting: Setting) -> None:
    """That of Section 4 with beta, and that of Theorem 1 with the rounds in place of O(.)."""
    t, root = constants(setting), math.sqrt(setting.sites)
    scale = math.log(root) ** 1.5 + 1
    assert t.factor**2 == pytest.approx(scale * math.log(8 * root / t.beta))
    assert root * t.beta * t.rounds == pytest.approx(setting.delta)
    assert t.factor**2 == pytest.approx(
        scale * math.log(8 * setting.sites * t.rounds / setting.delta)
    )


@given(settings)
def test_rounds_begin_when_a_block_holds_two_items(setting: Setting) -> None:
    t = constants(setting)
    assert t.block_size(t.begins_at) == 2
    assert t.block_size(t.begins_at - 1) < 2
    assert t.block_size(10**9) * t.budget <= setting.alpha * 10**9 * (1 + 1e-9)


# Communication ------------------------------------------------------------------------------------


def test_before_rounds_begin_every_item_is_a_word() -> None:
    assert predicted_words(Setting(1024, 0.01, 0.01, 1000)) == 1000
    assert predicted_words(Setting(1, 0.5, 0.5, 1)) == 1


@pytest.mark.parametrize(("sites", "alpha"), [(4, 0.0005), (64, 0.001), (1024, 0.0004)])
def test_many_short_rounds_may_be_integrated(sites: int, alpha: float) -> None:
    t = constants(Setting(sites, alpha, 0.01, 10**9))
    bits = t.phases * (t.threshold + 0.5)
    assert _smooth_rounds(t, bits) == pytest.approx(_whole_rounds(t, bits), rel=0.02)


@given(settings)
def test_the_prediction_is_below_the_bound(setting: Setting) -> None:
    assert predicted_words(setting) <= most_words(setting)


@given(settings)
def test_the_slowest_rounds_reach_the_horizon(setting: Setting) -> None:
    """Every round brings Ck full blocks and no more."""
    t, count, rounds = constants(setting), constants(setting).begins_at, 1
    most = most_rounds(t)
    while count <= setting.items and rounds <= most < 20_000:
        count += math.floor(t.factor * setting.sites * t.block_size(count))
        rounds += count <= setting.items
    assert rounds <= most


@pytest.mark.parametrize("summands", [1, 2, 5, 9])
@pytest.mark.parametrize("failure", [0.01, 1e-3, 1e-9])
def test_a_sum_of_noise_stays_within_its_bound_which_is_not_vacuous(
    summands: int, failure: float
) -> None:
    scale = 200.0
    law = laws_of_sums(scale, summands)[-1]
    values = np.arange(len(law)) - len(law) // 2
    bound = scale * laplace_sum(summands, failure)
    assert law[values > bound].sum() <= failure
    assert law[values > bound / 2].sum() > failure
