"""Private answers, forecasts and budgets: their words, their objects, their pages."""

import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from answer.session_world import parity
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate import Session
from casemate.answer.answer import Answer, BudgetStanding, Forecast, Spending, Spent
from casemate.answer.drawing import ROWS_DRAWN
from casemate.answer.report import answer_report, budget_report, forecast_report
from casemate.grid import Noised, Origin, ProofSource
from casemate.privacy import Cost, Currency, epsilon_of, price
from casemate.privacy.cost import Unbounded
from casemate.privacy.ledger import Terms
from casemate.report import Report, as_html, as_json, as_text

HOSTILE = '<script>alert("&")</script>'

NOTHING = Spending(Fraction(0), Fraction(0))
SOME = Spending(Fraction(1, 400), Fraction(3, 10))
LEFT = Spending(Fraction(1, 50), Fraction(9, 10))
PURE = Spending(None, Fraction(1, 4))
STILL, MORE = Spent(SOME, SOME, LEFT), Spent(NOTHING, SOME, LEFT)

GROUPED = Answer(
    'SELECT sex, COUNT(*) FROM "t" GROUP BY sex',
    ("sex", "count"),
    (
        ("Female", Noised(10_012.4, 9_050.0, 10_974.25, 31.5, 8_000.0, 12_000.0, ProofSource.GATE)),
        (None, Noised(0.0, 0.0, 962.0, 12.0, 0.0, 2_000.0, ProofSource.GATE)),
    ),
    Origin.SURROGATE,
    0.95,
    NOTHING,
    LEFT,
    STILL,
    ("ages are counted in bins of 5",),
)
DATED = Answer(
    "SELECT day, AVG(x) FROM t GROUP BY day",
    ("day", "avg", "n"),
    ((date(2024, 2, 29), Noised(0.5, 0.25, 0.75, 0.0123), Noised(7.0, 1.0, 9.0, 0.5)),),
    Origin.MEASURED,
    0.9,
    SOME,
    LEFT,
    MORE,
)
UNPROVEN = Answer(
    "SELECT COUNT(*) FROM t",
    ("count",),
    ((Noised(41.0, error=2.5),),),
    Origin.UNVERIFIED,
    0.95,
    NOTHING,
    PURE,
    Spent(PURE, PURE, Spending(None, Fraction(1))),
)
FORECAST = Forecast("SELECT COUNT(*) FROM t", SOME, LEFT, MORE, False, ("a note",))
STANDING = BudgetStanding(
    dataset="people.csv",
    budget=LEFT,
    spent=SOME,
    remaining=Spending(Fraction(7, 400), Fraction(8, 10)),
    delta=Fraction(1, 10**6),
    neighbours="add-remove",
    protects="person",
    strategy="warm",
    questions=1_200,
    surprises=3,
    surprises_left=22,
    principals={"": 1, "alice": 2},
    statement="spent epsilon 0.3 of 0.9 at delta 1e-06 (neighbours add-remove, protects person)",
)


def lines(report: Report) -> list[str]:
    return as_text(report).splitlines()


def drawn(report: Report) -> list[ET.Element]:
    return list(ET.fromstring(as_html(report)).iter("svg"))


def headline(report: Report) -> str:
    (found,) = ET.fromstring(as_html(report)).iter("h1")
    return "".join(found.itertext())


# Answers in words -------------------------------------------------------------------------------


def test_an_answer_is_an_aligned_table_with_its_cost_and_notes() -> None:
    assert lines(answer_report(GROUPED)) == [
        "sex      count   ±  proven, 95 %     source",
        "Female  10,012  32  9,050 to 10,974  surrogate, gate",
        "NULL         0  12  0 to 962         surrogate, gate",
        "",
        "surrogate: from the stand-in, and the gate let it pass",
        "cost: nothing; spent so far: epsilon 0.3 of 0.9",
        "",
        "note: ages are counted in bins of 5",
    ]
    head, first, *_ = lines(answer_report(GROUPED, session=True))
    assert head.endswith("all answers at once  source") and "8,000 to 12,000" in first
    assert lines(answer_report(replace(GROUPED, rows=())))[:2] == ["sex  count", "no rows"]


