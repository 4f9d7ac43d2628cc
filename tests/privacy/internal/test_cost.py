"""Costs, their prices, the conversion against a slow search in 80 digits, and a tighter report."""

import math
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from casemate.errors import Misconfigured
from casemate.privacy import Concentrated, Cost, Currency, Pure, epsilon_of, price, rho_of
from casemate.privacy.cost import Unbounded, tighter_epsilon

MILLIONTH = Fraction(1, 10**6)
epsilons = st.fractions(Fraction(1, 10**4), 50, max_denominator=10**6)
rhos = st.fractions(Fraction(1, 10**8), 20, max_denominator=10**9)
deltas = st.integers(1, 40).flatmap(
    lambda exponent: st.integers(1, 9).map(lambda digit: Fraction(digit, 10**exponent))
)


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def excess(rho: Fraction, epsilon: Fraction, delta: Fraction) -> Decimal:
    """ln of (the formula's infimum over alpha) / delta, in 60 digits: at most 0 is a true promise.

    The logarithm of the formula is convex in alpha; bisection finds where its slope is 0.
    """
    with localcontext() as context:
        context.prec = 60
        r, e = decimal(rho), decimal(epsilon)
        low, high = Decimal(-30), Decimal(60)
        for _ in range(110):
            t = ((low + high) / 2).exp()
            rising = (2 * t + 1) * r - e + (t / (1 + t)).ln() > 0
            low, high = (low, (low + high) / 2) if rising else ((low + high) / 2, high)
        t = low.exp()
        alpha = 1 + t
        log_formula = t * (alpha * r - e) - t.ln() + alpha * (1 - 1 / alpha).ln()
        return log_formula - decimal(delta).ln()


# Exactly true ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "epsilon", "rho"),
    [
        (Pure(Fraction(3, 10)), Fraction(3, 10), Fraction(9, 200)),
        (Concentrated(Fraction(1, 7)), None, Fraction(1, 7)),
        (Concentrated(Fraction(0)), 0, 0),  # says nothing at all
    ],
)
def test_a_pure_cost_is_worth_half_its_square_and_a_concentrated_one_has_no_epsilon(
    cost: Pure | Concentrated, epsilon: Fraction | None, rho: Fraction
) -> None:
    assert price(cost, Currency.EPSILON) == epsilon
    assert price(cost, Currency.RHO) == rho


DUST = Decimal("1e-50")  # what 60 digits cannot tell apart
TRIFLE = Fraction(1, 10**12)


@settings(max_examples=15)
@given(rhos, deltas)
def test_epsilon_is_never_too_small_and_not_loose(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_of(rho, delta)
    assert excess(rho, epsilon, delta) <= DUST
    assert epsilon == 0 or excess(rho, epsilon * (1 - TRIFLE), delta) > 0


@settings(max_examples=15)
@given(epsilons, deltas)
def test_rho_is_never_too_large_and_not_loose(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_of(epsilon, delta)
    assert excess(rho, epsilon, delta) <= DUST
    assert excess(rho * (1 + TRIFLE), epsilon, delta) > 0


def test_the_tests_above_would_notice_the_simpler_conversion() -> None:
    """rho + 2 sqrt(rho ln(1/delta)) is true and loose: the second half of the test catches it."""
    rho, loose = Fraction(1, 50), Fraction(0.02 + 2 * math.sqrt(0.02 * math.log(1e6)))
    assert excess(rho, loose * (1 - TRIFLE), MILLIONTH) < 0


def test_the_tests_above_would_notice_rounding_the_wrong_way() -> None:
    epsilon = epsilon_of(Fraction(1, 50), MILLIONTH)
    assert excess(Fraction(1, 50), epsilon - Fraction(1, 10**28), MILLIONTH) > DUST


@given(epsilons, deltas)
def test_there_and_back_stays_within_the_budget_and_loses_nothing(
    epsilon: Fraction, delta: Fraction
) -> None:
    back = epsilon_of(rho_of(epsilon, delta), delta)
    assert epsilon - Fraction(1, 10**15) <= back <= epsilon


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 10**30), Fraction(10**6)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**400), Fraction(1, 2), 1 - Fraction(1, 10**40)])
def test_extreme_budgets_convert(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_of(epsilon, delta)
    assert rho >= 0
    assert epsilon_of(rho, delta) <= max(epsilon, Fraction(1, 10**50))


@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(1, 50), Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**9), MILLIONTH, Fraction(1, 100)])
def test_the_gaussian_mechanism_keeps_what_the_conversion_promises(
    rho: Fraction, delta: Fraction
) -> None:
    """The exact delta of Gaussian noise with 1/(2 sigma^2) = rho, from its distribution."""
    sigma, epsilon = 1 / math.sqrt(2 * rho), float(epsilon_of(rho, delta))
    exact = stats.norm.cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * stats.norm.cdf(
        -0.5 / sigma - epsilon * sigma
    )
    assert 0.05 * delta < exact < delta


# The tighter report, which never enters the ledger ---------------------------------------------


def optimal_epsilon(epsilon: float, times: int, delta: float) -> float:
    """Randomised response, many times: delta is a sum over the number of true answers."""
    truth = 1 / (1 + math.exp(-epsilon))

    def excess(total: float) -> float:
        gaps = [
            float(stats.binom.pmf(right, times, truth))
            - math.exp(total) * float(stats.binom.pmf(right, times, 1 - truth))
            for right in range(times + 1)
        ]
        return sum(gap for gap in gaps if gap > 0) - delta

    return float(optimize.brentq(excess, 0, epsilon * times))


def test_without_the_library_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(Misconfigured, match=r"install casemate\[accounting\]"):
        tighter_epsilon([Pure(Fraction(1))], MILLIONTH)


def test_an_answer_without_noise_has_no_epsilon() -> None:
    assert tighter_epsilon([Pure(Fraction(1)), Unbounded("exact")], MILLIONTH) == math.inf


@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 10), (0.0457, 30), (0.0239, 100)])
def test_pure_costs_compose_optimally(epsilon: float, times: int) -> None:
    pytest.importorskip("dp_accounting")
    report = tighter_epsilon([Pure(Fraction(epsilon))] * times, MILLIONTH)
    exact = optimal_epsilon(epsilon, times, 1e-6)
    assert exact - 1e-6 <= report <= 1.01 * exact


def test_the_report_is_never_looser_than_the_ledger() -> None:
    pytest.importorskip("dp_accounting")
    costs: list[Cost] = [Concentrated(Fraction(1, 100)), *[Pure(Fraction(1, 20))] * 8]
    ledger = epsilon_of(Fraction(1, 100) + 8 * Fraction(1, 800), MILLIONTH)
    assert 0 < tighter_epsilon(costs, MILLIONTH) <= ledger
    assert tighter_epsilon([], MILLIONTH) == 0
