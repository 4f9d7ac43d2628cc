"""Conversations with every probability exact, and the definitions of privacy decided on them."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_mechanisms import (
    FAIR,
    asking,
    chase,
    decision_trees,
    feeding,
    noisy_threshold,
    ones_at,
    pointed_at,
    pointing,
    randomised_response,
    triggering,
    two_replies,
)

from casemate.papers.interaction import (
    Interaction,
    Leak,
    MeanQuery,
    QueryRound,
    Ratio,
    Reply,
    Transcript,
    best_leak,
    delta_needed,
    epsilon_of,
    interact,
    is_partially_private,
    is_private,
    leaked_at_most,
    neighbours,
    nothing,
    ratio_needed,
    sensitivity,
)

NONE, THIRD = Fraction(0), (Fraction(2, 3), Fraction(1, 3))


def named(j: int) -> Transcript:
    return (QueryRound(ones_at(2, 0), Reply(NONE, j)),)


@st.composite
def interactions(draw: st.DrawFn, size: int = 2, transcripts: int = 3) -> Interaction:
    """Any law of three transcripts over two samples of two kinds, in small rationals."""
    rows = {}
    for samples in product(range(2), repeat=size):
        weights = draw(st.lists(st.integers(0, 6), min_size=transcripts, max_size=transcripts))
        total = sum(weights) or 1
        weights = weights if sum(weights) else [1] + [0] * (transcripts - 1)
        rows[samples] = {named(j): Fraction(w, total) for j, w in enumerate(weights)}
    return Interaction(FAIR, size, rows)


def definition_3(talk: Interaction, leak: Leak, ratio: Fraction, delta: Fraction) -> bool:
    """Definition 3 word for word: every index, every pair, every event that does not leak it."""
    for i, here, there in neighbours(talk):
        allowed = [t for t in talk.transcripts if i not in leak(t)]
        events = chain.from_iterable(combinations(allowed, r) for r in range(len(allowed) + 1))
        for event in events:
            left = sum(talk.probability(t, here) for t in event)
            if left > ratio * sum(talk.probability(t, there) for t in event) + delta:
                return False
    return True


# The definitions ----------------------------------------------------------------------------------


leaks = st.lists(st.frozensets(st.integers(0, 1)), min_size=3, max_size=3).map(
    lambda sets: lambda transcript: sets[transcript[0].reply.shown]
)
ratios = st.fractions(1, 6, max_denominator=6)
deltas = st.fractions(0, 1, max_denominator=12)


@pytest.mark.theorem("001: Definition 3")
@given(interactions(), leaks, ratios, deltas)
def test_it_decides_the_definition_over_every_event(
    talk: Interaction, leak: Leak, ratio: Fraction, delta: Fraction
) -> None:
    kappa = leaked_at_most(talk, leak)
    assert is_partially_private(talk, leak, ratio, delta, kappa) == definition_3(
        talk, leak, ratio, delta
    )


@given(interactions(), leaks, deltas)
def test_the_smallest_ratio_is_enough_and_nothing_less_is(
    talk: Interaction, leak: Leak, delta: Fraction
) -> None:
    ratio = ratio_needed(talk, leak, delta)
    if not isinstance(ratio, Fraction):
        assert not definition_3(talk, leak, Fraction(10**9), delta)
        return
    assert definition_3(talk, leak, ratio, delta)
    smaller = 1 + (ratio - 1) * Fraction(999, 1000)
    assert ratio == 1 or not definition_3(talk, leak, smaller, delta)


@pytest.mark.theorem("001: Definition 1")
@given(st.fractions(Fraction(1, 2), Fraction(99, 100), max_denominator=100))
def test_randomised_response_costs_the_logarithm_of_its_odds(truth: Fraction) -> None:
    talk = interact(FAIR, 2, randomised_response(truth), asking(ones_at(2, 0, 1)))
    odds = truth / (1 - truth)
    assert ratio_needed(talk, nothing) == odds
    assert is_private(talk, odds)
    assert odds == 1 or not is_private(talk, 1 + (odds - 1) * Fraction(99, 100))
    assert delta_needed(talk, nothing, Fraction(1)) == 2 * truth - 1  # the total variation


def test_epsilon_is_rounded_up_and_infinite_where_no_ratio_will_do() -> None:
    assert epsilon_of(Fraction(1)) == 0
    assert 0 <= epsilon_of(Fraction(4)) - math.log(4) < 1e-13
    assert epsilon_of(math.inf) == math.inf


# The best leak function ---------------------------------------------------------------------------


def every_leak(talk: Interaction, kappa: int) -> list[Leak]:
    sets = [frozenset(c) for r in range(kappa + 1) for c in combinations(range(talk.size), r)]
    tables = product(sets, repeat=len(talk.transcripts))
    return [dict(zip(talk.transcripts, table, strict=True)).__getitem__ for table in tables]


@given(interactions(), st.integers(0, 2))
def test_no_leak_function_beats_the_best_one(talk: Interaction, kappa: int) -> None:
    leak = best_leak(talk, kappa)
    assert leaked_at_most(talk, leak) <= kappa
    assert ratio_needed(talk, leak) == min(ratio_needed(talk, f) for f in every_leak(talk, kappa))


@given(interactions(), st.integers(0, 1))
def test_leaking_more_never_costs_more(talk: Interaction, kappa: int) -> None:
    few, more = (ratio_needed(talk, best_leak(talk, k)) for k in (kappa, kappa + 1))
    assert more <= few


# Mechanisms that leak -----------------------------------------------------------------------------


@pytest.mark.theorem("001: Definition 3")
@pytest.mark.parametrize(("size", "dummies", "points"), [(2, 1, 1), (3, 4, 1), (3, 2, 2)])
def test_pointing_is_partially_private_and_not_private(
    size: int, dummies: int, points: int
) -> None:
    talk = interact(FAIR, size, pointing(dummies, points), chase(size, points))
    ratio = Fraction(dummies + 1, dummies) ** points
    assert is_partially_private(talk, pointed_at, ratio, NONE, kappa=points)
    assert ratio_needed(talk, nothing) == math.inf
    assert ratio_needed(talk, best_leak(talk, points)) <= ratio
    assert ratio_needed(talk, best_leak(talk, points - 1)) == math.inf, "kappa is too small"
    assert not is_partially_private(talk, pointed_at, ratio, NONE, kappa=points - 1)


def test_the_leak_must_be_chosen_after_the_conversation() -> None:
    """No set of samples named in advance will do, short of all of them."""
    talk = interact(FAIR, 3, pointing(4), chase(3, points=1))
    named_before = [frozenset(chosen) for chosen in combinations(range(3), 2)]
    fixed: list[Leak] = [dict.fromkeys(talk.transcripts, c).__getitem__ for c in named_before]
    assert [ratio_needed(talk, leak) for leak in fixed] == [math.inf] * 3


def test_a_large_delta_buys_plain_privacy_of_a_leak_and_a_small_one_does_not() -> None:
    talk = interact(FAIR, 2, pointing(9), chase(2, points=1))
    assert is_private(talk, Fraction(10, 9), Fraction(1, 10))
    assert not is_private(talk, Fraction(10, 9), Fraction(1, 20))


def worst(talks: Iterable[Interaction], leak: Leak) -> Ratio:
    return max(ratio_needed(talk, leak) for talk in talks)


def asked_most(transcript: Transcript) -> frozenset[int]:
    """The sample that randomised response was asked about most often, in three rounds."""
    first = sum(turn.query == ones_at(2, 0) for turn in transcript)
    return frozenset({0 if first >= 2 else 1})


@pytest.mark.theorem("001: Definition 3")
def test_one_leak_function_serves_every_adversary() -> None:
    """Three questions about two samples: one of them was asked about once at most."""
    odds, table = Fraction(3), dict[Transcript, frozenset[int]]()
    trees = decision_trees([ones_at(2, 0), ones_at(2, 1)], two_replies(2), rounds=3)
    talks = [interact(FAIR, 2, randomised_response(Fraction(3, 4)), tree) for tree in trees]
    assert worst(talks, asked_most) == odds
    assert worst(talks, nothing) == odds**3
    for where in product((0, 1), repeat=3):  # the best leaks of the adversaries that do not adapt
        ask = asking(*(ones_at(2, i) for i in where))
        talk = interact(FAIR, 2, randomised_response(Fraction(3, 4)), ask)
        table |= {t: best_leak(talk, 1)(t) for t in talk.transcripts}
    assert worst(talks, table.__getitem__) == odds


# The noisy threshold of the source ----------------------------------------------------------------

SITES, BLOCKS, LENGTH, LEVEL = 2, 2, 2, 2


@lru_cache(maxsize=2)
def threshold_talks(decay: Fraction, redraw: bool) -> list[Interaction]:
    """With every sequence of five arrivals, which for delta = 0 is with every adversary.

    The probability of a transcript depends on the adversary only through the items it sent.
    """
    mechanism, uniform = noisy_threshold(LEVEL, decay, redraw), (Fraction(1, LENGTH),) * LENGTH
    sequences = product(range(SITES), repeat=5)
    feeds = (feeding(where, BLOCKS, LENGTH) for where in sequences if where[0] == 0)
    return [interact(uniform, SITES * BLOCKS, mechanism, feed) for feed in feeds]


@pytest.mark.theorem("001: Lemma 5 (threshold)")
@pytest.mark.parametrize("decay", [Fraction(1, 2), Fraction(9, 10)])
def test_a_positive_noisy_threshold_is_partially_private(decay: Fraction) -> None:
    """A moved threshold changes two phases by one bit each; each costs one step of the noise."""
    talks = threshold_talks(decay, redraw=True)
    assert worst(talks, triggering) <= decay**-2
    assert worst(talks, nothing) == math.inf


@pytest.mark.parametrize("decay", [Fraction(3, 4), Fraction(9, 10)])
def test_the_sources_threshold_is_not_when_it_may_fall_below_one_bit(decay: Fraction) -> None:
    """A first bit ends the phase for every threshold up to 1, not for those in (0, 1] only."""
    talks = threshold_talks(decay, redraw=False)
    assert worst(talks, triggering) >= decay / (1 - decay) > decay**-2


def test_the_scale_is_four_over_epsilon_and_not_its_inverse() -> None:
    """At epsilon = 1 the noise Lap(1/4) decays by e^-4 < 1/54, far from private enough."""
    inverse, right = Fraction(1, 54), Fraction(math.exp(-1 / 4)).limit_denominator(10)
    assert right < math.exp(-1 / 4), "with a little less noise than the scale has"
    assert epsilon_of(worst(threshold_talks(inverse, redraw=True), triggering)) > 1
    assert epsilon_of(worst(threshold_talks(right, redraw=True), triggering)) <= 1


# One conversation -----------------------------------------------------------------------------


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


IMPOSSIBLE = interact((Fraction(1), Fraction(0)), 1, pointing(1), chase(1, points=1))


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda: delta_needed(IMPOSSIBLE, nothing, Fraction(1, 2)), "ratio"),
        (lambda: ratio_needed(IMPOSSIBLE, nothing, Fraction(-1, 2)), "delta"),
        (lambda: best_leak(IMPOSSIBLE, -1), "kappa"),
        (lambda: Interaction(FAIR, 1, {(0,): {(): Fraction(1)}, (1,): {(): NONE}}), "sum to 1"),
        (lambda: Interaction(FAIR, 2, {(0, 0): {(): Fraction(1)}}), "every dataset"),
        (lambda: MeanQuery(((Fraction(0), Fraction(2)),)), r"values in \[0, 1\]"),
        (lambda: IMPOSSIBLE.posterior(IMPOSSIBLE.transcripts[-1]), "no posterior"),
    ],
)
def test_what_is_no_law_no_query_or_out_of_range_is_refused(
    attempt: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        attempt()
