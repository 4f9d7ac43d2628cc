"""The tighter report agrees with exact binomial sums, and never enters the ledger."""

import math
import sys
from fractions import Fraction

import pytest
from scipy import optimize, stats

from casemate.errors import Misconfigured
from casemate.privacy import Concentrated, Cost, Pure, epsilon_of
from casemate.privacy.cost import Unbounded, tighter_epsilon

MILLIONTH = Fraction(1, 10**6)


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