def test_a_column_has_as_many_decimals_as_two_digits_of_its_error() -> None:
    assert lines(answer_report(DATED))[:2] == [
        "day           avg      ±  proven, 90 %       n     ±  proven, 90 %  source",
        "2024-02-29  0.500  0.012  0.250 to 0.750  7.00  0.50  1.00 to 9.00  measured",
    ]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (Noised(41.0, error=2.5), "41.0 2.5 – unverified"),
        (Noised(41.0, 1.0, 99.0, 2.5), "41.0 2.5 1.0 to 99.0 unverified"),
        (Noised(None, 3.0, 10.0), "NULL – 3 to 10 unverified"),
    ],
)
def test_what_is_not_known_of_a_number_is_left_open(cell: Noised, shown: str) -> None:
    found = lines(answer_report(replace(UNPROVEN, rows=((cell,), (2024,)))))
    assert found[1].split() == shown.split()
    assert found[2].split() == ["2024", "–", "–", "unverified"], "a constant is shown as it is"
    assert "unverified: from the stand-in, and nothing checked it: nothing is proven" in found
    assert "cost: nothing; spent so far: epsilon 0.25 of 1" in found


def test_what_was_spent_is_never_called_nothing() -> None:
    after = Spending(Fraction(1, 400), Fraction(0))  # at a delta near 1
    spent = replace(DATED, spent=Spent(NOTHING, after, LEFT))
    assert "cost: epsilon 0 of 0.9 spent before, 0 after" in as_text(answer_report(spent))
    assert "cost: nothing" in as_text(answer_report(replace(DATED, spent=STILL)))


def test_an_answer_without_noise_is_not_said_to_have_any() -> None:
    exact = replace(DATED, exact=True)
    found, noisy = answer_report(exact), answer_report(DATED)
    assert "exact: counted in the table without noise" in as_text(found)
    assert lines(found)[1].endswith("  exact")
    assert "with noise" in as_text(noisy) and "with noise" not in as_text(found)
    assert as_json(found) == as_json(noisy), "the documented sources stay as they are"
    again = replace(exact, origin=Origin.CACHED)
    assert "cached: answered before" in as_text(answer_report(again))


# Objects ----------------------------------------------------------------------------------------


def test_the_object_of_an_answer_has_exactly_these_fields() -> None:
    first = {"value": 10_012.4, "lo": 9_050.0, "hi": 10_974.25, "error": 31.5}
    other = {"value": 0.0, "lo": 0.0, "hi": 962.0, "error": 12.0}
    source = {"source": "surrogate", "proof": "gate"}
    assert as_json(answer_report(GROUPED)) == {
        "schema": "casemate.answer/1",
        "columns": ["sex", "count"],
        "rows": [["Female", first | source], [None, other | source]],
        "confidence": 0.95,
        "cost": {"rho": 0.0, "epsilon": 0.0},
        "remaining": {"rho": 0.02, "epsilon": 0.9},
        "spent": {
            "before": {"rho": 0.0025, "epsilon": 0.3},
            "after": {"rho": 0.0025, "epsilon": 0.3},
            "budget": {"rho": 0.02, "epsilon": 0.9},
        },
        "notes": ["ages are counted in bins of 5"],
    }
    cell = as_json(answer_report(GROUPED, session=True))["rows"][0][1]
    assert (cell["session_lo"], cell["session_hi"]) == (8_000.0, 12_000.0)
    assert as_json(answer_report(UNPROVEN))["remaining"] == {"rho": None, "epsilon": 0.25}


NOON = datetime(2024, 2, 29, 12, 30)


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (NOON, "2024-02-29T12:30:00"),
        (Decimal("2.50"), 2.5),
        (Decimal("3.0"), 3),
        (True, True),
        (7, 7),
        ("a", "a"),
    ],
)
def test_a_key_is_itself_and_dates_are_iso_text_as_keys_and_as_answers(
    key: Any, shown: object
) -> None:
    rows = ((key, Noised(NOON, date(2024, 1, 1))),)
    report = answer_report(replace(UNPROVEN, columns=("a", "b"), rows=rows))
    ((found, answered),) = as_json(report)["rows"]
    assert found == shown and type(found) is type(shown)
    assert (answered["value"], answered["lo"]) == ("2024-02-29T12:30:00", "2024-01-01")


