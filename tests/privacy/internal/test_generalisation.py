"""What partial privacy guarantees, against enumerated conversations, and the best of the bounds."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from enumerated import Errors, assert_every_statement_holds, queries_of, settings_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_mechanisms import (
    FAIR,
    ONE,
    ZERO,
    Extreme,
    asking,
    chase,
    decision_trees,
    noisy_threshold,
    ones_at,
    pointed_at,
    pointing,
    randomised_response,
    stop_on_change,
    triggering,
    two_replies,
)

from casemate.papers.interaction import (
    Dataset,
    Interaction,
    Leak,
    MeanQuery,
    Query,
    QueryRound,
    Reply,
    Transcript,
    best_leak,
    interact,
    nothing,
    ratio_needed,
)
from casemate.privacy import GeneralisationSetting, best
from casemate.privacy.generalisation import (
    Bound,
    lemma_12,
    posterior_tilt,
    proposition_1,
    proposition_2,
    theorem_3,
    theorem_4,
    theorem_5,
    theorem_6,
    theorem_7,
)

# What is exactly true of an enumerated conversation -----------------------------------------------


DELTAS = [ZERO, Fraction(1, 50), Fraction(1, 5)]


def everything(size: int) -> MeanQuery:
    return ones_at(size, *range(size))


@pytest.mark.theorem("001: Theorem 3")
@pytest.mark.theorem("001: Theorem 6")
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("truth", [Fraction(51, 100), Fraction(9, 10)])
def test_randomised_response_generalises_as_stated(size: int, truth: Fraction) -> None:
    prior = (Fraction(2, 3), Fraction(1, 3))
    talk = interact(prior, size, randomised_response(truth), asking(everything(size)))
    telling = assert_every_statement_holds(talk, nothing, DELTAS)
    if truth < Fraction(3, 5):
        assert {"Theorem 3", "Theorem 5"} <= {b.statement for b in telling}


@pytest.mark.theorem("001: Theorem 4")
@pytest.mark.theorem("001: Theorem 7")
def test_every_adaptive_adversary_of_two_rounds_is_covered() -> None:
    queries = [ones_at(3, 0), ones_at(3, 1), ones_at(3, 2)]
    for tree in decision_trees(queries, two_replies(3), rounds=2):
        talk = interact(FAIR, 3, randomised_response(Fraction(11, 20)), tree)
        telling = assert_every_statement_holds(talk, best_leak(talk, 0), [ZERO])
        assert {b.statement for b in telling} >= {"Theorem 4", "Proposition 2"}


@pytest.mark.theorem("001: Theorem 3")
@pytest.mark.theorem("001: Theorem 4")
@pytest.mark.theorem("001: Theorem 7")
@pytest.mark.parametrize(("size", "dummies", "points"), [(3, 1, 1), (4, 20, 1), (3, 30, 2)])
def test_a_leak_chosen_after_the_fact_generalises_as_stated(
    size: int, dummies: int, points: int
) -> None:
    prior = (Fraction(3, 4), Fraction(1, 4))
    mechanism = pointing(dummies, points)
    for ask in (chase(size, points), asking(*[everything(size)] * (points + 1))):
        talk = interact(prior, size, mechanism, ask)
        for leak in (pointed_at, best_leak(talk, points), best_leak(talk, size)):
            assert_every_statement_holds(talk, leak, DELTAS)


@pytest.mark.theorem("001: Theorem 4")
@pytest.mark.theorem("001: Theorem 7")
@pytest.mark.parametrize("decay", [Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("redraw", [True, False])
def test_the_noisy_threshold_generalises_as_stated(decay: Fraction, redraw: bool) -> None:
    """Stop-on-change, the adversary that breaks the tracker without noise."""
    ask = stop_on_change(sites=3, rounds=5, blocks=1, length=3)
    talk = interact((Fraction(1, 3),) * 3, 3, noisy_threshold(1, decay, redraw), ask)
    assert_every_statement_holds(talk, triggering, DELTAS)
    assert_every_statement_holds(talk, nothing, [Fraction(1, 2)])


values = st.fractions(0, 1, max_denominator=4)
linear_queries = st.tuples(st.tuples(values, values), st.tuples(values, values)).map(MeanQuery)


@st.composite
def conversations(draw: st.DrawFn) -> Interaction:
    """One query, a reply of three kinds, then a second query chosen by that reply."""
    first, replies = draw(linear_queries), list[Transcript]()
    for j in range(3):
        opening = QueryRound(first, Reply(draw(values), j))
        replies.append((opening, QueryRound(draw(linear_queries), Reply(draw(values)))))
    rows = {}
    for samples in product(range(2), repeat=2):
        weights = draw(st.lists(st.integers(0, 9), min_size=2, max_size=2))
        law = [*weights, 10]  # the last reply is always possible, so a dataset has some law
        rows[samples] = {t: Fraction(w, sum(law)) for t, w in zip(replies, law, strict=True)}
    weight = draw(st.integers(1, 9))
    return Interaction((Fraction(weight, 10), Fraction(10 - weight, 10)), 2, rows)


@pytest.mark.theorem("001: Theorem 3")
@pytest.mark.theorem("001: Theorem 4")
@pytest.mark.theorem("001: Theorem 5")
@pytest.mark.theorem("001: Theorem 6")
@pytest.mark.theorem("001: Theorem 7")
@settings(max_examples=12)
@given(conversations(), st.integers(0, 2), st.sampled_from(DELTAS))
def test_any_mechanism_at_all_generalises_as_stated(
    talk: Interaction, kappa: int, delta: Fraction
) -> None:
    assert_every_statement_holds(talk, best_leak(talk, kappa), [delta])


@pytest.mark.theorem("001: Theorem 5")
@pytest.mark.parametrize("factor", [1, 8])
@pytest.mark.parametrize("delta", DELTAS)
def test_low_sensitivity_queries_generalise_as_stated(factor: int, delta: Fraction) -> None:
    noisy = randomised_response(Fraction(2, 3))

    def tell(samples: Dataset, past: Transcript, query: Query) -> dict[Reply, Fraction]:
        law = noisy(samples, past, everything(len(samples)))
        return {Reply(query(told.shown), told.shown): p for told, p in law.items()}  # type: ignore[arg-type]  # randomised response shows a dataset

    talk = interact((Fraction(3, 4), Fraction(1, 4)), 3, tell, asking(Extreme(factor)))
    assert_every_statement_holds(talk, nothing, [delta], linear=False)


@settings(max_examples=12)
@given(conversations(), st.integers(0, 2), st.sampled_from([0.05, 0.3, 1.0]))
def test_lemma_12_holds_for_every_transcript(talk: Interaction, kappa: int, eta: float) -> None:
    setting = next(settings_of(talk, best_leak(talk, kappa), [ZERO]))
    bound = lemma_12(setting, eta)
    for transcript in talk.marginal:
        posterior = talk.posterior(transcript)
        for query in queries_of(talk):
            mean = talk.population_value(query)
            far = sum(p for s, p in posterior.items() if abs(query(s) - mean) >= bound.deviation)
            assert far <= bound.failure


# The factor of kappa ------------------------------------------------------------------------------


def one_sample_told(chance_of_one: Fraction) -> tuple[Interaction, Leak]:
    """Two samples; the first is told truly, the second not at all: epsilon = delta = 0."""
    tell = randomised_response(ONE)
    prior = (1 - chance_of_one, chance_of_one)
    return interact(prior, 2, tell, asking(ones_at(2, 0))), lambda _: frozenset({0})


@given(st.fractions(0, Fraction(99, 100), max_denominator=100))
def test_no_smaller_factor_of_kappa_is_true(factor: Fraction) -> None:
    """Leave out kappa, or take a factor below 1 of it, and a rare sample contradicts it."""
    rare = (1 - factor) / 2
    talk, leak = one_sample_told(rare)
    assert ratio_needed(talk, leak) == 1
    setting = GeneralisationSetting(samples=2, epsilon=0, alpha=0.001, beta=0, leaked=1)
    assert talk.is_sample_accurate(Fraction(1, 1000), ZERO)
    mutated = (
        theorem_3(GeneralisationSetting(2, 0, 0.001, 0), c=0, d=0).deviation + float(factor) * 1 / 2
    )
    exceed = Errors.of(talk, talk.population_error).exceed
    assert exceed(mutated) >= rare > theorem_3(setting, c=0, d=0).failure == 0
    assert exceed(theorem_3(setting, c=0, d=0).deviation) == 0


# Statements that are false as printed -------------------------------------------------------------


def answering(*law: tuple[int, Fraction]) -> Callable[..., dict[Reply, Fraction]]:
    """A mechanism that never looks at the samples."""
    return lambda *_: {Reply(Fraction(answer)): p for answer, p in law}


def test_the_printed_theorem_3_fails_for_c_above_1() -> None:
    """An answer far outside the query's range is worse than c and as likely as beta."""
    wild = answering((0, Fraction(9, 10)), (10, Fraction(1, 10)))
    talk = interact((ONE,), 1, wild, asking(MeanQuery(((ZERO,),))))
    setting = GeneralisationSetting(samples=1, epsilon=0, alpha=1, beta=0.1)
    assert talk.is_sample_accurate(ONE, Fraction(1, 10))
    proved, printed_failure = theorem_3(setting, 5, 0), setting.beta / 5
    exceeds = Errors.of(talk, talk.population_error).exceed(proved.deviation)
    assert proved.failure >= exceeds == Fraction(1, 10) > printed_failure


