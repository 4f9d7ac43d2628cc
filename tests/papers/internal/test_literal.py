"""The literal construction: the document's algorithm, what it charges, and what survives."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from papers.literal_world import (
    CELLS,
    PEOPLE,
    TERMS,
    Chosen,
    constructed,
    scripted,
    seeded,
    setting,
    subset,
    world,
)
from papers.slow_updates import SlowMedian, SlowPerceptron, SlowStandIn, SlowWeights

from casemate.errors import HorizonReached
from casemate.grid import Origin, Product
from casemate.papers.accuracy import PromiseTerms
from casemate.papers.online import DatabaseUpdate, LiteralConstruction, OnlineRecords, OnlineSetting
from casemate.privacy.mechanisms import NumericSparse
from casemate.privacy.noise import Noise

# The document's algorithm, written down slowly ----------------------------------------------------


def slow_stand_in(made: OnlineSetting) -> SlowStandIn:
    if made.update.name == "perceptron":
        return SlowPerceptron(CELLS, PEOPLE, Fraction(made.alpha))
    if made.update.name == "median":
        return SlowMedian(CELLS, PEOPLE, 7)
    return SlowWeights(CELLS, PEOPLE, made.alpha)


class SlowConstruction:
    """OnlineIC and NumericSparse line by line."""

    def __init__(self, made: OnlineSetting, counts: list[int], noise: Noise) -> None:
        self.made, self.counts, self.noise = made, counts, noise
        self.stand_in, self.fired = slow_stand_in(made), 0
        self.threshold: int | None = None
        self.answers: dict[Chosen, Fraction] = {}

    def draw(self, scale: Fraction) -> int:
        return int(self.noise(scale, 1)[0])

    def ask(self, chosen: Chosen) -> Fraction:
        if chosen not in self.answers:
            self.answers[chosen] = self.fresh(chosen)
        return self.answers[chosen]

    def fresh(self, chosen: Chosen) -> Fraction:
        believed, noise = self.stand_in.answer(chosen), self.made.noise
        if self.fired == self.made.updates:
            return believed
        if self.threshold is None:
            self.threshold = self.made.threshold + self.draw(noise.run.threshold)
        true = sum(self.counts[cell] for cell in chosen)
        for deviation in (true - round(believed), round(believed) - true):
            if deviation + self.draw(noise.run.query) >= self.threshold:
                number = true + self.draw(noise.answer)
                self.stand_in.update(chosen, number)
                self.fired, self.threshold = self.fired + 1, None
                return Fraction(number)
        return believed


tables = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any)
questions = st.lists(
    st.frozensets(st.integers(0, CELLS - 1), min_size=1, max_size=3), min_size=1, max_size=14
)
tapes = st.lists(st.integers(-12, 12), min_size=1, max_size=12)
SUBSETS = [frozenset(chosen) for size in (1, 2, 3) for chosen in combinations(range(CELLS), size)]
FIRING = [-12, 12, 0]  # a low threshold, a high comparison, an exact number: always a surprise


def shared_out(weights: list[int]) -> list[int]:
    counts = [PEOPLE * weight // sum(weights) for weight in weights]
    counts[0] += PEOPLE - sum(counts)
    return counts


@pytest.mark.theorem("003: OnlineIC (the algorithm)")
@pytest.mark.parametrize("name", ["perceptron", "median", "weights"])
@example([1, 0, 0, 0], SUBSETS, FIRING, 0.0)
@example([2, 1, 1, 0], SUBSETS[::-1], FIRING, 1e-6)
@given(tables, questions, tapes, st.sampled_from([0.0, 1e-6]))
def test_it_is_the_slow_version_on_the_same_noise(
    name: str, weights: list[int], asked: list[Chosen], tape: list[int], delta: float
) -> None:
    made, counts = setting(name, terms=replace(TERMS, delta=delta)), shared_out(weights)
    fast_scales, slow_scales = list[Fraction](), list[Fraction]()
    fast = constructed(made, counts, scripted(tape, fast_scales))
    slow = SlowConstruction(made, counts, scripted(tape, slow_scales))
    for chosen in asked:
        expected = float(slow.ask(chosen))
        assert fast.ask(subset(chosen)).value == pytest.approx(expected, rel=1e-12, abs=1e-6)
        assert fast.updates == slow.fired
    assert fast_scales == slow_scales, "the same draws of the same scales in the same order"


def test_such_noise_leads_to_every_kind_of_answer() -> None:
    """Otherwise the example above would say little."""
    construction = constructed(setting("median"), [PEOPLE, 0, 0, 0], scripted(FIRING, []))
    origins = [construction.ask(subset(chosen)).origin for chosen in [*SUBSETS, SUBSETS[0]]]
    assert origins == ["measured"] * 6 + ["unverified"] * 8 + ["cached"]
    quiet = constructed(setting("median"), [PEOPLE, 0, 0, 0], scripted([0], []))
    assert quiet.ask(subset({1})).origin is Origin.SURROGATE


@given(tables, questions, tapes)
def test_it_is_numeric_sparse(weights: list[int], asked: list[Chosen], tape: list[int]) -> None:
    """Half by half, as the document asks, the second skipped when the first has fired."""
    made, counts = setting("perceptron"), shared_out(weights)
    fast = constructed(made, counts, scripted(tape, []))
    scales = list[Fraction]()
    sparse = NumericSparse(made.updates, Fraction(1), scripted(tape, scales))
    stand_in = SlowPerceptron(CELLS, PEOPLE, Fraction(made.alpha))
    for chosen in dict.fromkeys(asked):
        believed, true = stand_in.answer(chosen), sum(counts[cell] for cell in chosen)
        deviation = true - round(believed)
        answer = fast.ask(subset(chosen))
        if sparse.closed:
            break
        reading = sparse.ask(deviation, made.threshold)
        if reading is None:  # the other half has the other sign, and so has its noise
            reading = sparse.ask(-deviation, made.threshold)
            reading = None if reading is None else deviation + (reading + deviation)
        assert (answer.origin is Origin.MEASURED) == (reading is not None)
        if reading is not None:
            assert answer.value == round(believed) + reading
            stand_in.update(chosen, round(answer.value))
    assert scales


# What each answer says ----------------------------------------------------------------------------


def test_the_same_question_has_the_same_answer_and_is_free() -> None:
    made = world("weights")
    records = OnlineRecords.in_memory(made.setting.terms)
    construction = LiteralConstruction(made.setting, made.table(0), records, noise=seeded(5))
    first = [construction.ask(made.product(line)) for line in range(5)]
    spent = records.ledger.spent()
    again = [construction.ask(made.product(line)) for line in range(5)]
    assert again == [replace(answer, origin=Origin.CACHED) for answer in first]
    assert records.ledger.spent() == spent


def test_the_bounds_are_three_alpha_and_alpha_in_people() -> None:
    made = world("weights")
    construction = made.construction(made.table(0), seeded(5))
    within = {
        answer.origin: answer.within
        for answer in (construction.ask(made.product(line)) for line in range(30))
    }
    unit = made.setting.alpha * made.setting.people
    assert within == {Origin.SURROGATE: 3 * unit, Origin.MEASURED: unit}


def test_where_no_theorem_holds_nothing_is_said_to_be_proven() -> None:
    construction = constructed(setting("weights", 0.125), [PEOPLE, 0, 0, 0])
    assert construction.ask(subset({0})).within is None


def test_more_questions_than_the_theorem_counts_are_refused() -> None:
    construction = constructed(
        setting("weights", terms=PromiseTerms(questions=2)), [PEOPLE, 0, 0, 0]
    )
    construction.ask(subset({0}))
    construction.ask(subset({1}))
    construction.ask(subset({0}))
    with pytest.raises(HorizonReached, match="calibrated for 2"):
        construction.ask(subset({2}))


@given(
    st.lists(st.integers(0, 10**6), min_size=4, max_size=4).filter(any),
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
)
def test_a_weighted_question_is_rounded_down_exactly(
    counts: list[int], weights: list[float]
) -> None:
    made = OnlineSetting(DatabaseUpdate.by_weights(2, 2), TERMS, sum(counts), 0.5)
    construction = constructed(made, np.reshape(counts, (2, 2)))
    factors = {0: np.array(weights[:2]), 1: np.array(weights[2:])}
    product = Product((2, 2), {}, factors)
    exact = sum(n * Fraction(w) for n, w in zip(counts, product.dense().tolist(), strict=True))
    assert construction._exact(product) == exact // 1