ends = st.one_of(st.none(), st.floats())


@given(st.lists(st.builds(Noised, st.floats(), ends, ends, ends, ends, ends), max_size=5))
def test_whatever_the_numbers_are_the_object_is_json_and_the_text_has_a_line_for_each(
    cells: list[Noised],
) -> None:
    answer = replace(UNPROVEN, rows=tuple((cell,) for cell in cells), remaining=PURE)
    report = answer_report(answer, session=True)
    found = json.loads(json.dumps(as_json(report), allow_nan=False))
    assert len(found["rows"]) == len(cells)
    assert len(lines(report)) == max(len(cells), 1) + 4


# The page of an answer --------------------------------------------------------------------------


def test_the_page_says_what_was_asked_what_it_cost_and_where_it_comes_from() -> None:
    report = answer_report(GROUPED)
    root = ET.fromstring(as_html(report))
    assert headline(report) == "2 rows, from the stand-in, and the gate let it pass."
    assert root.findtext("body/main/header/p/code") == GROUPED.sql
    words = " ".join("".join(root.itertext()).split())
    assert "epsilon 0.3 of 0.9" in words and "ages are counted in bins of 5" in words


def width(line: ET.Element) -> float:
    """From the first point of a line to its last."""
    first, *_, last = line.attrib["points"].split()
    return float(last.partition(",")[0]) - float(first.partition(",")[0])


def test_every_row_has_a_line_for_the_proof_a_thicker_one_for_the_error_and_a_dot() -> None:
    (plot,) = drawn(answer_report(GROUPED))
    proofs, bars = list(plot.iter("polyline")), list(plot.iter("rect"))
    assert (len(proofs), len(bars), len(list(plot.iter("circle")))) == (2, 2, 2)
    people = max(map(width, proofs)) / (10_974.25 - 9_050)  # how wide one of them is drawn
    drawn_errors = sorted(float(bar.attrib["width"]) / people for bar in bars)
    assert drawn_errors == pytest.approx([24, 63], abs=0.5)
    assert all(float(bar.attrib["height"]) > 2 for bar in bars)
    assert plot.findtext("desc") == "Female: 10,012, 9,050 to 10,974; NULL: 0, 0 to 962."


def rows_of(number: int) -> Answer:
    rows = tuple((i, Noised(float(i), 0.0, 100.0, 1.0)) for i in range(number))
    return replace(GROUPED, rows=rows)


@pytest.mark.parametrize(
    ("answer", "marks"),
    [
        (UNPROVEN, (0, 1, 1)),  # nothing is drawn as proven that is not
        (replace(UNPROVEN, rows=((Noised(5.0, 5.0, 5.0, 0.0),),)), (1, 0, 1)),  # exact
        (rows_of(ROWS_DRAWN + 7), (ROWS_DRAWN, ROWS_DRAWN, ROWS_DRAWN)),
    ],
)
def test_a_figure_has_lines_bars_and_dots_for_what_is_known(
    answer: Answer, marks: tuple[int, ...]
) -> None:
    (plot,) = drawn(answer_report(answer))
    assert tuple(len(list(plot.iter(name))) for name in ("polyline", "rect", "circle")) == marks


def test_every_column_of_numbers_has_a_figure_and_rows_beyond_it_are_said() -> None:
    titles = [plot.findtext("title") for plot in drawn(answer_report(DATED))]
    assert titles == ["avg, row by row", "n, row by row"]
    assert not drawn(answer_report(replace(GROUPED, rows=())))
    assert "7 more rows are in the table below" in as_html(answer_report(rows_of(ROWS_DRAWN + 7)))
    assert "nothing is proven" in as_html(answer_report(UNPROVEN))


