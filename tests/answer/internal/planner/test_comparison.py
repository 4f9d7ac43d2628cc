"""A comparison follows from the policy, the public transcript and the questions; its forms."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rendered import forms

from casemate.answer.planner.comparison import Comparison, History, history_from
from casemate.answer.planner.report import SCHEMA, comparison_report
from casemate.answer.planner.workload import with_types
from casemate.doors import Closed, PeopleTotal, open_transcript
from casemate.doors.transcript import IN_MEMORY
from casemate.errors import Misconfigured
from casemate.table import Answering, Budget, Column, ColumnType, Policy, Protects, Role, Strategy

as_text, as_json, as_html = forms(comparison_report)

COLUMNS = (
    Column("id", Role.IDENTIFIER),
    Column("age", type=ColumnType.INTEGER, low=0, high=99, bins=10),
    Column("sex", values=("F", "M")),
    Column("job", type=ColumnType.TEXT, values=("a", "b", "c")),
    Column("ill", Role.PRIVATE, ColumnType.BOOLEAN, values=(False, True)),
)
BUDGET = Budget(Fraction(1), Fraction(1, 10**6))
NOWHERE = Policy("nowhere.csv", COLUMNS, budget=BUDGET)
PURE = replace(NOWHERE, budget=Budget(Fraction(1)))
VALUES_ONLY = replace(NOWHERE, budget=replace(BUDGET, protects=Protects.PRIVATE_COLUMNS))
ASKED = (
    "SELECT COUNT(*) FROM t WHERE age < 50",
    "SELECT sex, COUNT(*) FROM t WHERE ill GROUP BY sex",
)
WIDE = "SELECT COUNT(*) FROM t WHERE age < 50 AND sex = 'F' AND job < 'b' AND ill"
LOG = ("SELECT COUNT(*) FROM t WHERE ill", "SELECT <b> FROM t", WIDE)


# It never opens the source --------------------------------------------------------------------


def test_two_tables_with_equal_policy_and_transcript_have_equal_plans_as_one_that_is_nowhere(
    tmp_path: Path,
) -> None:
    found = [Comparison.of(NOWHERE, ASKED, people=1000)]
    for folder, rows in (("one", "1,20,F,a,true\n"), ("two", "1,33,M,b,false\n2,44,M,c,false\n")):
        (tmp_path / folder).mkdir()
        source = tmp_path / folder / "people.csv"
        source.write_text(f"id,age,sex,job,ill\n{rows}")
        found.append(Comparison.of(replace(NOWHERE, source=str(source)), ASKED, people=1000))
    first, *others = ({**as_json(each), "policy": None} for each in found)
    assert others == [first, first]
    assert found[0].work.number == 2 and found[0].recommended.strategy is Strategy.GAUSSIAN


def test_planning_makes_no_ledger(tmp_path: Path) -> None:
    Comparison.of(replace(NOWHERE, path=tmp_path / "casemate.toml"), ASKED)
    assert list(tmp_path.iterdir()) == []


# What it reads --------------------------------------------------------------------------------


def test_a_bad_question_is_named_and_the_rest_is_planned(tmp_path: Path) -> None:
    log = tmp_path / "log.sql"
    log.write_text("SELECT COUNT(*) FROM t;\nSELECT id FROM t;\nSELECT COUNT(*) FROM t WHERE ill;")
    found = Comparison.of(NOWHERE, log)
    assert found.log is not None
    assert [each.line for each in found.log.questions] == [1, 3]
    assert [each.line for each in found.log.refused] == [2]


def test_a_question_that_is_asked_again_counts_once() -> None:
    again = "SELECT COUNT(*) FROM t WHERE NOT age >= 50"  # the same cells
    found = Comparison.of(NOWHERE, [ASKED[0], ASKED[0], again])
    assert found.log is not None and found.log.repeats >= 1
    assert found.work.number == len(found.log.questions) < 3


def test_the_number_of_questions_is_that_of_the_log_or_what_is_expected() -> None:
    policy = replace(NOWHERE, answering=Answering(questions=50))
    assert Comparison.of(policy, ASKED).work.number == 50
    assert Comparison.of(policy, ASKED, expected=700).work.number == 700
    assert Comparison.of(NOWHERE, ASKED, expected=1).work.number == 2
    assert Comparison.of(NOWHERE).work.number == 10_000


def test_the_noised_number_of_people_comes_from_the_transcript() -> None:
    with open_transcript(IN_MEMORY) as transcript:
        for data, number in (("1", 990), ("2", 5)):
            transcript.append(PeopleTotal("n", "p", data, "gaussian", Fraction(4), (number,)))
        transcript.append(Closed("r", "retired"))
        assert history_from(transcript, "1") == History(990, 0, 0)
        assert history_from(transcript, "3") == History(None, 0, 0)
    typed, _ = with_types(NOWHERE)
    found = Comparison.for_questions(typed, history=History(990, 12, 1))
    assert found.people == 990 and found.setting.asked == 12
    assert Comparison.for_questions(typed, people=10, history=History(990)).people == 10


def test_what_everybody_knows_is_free() -> None:
    found = Comparison.of(VALUES_ONLY, ASKED)
    assert found.work.number == 1 and found.free == {0, 1, 2}
    assert as_json(found)["plan"][0]["strategy"] == "exact"


def test_a_column_of_which_nothing_is_declared_is_left_out_and_named() -> None:
    policy = replace(NOWHERE, columns=(*COLUMNS, Column("note")))
    found, notes = with_types(policy)
    assert found.columns[-1].type is None
    assert any("the type of note does not follow" in each for each in notes)
    assert Comparison.of(policy, ASKED).universe.shape == (11, 3, 4, 3)


@pytest.mark.parametrize(
    ("policy", "asked", "said"),
    [
        (Path("people.csv"), ASKED, "never opens a table"),
        (replace(NOWHERE, budget=None), ASKED, "has no budget"),
        (replace(NOWHERE, columns=COLUMNS[:1]), ASKED, "can be asked about"),
        (NOWHERE, ["SELECT id FROM t"], "line 1: "),
        (VALUES_ONLY, ASKED[:1], "exact and free"),
    ],
)
def test_where_there_is_nothing_to_plan_it_is_one_sentence(
    policy: Any, asked: Any, said: str
) -> None:
    with pytest.raises(Misconfigured, match=said):
        Comparison.of(policy, asked)


# What it says ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> Comparison:
    return Comparison.of(NOWHERE, LOG, people=20_000, expected=10**5)


def test_each_question_has_the_strategy_with_the_least_error_for_it(found: Comparison) -> None:
    for place, (forecast, error) in enumerate(found.by_question()):
        assert forecast.checked and forecast.typical is not None
        assert error == pytest.approx(float(forecast.typical[place]))


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
    for each in shown["strategies"][3:6]:
        assert (each["unverified"], each["proven"]) == (1, None)
    assert "nothing checks it" in as_text(found)


@pytest.mark.parametrize("number", [3, 10**5])
@pytest.mark.parametrize("policy", [NOWHERE, PURE])
def test_the_split_is_all_of_the_budget_and_no_more(policy: Policy, number: int) -> None:
    shares = as_json(Comparison.of(policy, LOG, expected=number))["recommended"]["split"]
    assert 0.99 <= sum(shares.values()) <= 1


def test_what_cannot_be_had_says_why_and_is_no_infinity_in_the_object(found: Comparison) -> None:
    pure = Comparison.of(PURE)
    for each in (found, pure, Comparison.of(NOWHERE)):
        json.dumps(as_json(each), allow_nan=False)
    first = as_json(pure)["strategies"][0]
    assert first["strategy"] == "gaussian" and first["mean"] is None
    assert first["reason"] == "Gaussian noise needs a delta above 0"


def test_without_a_number_of_people_there_are_no_shares_and_there_may_be_no_saving(
    found: Comparison,
) -> None:
    unknown = Comparison.of(NOWHERE, LOG)
    assert {each["mean_share"] for each in as_json(unknown)["strategies"]} == {None}
    assert "%" not in as_text(unknown).split("\n\n")[1]
    assert "give --people N" in as_text(unknown)
    assert "% more mean" in as_text(unknown) and "% less mean" in as_text(found)


def test_long_lists_of_questions_are_cut_in_the_text_alone() -> None:
    asked = [(10 * i, job) for i in range(10) for job in "abc"]
    log = [f"SELECT COUNT(*) FROM t WHERE age >= {low} AND job = '{job}'" for low, job in asked]
    found = Comparison.of(NOWHERE, log)
    assert "  and 10 more, all of them in the JSON" in as_text(found)
    assert len(as_json(found)["plan"]) == 30


@pytest.mark.parametrize("policy", [NOWHERE, PURE])
def test_the_page_is_well_formed_and_has_a_chart(policy: Policy) -> None:
    text = as_html(Comparison.of(policy, LOG, people=500))
    page = ElementTree.fromstring(text.partition("\n")[2])
    assert page.find(".//svg") is not None
    assert "SELECT &lt;b&gt; FROM t" in text
    headings = [each.text for each in page.iter("h2")]
    assert headings[:2] == ["Predicted errors", "Strategies"]
