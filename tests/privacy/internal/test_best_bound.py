import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from casemate.privacy import GeneralisationSetting, best
from casemate.privacy.generalisation import Bound, theorem_3, theorem_4, theorem_5, theorem_7

SOURCE = ["Theorem 3", "Theorem 4", "Theorem 5", "Theorem 6", "Theorem 7"]
SLACK = 1 + 1e-9
GRID = [10 ** (k / 2) for k in range(-16, 3)]

probabilities = st.floats(1e-9, 0.2) | st.just(0.0)


@st.composite
def settings(draw: st.DrawFn, linear: bool = True) -> GeneralisationSetting:
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
    setting = data.draw(settings(linear))
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


@given(settings(), st.floats(0.001, 0.9))
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


@given(settings(), st.floats(0.001, 0.9), st.sampled_from(WORSE), st.floats(1, 3))
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