@pytest.mark.parametrize(
    "report",
    [
        answer_report(
            replace(
                GROUPED,
                sql=HOSTILE,
                columns=(HOSTILE, HOSTILE),
                rows=((HOSTILE, Noised(1.0, 0.0, 2.0, 0.5)),),
                notes=(HOSTILE,),
            ),
            session=True,
        ),
        forecast_report(replace(FORECAST, sql=HOSTILE, notes=(HOSTILE,))),
        budget_report(
            replace(STANDING, dataset=HOSTILE, principals={HOSTILE: 1}, notes=(HOSTILE,))
        ),
    ],
)
def test_what_comes_from_outside_is_escaped(report: Report) -> None:
    assert HOSTILE not in as_html(report) and headline(report)


# Forecasts --------------------------------------------------------------------------------------


def test_a_forecast_says_what_it_costs_at_most_and_why() -> None:
    assert lines(forecast_report(FORECAST)) == [
        "costs at most: epsilon 0 of 0.9 spent before, 0.3 after",
        "it costs less where the stand-in is close enough already; nothing was asked and nothing "
        "was charged",
        "",
        "note: a note",
    ]
    known = as_text(forecast_report(replace(FORECAST, cost=NOTHING, spent=STILL, known=True)))
    assert "costs at most: nothing" in known and "it was answered before" in known
    poor = forecast_report(replace(FORECAST, remaining=NOTHING))
    assert "more than is left" in as_text(poor)
    measured = forecast_report(FORECAST, measured=True)
    assert "that is what a fresh measurement costs" in as_text(measured)
    assert "That is what a fresh measurement costs;" in as_html(measured)
    assert headline(measured) == "Costs at most: epsilon 0 of 0.9 spent before, 0.3 after."
    assert as_json(forecast_report(replace(FORECAST, remaining=PURE))) == {
        "schema": "casemate.forecast/1",
        "cost": {"rho": 0.0025, "epsilon": 0.3},
        "remaining": {"rho": None, "epsilon": 0.25},
        "spent": {
            "before": {"rho": 0.0, "epsilon": 0.0},
            "after": {"rho": 0.0025, "epsilon": 0.3},
            "budget": {"rho": 0.02, "epsilon": 0.9},
        },
        "known": False,
        "notes": ["a note"],
    }


# Budgets ----------------------------------------------------------------------------------------


def test_a_budget_is_lines_to_read() -> None:
    assert lines(budget_report(STANDING)) == [
        "people.csv: spent epsilon 0.3 of 0.9 at delta 1e-06 (neighbours add-remove, protects "
        "person)",
        "all answers together are about as likely, within a factor of e to the epsilon, but for a "
        "chance of 1e-06, for any two tables that differ in one person being in it or not",
        "",
        "budget     rho 0.02 (epsilon 0.9)",
        "spent      rho 0.0025 (epsilon 0.3), 12.5 %",
        "left       rho 0.0175 (epsilon 0.8)",
        "strategy   warm",
        "questions  1,200 that the gate was asked",
        "surprises  3 found, 22 left to find",
        "",
        "surprises by who asked:",
        "  (unnamed)  1",
        "  alice      2",
    ]
    told = as_text(
        budget_report(replace(STANDING, principals={}, notes=("nothing was asked yet",)))
    )
    assert "by who asked" not in told and told.endswith("note: nothing was asked yet")


@pytest.mark.parametrize(
    ("neighbours", "protects", "apart"),
    [
        ("add-remove", "person", "one person being in it or not"),
        ("replace", "person", "one person's record being another"),
        ("replace", "private-columns", "the private values of one person"),
    ],
)
def test_the_promise_names_what_it_is_about(neighbours: str, protects: str, apart: str) -> None:
    changed = replace(STANDING, neighbours=neighbours, protects=protects, delta=Fraction(0))
    assert lines(budget_report(changed))[1] == (
        "all answers together are about as likely, within a factor of e to the epsilon, for any "
        f"two tables that differ in {apart}"
    )


