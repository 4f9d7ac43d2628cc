"""Bounds of computed columns hold whatever the results within theirs lead to."""

import pytest
from grid.compiled_world import POLICY
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid.rows import NoBounds, bounds, relax_integers
from casemate.query.language import Expression, evaluate
from casemate.query.parse import parse_statement

COMPUTED = [
    "COUNT(*) * 2 - 7",
    "COUNT(*) - SUM(weight) * SUM(weight)",
    "SUM(weight) / COUNT(*)",
    "SUM(weight) * 1.0 / COUNT(*)",
    "abs(SUM(weight) - 50)",
    "round(SUM(weight) / 3.0, 1) + floor(COUNT(*) / 2.0)",
    "CASE WHEN COUNT(*) > 10 THEN SUM(weight) ELSE -COUNT(*) END",
    "coalesce(nullif(COUNT(*), 3), 7) + least(SUM(weight), 5)",
    "sqrt(COUNT(*)) + ln(COUNT(*) + 1) - exp(COUNT(*) / 1000.0)",
    "CAST(COUNT(*) AS numeric) / 4",
]


def expression(sql: str) -> Expression:
    (output,) = parse_statement(f"SELECT {sql} FROM people", POLICY).selects[0].outputs
    return relax_integers(output.expression)


@given(
    st.sampled_from(COMPUTED),
    st.integers(1, 90),
    st.integers(0, 40),
    st.integers(-90, 90),
    st.data(),
)
def test_bounds_hold_for_all_results_within_theirs(
    sql: str, count: int, width: int, total: int, data: st.DataObject
) -> None:
    computed = expression(sql)
    ranges = [(count, count + width), (total, total + width)]
    if "COUNT" not in sql.split("SUM", maxsplit=1)[0]:  # results are numbered as they appear
        ranges.reverse()
    low, high = bounds(computed, lambda each: ranges[each.index])
    results = [data.draw(st.integers(*each)) for each in ranges]
    value = evaluate(computed, lambda each: float(results[each.index]))  # type: ignore[union-attr]  # no columns
    room = 1e-9 * max(1.0, abs(low), abs(high))
    assert value is None or low - room <= float(value) <= high + room  # type: ignore[arg-type]  # a number


@pytest.mark.parametrize(
    "sql", ["1.0 / COUNT(*)", "COUNT(*) % 7", "ln(COUNT(*))", "power(COUNT(*), 2)"]
)
def test_where_nothing_follows_there_are_no_bounds(sql: str) -> None:
    with pytest.raises(NoBounds):
        bounds(expression(sql), lambda _: (0.0, 5.0))
