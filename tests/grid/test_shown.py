"""Rows on answered values: HAVING, ORDER BY, LIMIT, columns that compute, and their errors."""

import math
from dataclasses import replace

import pytest
from grid.compiled_world import ask, noised, plain

from casemate.grid import Estimate, Noised, Origin, Outcome, ShownTable


def known(value: float, width: float = 2.0, error: float = 1.0) -> Estimate:
    return Estimate(
        value, value - width, value + width, error, value - 2 * width, value + 2 * width
    )


def counted(sql: str, counts: dict[str | None, float]) -> ShownTable:
    """The rows of a statement whose only part counts people by sex: m, f and neither."""
    question = ask(f"SELECT {sql}")
    (part,) = question.parts
    cells: list[Estimate] = [known(0.0)] * len(part.places)
    for place, key in zip(part.places, question.layouts[0].keys, strict=True):
        cells[place] = known(counts[key[0]])  # type: ignore[index]  # a key of one text
    return question.rows(Outcome((tuple(cells),), Origin.SURROGATE))


COUNTS: dict[str | None, float] = {"m": 10.4, "f": 30.2, None: 10.4}


def test_keys_are_themselves_and_counts_stay_unrounded() -> None:
    shown = counted("sex, COUNT(*) AS n FROM people GROUP BY sex", COUNTS)
    assert shown.columns == ("sex", "n")
    assert shown.rows[0] == ("m", Noised(10.4, 8.4, 12.4, 1.0, 6.4, 14.4))
    assert plain(shown) == [("m", 10.4), ("f", 30.2), (None, 10.4)]


def test_nobody_counts_below_zero() -> None:
    shown = counted("sex, COUNT(*) FROM people GROUP BY sex", {"m": -5.0, "f": 1.0, None: 0.0})
    first, second, _ = noised(shown)
    assert (first.value, first.lo, first.hi, first.session_lo) == (0.0, 0.0, 0.0, 0.0)
    assert (second.value, second.lo, second.hi) == (1.0, 0.0, 3.0)


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ("sex", ["m", "f"]),
        ("sex = 'm'", [True, False]),
        ("CASE WHEN sex = 'm' THEN 1 ELSE 0 END", [1, 0]),  # neither of the two is an ELSE too
    ],
)
def test_a_group_that_the_policy_says_nobody_is_in_is_shown_only_with_all_groups(
    keys: str, shown: list[object]
) -> None:
    question = ask(f"SELECT {keys} AS k, COUNT(*) FROM people GROUP BY 1")
    (part,) = question.parts
    outcome = Outcome((tuple([known(5.0)] * len(part.places)),), Origin.SURROGATE)
    found = question.rows(outcome, all_groups=False)
    assert sorted(map(str, (row[0] for row in found.rows))) == sorted(map(str, shown))
    assert len(question.rows(outcome).rows) >= len(found.rows)


@pytest.mark.parametrize(
    ("rest", "rows"),
    [
        ("HAVING COUNT(*) > 10.4", [("f", 30.2)]),
        ("HAVING COUNT(*) > 10", [("m", 10.4), ("f", 30.2), (None, 10.4)]),
        ("HAVING sex IS NULL", [(None, 10.4)]),
        ("ORDER BY COUNT(*) DESC", [("f", 30.2), ("m", 10.4), (None, 10.4)]),
        ("ORDER BY sex", [("f", 30.2), ("m", 10.4), (None, 10.4)]),
        ("ORDER BY sex DESC", [(None, 10.4), ("m", 10.4), ("f", 30.2)]),
        ("ORDER BY sex NULLS FIRST", [(None, 10.4), ("f", 30.2), ("m", 10.4)]),
        ("ORDER BY n, sex DESC NULLS LAST", [("m", 10.4), (None, 10.4), ("f", 30.2)]),
        ("ORDER BY -COUNT(*) LIMIT 1", [("f", 30.2)]),
        ("LIMIT 0", []),
    ],
)
def test_filter_order_and_limit_act_on_answered_values(
    rest: str, rows: list[tuple[object, ...]]
) -> None:
    shown = counted(f"sex, COUNT(*) AS n FROM people GROUP BY sex {rest}", COUNTS)
    assert plain(shown) == rows