def test_the_object_of_a_budget_has_exactly_these_fields_in_this_order() -> None:
    expected = {
        "schema": "casemate.budget/1",
        "dataset": "people.csv",
        "budget": {"rho": 0.02, "epsilon": 0.9},
        "spent": {"rho": 0.0025, "epsilon": 0.3},
        "remaining": {"rho": 0.0175, "epsilon": 0.8},
        "delta": 1e-6,
        "neighbours": "add-remove",
        "protects": "person",
        "strategy": "warm",
        "questions": 1200,
        "surprises": 3,
        "surprises_left": 22,
        "principals": [
            {"principal": "", "surprises": 1},
            {"principal": "alice", "surprises": 2},
        ],
        "statement": STANDING.statement,
        "tighter_epsilon": None,
        "tighter_note": "",
        "notes": [],
    }
    found = as_json(budget_report(STANDING))
    assert found == expected and list(found) == list(expected)


def test_the_bar_is_as_long_as_what_is_spent_in_the_currency_that_adds_up() -> None:
    def widths(**changes: Any) -> list[float]:
        (bar,) = drawn(budget_report(replace(STANDING, **changes)))
        return [float(part.attrib["width"]) for part in bar.iter("rect")]

    assert widths() == [90.0, 630.0]
    assert widths(budget=PURE, spent=PURE, remaining=PURE) == [720.0]
    assert widths(spent=NOTHING) == [720.0]
    assert headline(budget_report(STANDING)).startswith("people.csv: spent epsilon 0.3")


def test_a_tighter_epsilon_is_said_with_its_condition_or_why_it_is_not_known() -> None:
    known = budget_report(replace(STANDING, tighter_epsilon=0.25, tighter_note="had it been fixed"))
    assert "tighter    epsilon 0.25, had it been fixed" in lines(known)
    assert as_json(known)["tighter_epsilon"] == 0.25
    missing = budget_report(replace(STANDING, tighter_note="install casemate[accounting]"))
    assert "tighter    not known: install casemate[accounting]" in lines(missing)
    assert "not known: install casemate[accounting]" in as_html(missing)


@pytest.mark.parametrize(
    ("found", "epsilon", "note"),
    [
        (0.125, 0.125, "had every charge been fixed before the first answer"),
        (math.inf, None, "something left without noise"),
    ],
)
def test_what_was_charged_is_given_to_the_accountant(
    found: float,
    epsilon: float | None,
    note: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    given: list[Cost] = []

    def tighter(costs: list[Cost], delta: Fraction) -> float:
        assert delta == Fraction(1, 10**6)
        given.extend(costs)
        return found

    monkeypatch.setattr("casemate.answer.dataset.tighter_epsilon", tighter)
    with Session.simulated(parity(tmp_path), 1) as session:
        session.query("SELECT a, COUNT(*) FROM t GROUP BY a")
        standing = session.standing(tighter=True)
        assert session.standing().tighter_note == "", "only where somebody asks for it"
    assert (standing.tighter_epsilon, standing.tighter_note) == (epsilon, note)
    rho = sum(price(cost, Currency.RHO) or 0 for cost in given if not isinstance(cost, Unbounded))
    assert rho == standing.spent.rho


# Amounts of privacy -----------------------------------------------------------------------------


def terms(delta: Fraction) -> Terms:
    promise = {"neighbours": "add-remove", "protects": "person"}
    return Terms.of(dataset="d", policy="p", epsilon=Fraction(1), delta=delta, **promise)


@settings(max_examples=10)
@given(st.fractions(Fraction(1, 1000), 10, max_denominator=1000))
def test_an_amount_is_rho_and_its_epsilon_or_epsilon_alone(amount: Fraction) -> None:
    delta = Fraction(1, 10**6)
    assert Spending.of(amount, terms(Fraction(0))) == Spending(None, amount)
    found, twice = (Spending.of(each, terms(delta)) for each in (amount, 2 * amount))
    assert found == Spending(amount, epsilon_of(amount, delta)) and found.epsilon > 0
    assert twice.rho == 2 * amount and twice.epsilon < 2 * found.epsilon
    assert Spending.of(Fraction(0), terms(delta)) == NOTHING
