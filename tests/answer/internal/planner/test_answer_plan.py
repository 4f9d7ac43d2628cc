"""The comparison of strategies as text, as an object and as a page."""

import json
from fractions import Fraction
from xml.etree import ElementTree

import pytest
from rendered import forms

from casemate.answer.planner.comparison import Comparison
from casemate.answer.planner.report import SCHEMA, comparison_report
from casemate.table import Budget, Column, ColumnType, Policy, Role

as_text, as_json, as_html = forms(comparison_report)

COLUMNS = (
    Column("age", type=ColumnType.INTEGER, low=0, high=99, bins=10),
    Column("sex", type=ColumnType.TEXT, values=("F", "M")),
    Column("job", type=ColumnType.TEXT, values=("a", "b", "c")),
    Column("ill", Role.PRIVATE, ColumnType.BOOLEAN, values=(False, True)),
)
POLICY = Policy("nowhere.csv", COLUMNS, budget=Budget(Fraction(1), Fraction(1, 10**6)))
PURE = Policy("nowhere.csv", COLUMNS, budget=Budget(Fraction(1)))
WIDE = "SELECT COUNT(*) FROM t WHERE age < 50 AND sex = 'F' AND job < 'b' AND ill"
LOG = ("SELECT COUNT(*) FROM t WHERE ill", "SELECT <b> FROM t", WIDE)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return Comparison.of(POLICY, LOG, people=20_000, expected=10**5)


def test_every_strategy_is_there_with_its_errors_and_what_it_proves(found: Comparison) -> None:
    shown = as_json(found)
    assert shown["schema"] == SCHEMA
    assert [(each["strategy"], each["tables"]) for each in shown["strategies"]] == [
        ("gaussian", None),
        ("laplace", None),
        ("histogram", 4),
        ("tables", 1),
        ("tables", 2),
        ("tables", 3),
        ("cold", None),
        ("warm", shown["strategies"][-1]["tables"]),
    ]
    for each in shown["strategies"]:
        assert 0 < each["mean"] <= each["max"]
        assert each["mean_share"] == pytest.approx(each["mean"] / 20_000, rel=1e-3)


def test_what_nothing_checks_is_counted_and_proven_by_nothing(found: Comparison) -> None:
    by_width = {each["tables"]: each for each in as_json(found)["strategies"][3:6]}
    assert [by_width[width]["unverified"] for width in (1, 2, 3)] == [1, 1, 1]
    assert [by_width[width]["proven"] for width in (1, 2, 3)] == [None] * 3
    assert "nothing checks it" in as_text(found)


@pytest.mark.parametrize("number", [3, 10**5])
@pytest.mark.parametrize("policy", [POLICY, PURE])
def test_the_split_is_all_of_the_budget_and_no_more(policy: Policy, number: int) -> None:
    shares = as_json(Comparison.of(policy, LOG, expected=number))["recommended"]["split"]
    assert 0.99 <= sum(shares.values()) <= 1


def test_the_object_is_json_without_infinities(found: Comparison) -> None:
    for each in (found, Comparison.of(PURE), Comparison.of(POLICY)):
        json.dumps(as_json(each), allow_nan=False)


def test_the_saving_is_said_also_when_there_is_none(found: Comparison) -> None:
    assert "% less mean" in as_text(found)
    assert "% more mean" in as_text(Comparison.of(POLICY, LOG))


def test_without_a_number_of_people_there_are_no_shares() -> None:
    found = Comparison.of(POLICY, LOG)
    assert {each["mean_share"] for each in as_json(found)["strategies"]} == {None}
    assert "%" not in as_text(found).split("\n\n")[1]
    assert "give --people N" in as_text(found)


def test_a_strategy_that_cannot_be_had_says_why() -> None:
    first = as_json(Comparison.of(PURE))["strategies"][0]
    assert first["strategy"] == "gaussian" and first["mean"] is None
    assert first["reason"] == "Gaussian noise needs a delta above 0"


def test_long_lists_of_questions_are_cut_in_the_text_alone() -> None:
    asked = [(10 * i, job) for i in range(10) for job in "abc"]
    log = [f"SELECT COUNT(*) FROM t WHERE age >= {low} AND job = '{job}'" for low, job in asked]
    found = Comparison.of(POLICY, log)
    assert "  and 10 more, all of them in the JSON" in as_text(found)
    assert len(as_json(found)["plan"]) == 30


@pytest.mark.parametrize("policy", [POLICY, PURE])
def test_the_page_is_well_formed_and_has_a_chart(policy: Policy) -> None:
    text = as_html(Comparison.of(policy, LOG, people=500))
    page = ElementTree.fromstring(text.partition("\n")[2])
    assert page.find(".//svg") is not None
    assert "SELECT &lt;b&gt; FROM t" in text
    headings = [each.text for each in page.iter("h2")]
    assert headings[:2] == ["Predicted errors", "Strategies"]