@pytest.mark.parametrize(
    ("sql", "value", "lo", "hi", "error"),
    [
        ("COUNT(*) * 2", 60.4, 56.4, 64.4, 2.0),
        ("COUNT(*) / 4", 7, 7.0, 8.0, 0.25),
        ("COUNT(*) / 4.0", 7.55, 7.05, 8.05, 0.25),
        ("ROUND(COUNT(*) / 4.0, 1)", 7.6, 7.1, 8.1, 0.25),
        ("COUNT(*) - COUNT(*)", 0.0, -4.0, 4.0, 0.0),
        ("CASE WHEN sex = 'f' THEN COUNT(*) ELSE 0 END", 30.2, 0.0, 32.2, 1.0),
    ],
)
def test_columns_that_compute_have_bounds_and_a_typical_error(
    sql: str, value: float, lo: float, hi: float, error: float
) -> None:
    shown = counted(f"sex, {sql} FROM people GROUP BY sex", COUNTS)
    cell = noised(shown)[1]
    assert (cell.value, cell.lo, cell.hi) == pytest.approx((value, lo, hi))
    assert cell.error == pytest.approx(error, abs=0.06)


def test_what_is_no_number_is_shown_without_bounds() -> None:
    shown = counted(
        "sex, CASE WHEN COUNT(*) > 20 THEN 'many' END, COUNT(*) > 20, upper(sex) "
        "FROM people GROUP BY sex",
        COUNTS,
    )
    assert shown.rows[1] == ("f", Noised("many"), Noised(True), "F")


def test_where_nothing_is_proven_there_are_no_bounds() -> None:
    question = ask("SELECT COUNT(*), COUNT(*) + 1, AVG(age), MEDIAN(weight) FROM people")
    parts = [tuple([Estimate(5.0)] * len(part.cells)) for part in question.asked.parts]
    (row,) = question.rows(Outcome(tuple(parts), Origin.UNVERIFIED)).rows
    for cell in row:
        assert isinstance(cell, Noised) and cell.value is not None
        assert cell == Noised(cell.value)


# Means and sums ---------------------------------------------------------------------------------


def averaged(count: Estimate, total: Estimate, slack: Estimate | None = None) -> Noised:
    """AVG of weight (0 to 9, a cell each) or of age (bins), from its parts by kind."""
    question = ask(f"SELECT AVG({'weight' if slack is None else 'age'}) FROM people")
    given = []
    for part in question.asked.parts:
        low, _ = part.span
        weighted = any(product.weights for product in part.products)
        given.append((total if low < 0 else slack if weighted else count,))
    ((cell,),) = question.rows(Outcome(tuple(given), Origin.SURROGATE)).rows  # type: ignore[arg-type]  # slack is asked for
    assert isinstance(cell, Noised)
    return cell


def test_a_mean_is_the_centre_and_a_quotient_over_both_bounds() -> None:
    cell = averaged(known(100.0, 10.0), known(60.0, 20.0))  # in halves, around 4.5
    assert cell.value == pytest.approx(4.5 + 30 / 100)
    assert (cell.lo, cell.hi) == pytest.approx((4.5 + 20 / 110, 4.5 + 40 / 90))
    assert cell.error == pytest.approx(math.hypot(0.5, 0.3) / 100)


def test_a_mean_is_the_declared_range_where_nobody_may_be_there() -> None:
    cell = averaged(known(5.0, 5.0), known(6.0, 2.0))
    assert (cell.lo, cell.hi) == (0.0, 9.0)
    nobody = averaged(known(0.4, 5.0), known(6.0, 2.0))
    assert (nobody.value, nobody.lo, nobody.hi, nobody.error) == (None, 0.0, 9.0, None)


def test_a_mean_stays_within_the_declared_range() -> None:
    assert averaged(known(10.0), known(1000.0)).value == 9.0
    assert averaged(known(10.0), known(-1000.0)).value == 0.0


def test_the_slack_of_bins_widens_a_mean() -> None:
    exact = averaged(known(100.0, 1.0), known(0.0, 10.0), known(0.0, 0.0))
    wide = averaged(known(100.0, 1.0), known(0.0, 10.0), known(50.0, 0.0))
    assert isinstance(exact.lo, float) and isinstance(wide.lo, float)
    assert exact.lo - wide.lo == pytest.approx(25 / 99)
    assert wide.error is not None and exact.error is not None and wide.error > exact.error


def test_a_session_has_bounds_of_its_own() -> None:
    cell = averaged(known(100.0, 10.0), known(60.0, 20.0))
    assert (cell.session_lo, cell.session_hi) == pytest.approx((4.5 + 10 / 120, 4.5 + 50 / 80))
    assert replace(cell, session_lo=None).band(session=True) is None
