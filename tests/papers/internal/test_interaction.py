from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_mechanisms import (
    FAIR,
    asking,
    chase,
    ones_at,
    pointing,
    randomised_response,
)

from casemate.papers.interaction import (
    Interaction,
    MeanQuery,
    interact,
    neighbours,
    sensitivity,
)

THIRD = (Fraction(2, 3), Fraction(1, 3))


def respond(size: int, prior: tuple[Fraction, ...] = THIRD) -> Interaction:
    return interact(prior, size, randomised_response(Fraction(4, 5)), asking(ones_at(size, 0)))


def test_the_posterior_of_one_randomised_response_is_bayes_rule() -> None:
    talk = respond(1)
    told_one = next(t for t in talk.transcripts if t[0].reply.shown == (1,))
    assert talk.posterior(told_one) == {(0,): Fraction(1, 3), (1,): Fraction(2, 3)}
    assert talk.posterior_shift(told_one) == Fraction(1, 3)
    assert talk.population_error(told_one) == Fraction(2, 3)


@given(st.integers(1, 3), st.integers(1, 9))
def test_posteriors_average_to_the_prior(size: int, weight: int) -> None:
    talk = respond(size, (Fraction(weight, 10), Fraction(10 - weight, 10)))
    mixture = {
        s: sum(p * talk.posterior(t)[s] for t, p in talk.marginal.items()) for s in talk.weights
    }
    assert mixture == talk.weights
    assert sum(talk.marginal.values()) == 1


@pytest.mark.theorem("001: Definition 2")
def test_sample_accuracy_counts_the_errors_that_reach_alpha() -> None:
    talk = respond(1)  # an error of exactly 1 with probability 1/5
    assert talk.is_sample_accurate(Fraction(1), Fraction(1, 5))
    assert not talk.is_sample_accurate(Fraction(1), Fraction(19, 100))
    assert talk.is_sample_accurate(Fraction(101, 100), Fraction(0))


@pytest.mark.theorem("001: Definition 2")
def test_distributional_accuracy_is_about_the_population() -> None:
    talk = respond(1)  # the answer is 1 with probability 2/5, and the population's value is 1/3
    assert talk.is_distributionally_accurate(Fraction(2, 3), Fraction(2, 5))
    assert not talk.is_distributionally_accurate(Fraction(2, 3), Fraction(39, 100))
    assert not talk.is_distributionally_accurate(Fraction(1, 3), Fraction(99, 100))


def test_neighbours_differ_in_the_position_they_name() -> None:
    pairs = list(neighbours(respond(3)))
    assert len(pairs) == 8 * 3
    assert all([j for j in range(3) if here[j] != there[j]] == [i] for i, here, there in pairs)


@pytest.mark.theorem("001: Definition 5")
def test_a_linear_query_has_sensitivity_at_most_one_over_m() -> None:
    talk = respond(3, FAIR)
    half = MeanQuery(((Fraction(0), Fraction(1, 2)),) * 3)
    assert sensitivity(talk, ones_at(3, 0, 2)) == Fraction(1, 3)
    assert sensitivity(talk, half) == Fraction(1, 6)
    assert sensitivity(talk, ones_at(3)) == 0
    assert (ones_at(3, 0, 2).touched, half.touched, ones_at(3).touched) == (2, 3, 0)


def test_a_law_that_does_not_add_up_is_not_an_interaction() -> None:
    with pytest.raises(ValueError, match="sum to 1"):
        Interaction(FAIR, 1, {(0,): {(): Fraction(1)}, (1,): {(): Fraction(1, 2)}})
    with pytest.raises(ValueError, match="every dataset"):
        Interaction(FAIR, 2, {(0, 0): {(): Fraction(1)}})
    with pytest.raises(ValueError, match=r"values in \[0, 1\]"):
        MeanQuery(((Fraction(0), Fraction(2)),))


def test_a_transcript_that_cannot_happen_has_no_posterior() -> None:
    talk = interact((Fraction(1), Fraction(0)), 1, pointing(1), chase(1, points=1))
    impossible = next(t for t in talk.transcripts if t[0].reply.shown == 0)
    with pytest.raises(ValueError, match="no posterior"):
        talk.posterior(impossible)
