import math

import numpy as np
import pytest
from attack.kalman_runs import error, median_limit, world

from casemate.attack.one_bit import OneBitKalman
from casemate.attack.one_bit.laws import (
    Cauchy,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    Logistic,
    StudentT,
    Triangular,
    Uniform,
    effective_scale,
)
from casemate.attack.one_bit.scale_bank import DITHER_DEVIATIONS
from casemate.attack.one_bit.streams import generic

SHAPES: list[Law] = [
    Uniform(1.0),
    Gaussian(1.0),
    Laplace(1.0),
    Cauchy(1.0),
    Logistic(1.0),
    StudentT(3, 1.0),
    Triangular(1.0),
    Exponential(1.0),
]


def scaled(law: Law, factor: float) -> Law:
    from dataclasses import fields, replace

    name = next(f.name for f in fields(law) if f.name not in {"df"})  # type: ignore[arg-type]  # laws are dataclasses
    return replace(law, **{name: factor})  # type: ignore[type-var]  # laws are dataclasses


def test_the_scale_that_is_looked_for_is_the_slope_of_the_cdf_at_0() -> None:
    """The rise over .3 deviations to each side, which a filter with the fitted scale divides by."""
    for law in SHAPES:
        wide = DITHER_DEVIATIONS * effective_scale(law)
        slope = float(law.cdf(wide) - law.cdf(-wide)) / (2 * wide)
        assert 0.85 < slope / law.density_at_median <= 1.01


@pytest.mark.parametrize("factor", [30.0, 1e-3])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda law: type(law).__name__)
def test_the_scale_is_found_over_five_decades(shape: Law, factor: float, seed: int) -> None:
    rng, law = np.random.default_rng(seed), scaled(shape, factor)
    stream = generic(rng, 32, 4, 20_000)
    learner = OneBitKalman(32, stream.basis, random=rng)
    found = error(learner, world(stream, law, rng, rng.random(32)))
    assert learner.settled
    assert 0.6 < learner.scale / effective_scale(law) < 1.7
    assert math.isfinite(found)


@pytest.mark.parametrize("shape", SHAPES[::2], ids=lambda law: type(law).__name__)
def test_not_to_know_the_scale_costs_little(shape: Law, seed: int) -> None:
    rng, law = np.random.default_rng(seed), scaled(shape, 3.0)
    errors, limits = [], []
    for _ in range(6):
        stream = generic(rng, 32, 4, 20_000)
        at = world(stream, law, rng, rng.random(32))
        errors.append(error(OneBitKalman(32, stream.basis, random=rng), at))
        limits.append(median_limit(stream, law))
    assert np.mean(errors) < 1.35 * np.mean(limits)


def test_one_filter_with_a_scale_out_of_the_air_is_far_worse(seed: int) -> None:
    rng, law, errors, limits = np.random.default_rng(seed), Laplace(3.0), [], []
    for _ in range(6):
        stream = generic(rng, 32, 4, 20_000)
        at = world(stream, law, rng, rng.random(32))
        errors.append(error(OneBitKalman(32, stream.basis, 0.2), at))
        limits.append(median_limit(stream, law))
    assert np.mean(errors) > 1.35 * np.mean(limits)


@pytest.mark.parametrize("width", [1e-7, 1e3])
def test_scales_beyond_the_last_member_are_reached(width: float, seed: int) -> None:
    rng, law = np.random.default_rng(seed), Gaussian(width)
    stream = generic(rng, 8, 2, 20_000)
    learner = OneBitKalman(8, stream.basis, random=rng)
    learner.follow(stream.coordinates, world(stream, law, rng, rng.random(8)).noisy)
    assert 0.3 < learner.scale / width < 3