def test_the_printed_theorem_5_fails_for_queries_of_large_range() -> None:
    """Answering 0 to 4x, for a fair bit x, is right half the time and 2 away from the mean."""
    talk = interact(FAIR, 1, answering((0, ONE)), asking(Extreme(4)))
    setting = GeneralisationSetting(samples=1, epsilon=0, alpha=0.5, beta=0.5, sensitivity=4)
    assert talk.is_sample_accurate(Fraction(1, 2), Fraction(1, 2))
    assert ratio_needed(talk, nothing) == 1
    proved, printed_failure = theorem_5(setting, 0, 1), setting.beta / 1
    exceeds = Errors.of(talk, talk.population_error).exceed(proved.deviation)
    assert proved.failure >= exceeds == 1 > printed_failure


# What we add --------------------------------------------------------------------------------------


def test_the_posterior_tilt_is_attained() -> None:
    """Randomised response of odds 4 and a prior of 1/3: the posterior is 2/3 = 1/3 + tanh(e/4)."""
    prior = (Fraction(2, 3), Fraction(1, 3))
    talk = interact(prior, 1, randomised_response(Fraction(4, 5)), asking(everything(1)))
    tilt = posterior_tilt(GeneralisationSetting(samples=1, epsilon=math.log(4), alpha=0, beta=0))
    assert max(talk.posterior_shift(t) for t in talk.marginal) == Fraction(1, 3)
    assert tilt == pytest.approx(1 / 3, rel=1e-12)
    assert Fraction(1, 3) > math.tanh(math.log(4) / 5), "the twin: a smaller tilt would be false"


