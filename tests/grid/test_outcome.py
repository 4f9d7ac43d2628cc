"""What is known of a number before it is shown."""

from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import Estimate, Origin, Outcome

numbers = st.floats(allow_nan=False, allow_infinity=False)
maybe = st.none() | numbers
estimates = st.builds(Estimate, numbers, maybe, maybe, maybe, maybe, maybe, maybe)
outcomes = st.builds(
    Outcome,
    st.lists(st.lists(estimates, max_size=3).map(tuple), max_size=3).map(tuple),
    st.sampled_from(Origin),
    st.none() | st.floats(0.5, 0.999),
)


@given(outcomes)
def test_what_is_kept_is_read_back_to_the_bit(outcome: Outcome) -> None:
    assert Outcome.from_text(outcome.to_text()) == outcome
    assert Outcome.from_text(outcome.to_text()).to_text() == outcome.to_text()


@given(outcomes)
def test_asked_again_only_the_origin_is_another(outcome: Outcome) -> None:
    again = outcome.again()
    assert again.origin is Origin.CACHED
    assert (again.parts, again.confidence) == (outcome.parts, outcome.confidence)


@given(estimates, numbers)
def test_nothing_is_below_what_it_cannot_be_below(estimate: Estimate, least: float) -> None:
    found = estimate.above(least)
    ends = (found.value, found.lo, found.hi, found.session_lo, found.session_hi)
    assert all(end is None or end >= least for end in ends)
    assert found.error == estimate.error


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.floats(-1e10, 1e10))
def test_a_guess_stays_inside_the_bounds(middle: float, half: float, guess: float) -> None:
    found = Estimate(middle, middle - half, middle + half, 1.0).with_guess(guess, 2.0)
    assert middle - half <= found.value <= middle + half and found.error == 2.0
    assert Estimate(middle).with_guess(guess, 2.0).value == guess
