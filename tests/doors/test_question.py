import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.doors import GatePart, GateQuestion, on_grid

cells = st.integers(-(10**12), 10**12)
sensitivities = st.fractions(min_value=Fraction(1, 50), max_value=10**6)
pairs = st.lists(st.tuples(cells, cells), min_size=1, max_size=5)
statements = st.lists(st.tuples(pairs, sensitivities), min_size=1, max_size=3)
units = st.integers(1, 16)


def question(statement: list[tuple[list[tuple[int, int]], Fraction]]) -> GateQuestion:
    parts = tuple(GatePart(tuple(h for _, h in pair), scale) for pair, scale in statement)
    return GateQuestion("q", parts, lambda: [[f for f, _ in pair] for pair, _ in statement])


@given(statements, units)
def test_the_deviation_is_the_largest_scaled_one_rounded_down(
    statement: list[tuple[list[tuple[int, int]], Fraction]], to_one: int
) -> None:
    found = question(statement).deviation(to_one)
    scaled = [(f - h) / scale * to_one for pair, scale in statement for f, h in pair]
    assert found.short == math.floor(max(scaled))
    assert found.over == math.floor(max(-s for s in scaled))
    assert found.magnitude == math.floor(max(map(abs, scaled)))


@given(statements, units, st.data())
def test_between_neighbours_a_deviation_moves_by_at_most_its_units(
    statement: list[tuple[list[tuple[int, int]], Fraction]], to_one: int, data: st.DataObject
) -> None:
    """Every cell may move, each by at most its sensitivity, in either direction."""
    neighbour = [
        (
            [
                (f + data.draw(st.integers(-math.floor(scale), math.floor(scale))), h)
                for f, h in pair
            ],
            scale,
        )
        for pair, scale in statement
    ]
    one, other = question(statement).deviation(to_one), question(neighbour).deviation(to_one)
    assert abs(one.short - other.short) <= to_one
    assert abs(one.over - other.over) <= to_one
    assert abs(one.magnitude - other.magnitude) <= to_one


def test_rounding_a_difference_half_to_even_moves_by_two() -> None:
    """The twin: what the test above would notice if a deviation were rounded that way."""
    assert round(Fraction(3, 2)) - round(Fraction(1, 2)) == 2
    assert math.floor(Fraction(3, 2)) - math.floor(Fraction(1, 2)) == 1


@given(st.lists(st.floats(-1e9, 1e9), max_size=5), st.sampled_from([Fraction(1), Fraction(1, 8)]))
def test_answers_on_the_grid_are_within_half_a_step(answers: list[float], step: Fraction) -> None:
    for answer, whole in zip(answers, on_grid(answers, step), strict=True):
        assert abs(Fraction(answer) - whole * step) <= step / 2


def test_no_repr_shows_a_deviation_or_a_scan() -> None:
    asked = GateQuestion("q", (GatePart((4711,)),), lambda: [[815]])
    assert "3896" not in repr(asked.deviation()) and "815" not in repr(asked)
    assert repr(asked.deviation()) == "Deviation()"


def test_a_question_without_cells_or_with_a_useless_sensitivity_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        GatePart(())
    with pytest.raises(ValueError, match="at least one part"):
        GateQuestion("q", (), list)
    for bad in (0, Fraction(-1), 0.5):
        with pytest.raises(ValueError, match="positive rational"):
            GatePart((1,), bad)  # type: ignore[arg-type]  # the mistake itself
    with pytest.raises(TypeError):
        GatePart((0.5,))  # type: ignore[arg-type]  # a stand-in that is not on the grid