epsilons = st.floats(0, 5)
counts = st.integers(1, 10**6)


@given(counts, counts, counts, epsilons, st.floats(1e-9, 1))
def test_the_propositions_are_never_worse_than_their_theorems(
    samples: int, touched: int, leaked: int, epsilon: float, x: float
) -> None:
    touched, leaked = min(touched, samples), min(leaked, samples)
    setting = GeneralisationSetting(samples, epsilon, 0.01, 1e-6, leaked=leaked, touched=touched)
    slack = 1 + 1e-12
    assert proposition_1(setting, x).deviation <= theorem_7(setting, x).deviation * slack
    assert proposition_2(setting, x).deviation <= theorem_4(setting, x, 0).deviation * slack
    assert posterior_tilt(setting) <= setting.width * slack, "it never exceeds the query's range"


# Vacuity and arguments ----------------------------------------------------------------------------


def test_the_bounds_say_something_for_many_samples_and_nothing_for_few() -> None:
    large = GeneralisationSetting(10**6, 0.01, 0.01, 1e-6, delta=1e-9, leaked=100, touched=10**5)
    pure = GeneralisationSetting(10**6, 0.01, 0.01, 1e-6, leaked=100, touched=10**5)
    small = GeneralisationSetting(4, 0.5, 0.01, 1e-6, leaked=3)
    assert not theorem_3(large, 1e-3, 1e-3).vacuous
    assert not theorem_4(large, 1e-3, 1e-3).vacuous
    assert not theorem_5(large, 1e-3, 1e-3).vacuous
    assert not theorem_6(pure, 1e-3).vacuous
    assert not theorem_7(pure, 1e-3).vacuous
    assert theorem_3(small, 1e-3, 1e-3).vacuous
    assert theorem_7(small, 1e-3).vacuous
    assert theorem_4(large, 1e-7, 1e-3).vacuous, "its failure probability is above 1"
    assert theorem_3(GeneralisationSetting(10, math.inf, 0, 0), 0, 0).deviation == math.inf


# The best bound --------------------------------------------------------------------------------


SOURCE = ["Theorem 3", "Theorem 4", "Theorem 5", "Theorem 6", "Theorem 7"]
SLACK = 1 + 1e-9
GRID = [10 ** (k / 2) for k in range(-16, 3)]

probabilities = st.floats(1e-9, 0.2) | st.just(0.0)


