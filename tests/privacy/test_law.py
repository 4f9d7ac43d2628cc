from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from casemate.privacy.noise import GaussianLaw, LaplaceLaw, Sources

amounts = st.fractions(min_value=Fraction(1, 10**6), max_value=100)
ROUNDING = 1 + Fraction(1, 2**21)  # of a scale to short integers


@given(amounts, amounts)
def test_a_gaussian_within_rho_costs_at_most_that_and_wastes_little(
    rho: Fraction, squared: Fraction
) -> None:
    law = GaussianLaw.within(rho, squared)
    assert law.cost.rho <= rho
    less = GaussianLaw(law.scale / ROUNDING - Fraction(2, 2**30), squared)
    assert less.cost.rho > rho


@given(amounts, amounts)
def test_a_laplace_within_epsilon_costs_at_most_that_and_wastes_little(
    epsilon: Fraction, sensitivity: Fraction
) -> None:
    law = LaplaceLaw.within(epsilon, sensitivity)
    assert law.cost.epsilon <= epsilon <= law.cost.epsilon * ROUNDING


def test_each_law_draws_from_its_own_source_at_its_scale() -> None:
    def telling(number: int) -> object:
        def noise(scale: Fraction, size: int) -> NDArray[np.int64]:
            return np.full(size, number * int(scale))

        return noise

    sources = Sources(telling(1), telling(-1))  # type: ignore[arg-type]  # the type of a Noise
    assert sources.draw(GaussianLaw(Fraction(5)), 2) == (5, 5)
    assert sources.draw(LaplaceLaw(Fraction(7)), 3) == (-7, -7, -7)
    assert all(type(value) is int for value in Sources().draw(LaplaceLaw(Fraction(7)), 3))
