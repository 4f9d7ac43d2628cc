"""Amounts of privacy as an answer prints them."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from casemate.answer.answer import Spending
from casemate.privacy import epsilon_of
from casemate.privacy.ledger import Terms

DELTA = Fraction(1, 10**6)


def terms(delta: Fraction) -> Terms:
    return Terms.of(
        dataset="d",
        policy="p",
        neighbours="add-remove",
        protects="person",
        epsilon=Fraction(1),
        delta=delta,
    )


@given(st.fractions(0, 10, max_denominator=1000))
def test_without_delta_an_amount_is_epsilon_and_there_is_no_rho(amount: Fraction) -> None:
    assert Spending.of(amount, terms(Fraction(0))) == Spending(None, amount)


@given(st.fractions(Fraction(1, 1000), 10, max_denominator=1000))
def test_with_delta_an_amount_is_rho_and_the_epsilon_that_it_is(amount: Fraction) -> None:
    found = Spending.of(amount, terms(DELTA))
    assert found == Spending(amount, epsilon_of(amount, DELTA)) and found.epsilon > 0


def test_nothing_costs_nothing_in_both() -> None:
    assert Spending.of(Fraction(0), terms(DELTA)) == Spending(Fraction(0), Fraction(0))


def test_epsilons_of_parts_do_not_add_up_and_rhos_do() -> None:
    half, whole = (Spending.of(Fraction(n, 100), terms(DELTA)) for n in (1, 2))
    assert half.rho is not None and whole.rho == 2 * half.rho
    assert whole.epsilon < 2 * half.epsilon