@st.composite
def mechanisms(draw: st.DrawFn, linear: bool = True) -> GeneralisationSetting:
    samples = draw(st.integers(1, 10**6))
    return GeneralisationSetting(
        samples=samples,
        epsilon=draw(st.floats(0, 1)),
        alpha=draw(st.floats(0, 0.1)),
        beta=draw(probabilities),
        delta=draw(probabilities),
        leaked=draw(st.integers(0, samples)),
        touched=draw(st.integers(1, samples)),
        sensitivity=None if linear else draw(st.floats(1e-6, 10)),
    )


def tried(setting: GeneralisationSetting) -> Iterator[Bound]:
    """What a search over a grid of the free constants finds."""
    for c, d in product(GRID, GRID):
        if setting.is_linear:
            yield theorem_3(setting, c, d)
            yield theorem_4(setting, c, d)
        yield theorem_5(setting, c, d)


@pytest.mark.parametrize("linear", [True, False])
@given(st.data(), st.floats(0.001, 0.9))
def test_no_choice_of_the_free_constants_on_a_grid_does_better(
    linear: bool, data: st.DataObject, failure: float
) -> None:
    setting = data.draw(mechanisms(linear))
    found = best(setting, failure, among=SOURCE[:3])
    searched = [b.deviation for b in tried(setting) if b.failure <= failure]
    assert found.deviation <= min(searched, default=math.inf) * SLACK
    assert found.failure <= failure or setting.beta > failure or found.vacuous


@pytest.mark.parametrize("name", SOURCE[:3])
def test_the_constants_it_reports_give_the_bound_it_reports(name: str) -> None:
    setting = GeneralisationSetting(10**6, 0.01, 0.01, 1e-6, delta=1e-9, leaked=100, touched=10**5)
    statement = {"Theorem 3": theorem_3, "Theorem 4": theorem_4, "Theorem 5": theorem_5}[name]
    found = best(setting, 0.01, among=[name])
    assert found.statement == name
    assert not found.vacuous
    c, d = found.free
    assert statement(setting, c, d) == found
    assert found.failure == pytest.approx(0.01)


@given(mechanisms(), st.floats(0.001, 0.9))
def test_the_whole_list_is_never_worse_than_a_part_or_than_no_privacy(
    setting: GeneralisationSetting, failure: float
) -> None:
    assume(setting.beta <= failure)
    found = best(setting, failure)
    assert all(found.deviation <= best(setting, failure, among=[n]).deviation for n in SOURCE)
    assert found.deviation <= (setting.alpha + setting.width) * SLACK
    assert found.vacuous == (found.statement == "no privacy") or found.deviation >= (
        setting.alpha + setting.width
    )


WORSE = ["epsilon", "alpha", "beta", "delta", "leaked"]


@given(mechanisms(), st.floats(0.001, 0.9), st.sampled_from(WORSE), st.floats(1, 3))
def test_more_loss_or_less_accuracy_never_tightens_the_bound(
    setting: GeneralisationSetting, failure: float, field: str, factor: float
) -> None:
    now = getattr(setting, field)
    later = min(setting.samples, math.ceil(now * factor)) if field == "leaked" else now * factor
    worse = replace(setting, **{field: later})
    assert best(setting, failure).deviation <= best(worse, failure).deviation * SLACK


def test_neither_theorem_4_nor_theorem_7_dominates() -> None:
    """Theorem 7 adds its failures; Theorem 4 multiplies beta, which is cheap when it is tiny."""
    exact = GeneralisationSetting(10_000, 0.01, 0.01, beta=0, leaked=10, touched=1000)
    usual = replace(exact, beta=0.01)
    assert best(exact, 0.05, among=SOURCE).statement == "Theorem 4"
    assert best(usual, 0.05, among=SOURCE).statement == "Theorem 7"
    fourth, seventh = theorem_4(usual, 0.25, 0), theorem_7(usual, 0.03)
    assert fourth.failure == pytest.approx(seventh.failure)
    assert seventh.deviation < fourth.deviation


def test_what_cannot_be_reached_is_infinite_and_what_says_nothing_is_vacuous() -> None:
    hopeless = best(GeneralisationSetting(100, 0.1, 0.1, beta=0.5), failure=0.1)
    assert (hopeless.deviation, hopeless.vacuous) == (math.inf, True)
    exposed = best(GeneralisationSetting(100, 0.1, 0.1, beta=0.01, leaked=100), failure=0.1)
    assert (exposed.statement, exposed.vacuous) == ("no privacy", True)
    assert exposed.deviation == pytest.approx(1.1)
