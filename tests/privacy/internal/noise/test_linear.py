"""Widths of linear combinations: exact small cases never exceed the stated chance."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from casemate.privacy.noise import GaussianLaw, LaplaceLaw, Law, NoiseWeights, linear_width
from casemate.privacy.noise.linear import _gaussian_multiple
from casemate.privacy.noise.widths import excess_of_integers, log_laplace_moments

Floats = NDArray[np.float64]


def law_on_integers(law: Law, reach: int) -> Floats:
    """The exact law from -reach to reach."""
    x, scale = np.arange(-reach, reach + 1), float(law.scale)
    power = -(x**2) / (2 * scale**2) if isinstance(law, GaussianLaw) else -np.abs(x) / scale
    weights = np.exp(power)
    return np.asarray(weights / weights.sum())


def chance_beyond(law: Law, weights: list[int], width: float) -> float:
    """P(|a . X| > width) by convolution; weights are whole numbers."""
    reach = int(40 * float(law.scale)) + 40
    one, total = law_on_integers(law, reach), np.ones(1)
    for weight in weights:
        spaced = np.zeros(2 * reach * abs(weight) + 1)
        spaced[:: abs(weight)] = one
        total = np.convolve(total, spaced)
    middle = (total.size - 1) // 2
    inside = int(np.floor(width))
    return float(total[: middle - inside].sum() + total[middle + inside + 1 :].sum())


@pytest.mark.parametrize("scale", ["1/2", "1", "3", "8"])
@pytest.mark.parametrize("weights", [[1], [1, 1, 1], [3, 1], [5, 4, 2, 1]])
@pytest.mark.parametrize("law", [GaussianLaw, LaplaceLaw])
def test_no_combination_is_beyond_its_width_more_often_than_stated(
    scale: str, weights: list[int], law: type[Law]
) -> None:
    drawn = law(Fraction(scale))
    squares = float(sum(each**2 for each in weights))
    noise = [NoiseWeights(drawn, squares, float(max(weights)))]
    for chance in (0.3, 0.05, 1e-3, 1e-5):
        width = linear_width(noise, {drawn: len(weights)}, chance)
        assert chance_beyond(drawn, weights, width) <= chance
        if chance < 0.1 and law is GaussianLaw and scale in ("3", "8"):
            assert chance_beyond(drawn, weights, width / 1.3) > chance, "not much too wide either"


@pytest.mark.parametrize("scale", [20, 28, 40, 110])
def test_at_the_scales_of_budgets_it_costs_one_or_two_in_a_hundred_more_than_normal(
    scale: int,
) -> None:
    for side in (1e-3, 1e-5, 1e-7):
        found = _gaussian_multiple(((Fraction(scale), 2_000),), side)
        assert 1 <= found / stats.norm.isf(side) < 1.03


@pytest.mark.parametrize("scale", [0.7, 1.5, 3.0])
def test_independent_draws_with_a_little_normal_noise_have_nearly_normal_densities(
    scale: float,
) -> None:
    """The joint density is a product, and each of its factors is at most 1 + e times normal."""
    values = np.linspace(-4 * scale, 4 * scale, 801)
    x = np.arange(-60, 61)
    law = np.exp(-(x**2) / (2 * scale**2))
    law /= law.sum()
    for added in (0.05, 0.3, 1.0):
        smooth = np.sqrt(added) * scale
        density = (law * stats.norm.pdf(values[:, None], x, smooth)).sum(axis=1)
        normal = stats.norm.pdf(values, 0, scale * np.sqrt(1 + added))
        stated = 1 + excess_of_integers(scale**2 * added / (1 + added))
        assert (density <= stated * normal * (1 + 1e-12)).all()


def test_log_moments_of_laplace_noise_grow_faster_than_squares() -> None:
    for scale in (0.3, 1.0, 7.0):
        at = np.geomspace(1e-3, 0.99, 300) / scale
        assert (np.diff(log_laplace_moments(scale, at) / at**2) >= -1e-9 * scale**2).all()


def test_two_laws_at_once_share_the_chance() -> None:
    one, other = GaussianLaw(Fraction(10)), LaplaceLaw(Fraction(10))
    draws: dict[Law, int] = {one: 5, other: 5}
    both = linear_width([NoiseWeights(one, 1, 1), NoiseWeights(other, 1, 1)], draws, 0.1)
    alone = [linear_width([NoiseWeights(each, 1, 1)], draws, 0.05) for each in (one, other)]
    assert both == pytest.approx(sum(alone))


def test_nothing_random_is_within_nothing() -> None:
    assert linear_width([], {}, 0.05) == 0
    with pytest.raises(ValueError, match="chance"):
        linear_width([], {}, 1.0)
