"""A comparison is a function of the policy, the public transcript and the questions."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from rendered import forms

from casemate.answer.planner.comparison import Comparison, History, history_from
from casemate.answer.planner.report import comparison_report
from casemate.answer.planner.workload import with_types
from casemate.doors import Closed, PeopleTotal, open_transcript
from casemate.doors.transcript import IN_MEMORY
from casemate.errors import Misconfigured
from casemate.table import Answering, Budget, Column, ColumnType, Policy, Protects, Role, Strategy

_text, as_json, _page = forms(comparison_report)

COLUMNS = (
    Column("id", Role.IDENTIFIER),
    Column("age", type=ColumnType.INTEGER, low=0, high=99, bins=10),
    Column("sex", values=("F", "M")),
    Column("ill", Role.PRIVATE, ColumnType.BOOLEAN, values=(False, True)),
)
BUDGET = Budget(Fraction(1), Fraction(1, 10**6))
NOWHERE = Policy("nowhere.csv", COLUMNS, budget=BUDGET)
ASKED = (
    "SELECT COUNT(*) FROM t WHERE age < 50",
    "SELECT sex, COUNT(*) FROM t WHERE ill GROUP BY sex",
)


def plain(found: Comparison) -> str:
    return json.dumps(as_json(found), sort_keys=True)


# It never opens the source --------------------------------------------------------------------


def test_a_plan_needs_no_table() -> None:
    found = Comparison.of(NOWHERE, ASKED, people=1000)
    assert found.work.number == 2
    assert found.recommended.strategy is Strategy.GAUSSIAN


def test_two_tables_with_equal_policy_and_transcript_have_equal_plans(tmp_path: Path) -> None:
    found = []
    for folder, rows in (("one", "1,20,F,true\n"), ("two", "1,33,M,false\n2,44,M,false\n")):
        (tmp_path / folder).mkdir()
        source = tmp_path / folder / "people.csv"
        source.write_text(f"id,age,sex,ill\n{rows}")
        found.append(Comparison.of(replace(NOWHERE, source=str(source)), ASKED, people=1000))
    one, two = ({**as_json(each), "policy": None} for each in found)
    assert one == two


def test_planning_makes_no_ledger(tmp_path: Path) -> None:
    policy = replace(NOWHERE, path=tmp_path / "casemate.toml")
    Comparison.of(policy, ASKED)
    assert list(tmp_path.iterdir()) == []


# What it reads --------------------------------------------------------------------------------


def test_a_bad_question_is_named_and_the_rest_is_planned(tmp_path: Path) -> None:
    log = tmp_path / "log.sql"
    log.write_text("SELECT COUNT(*) FROM t;\nSELECT id FROM t;\nSELECT COUNT(*) FROM t WHERE ill;")
    found = Comparison.of(NOWHERE, log)
    assert found.log is not None
    assert [each.line for each in found.log.questions] == [1, 3]
    assert [each.line for each in found.log.refused] == [2]


def test_a_log_without_any_question_is_an_error_that_says_why() -> None:
    with pytest.raises(Misconfigured, match="line 1: "):
        Comparison.of(NOWHERE, ["SELECT id FROM t"])


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
    found = Comparison.for_questions(with_types(NOWHERE)[0], history=History(990, 12, 1))
    assert found.people == 990 and found.setting.asked == 12
    assert (
        Comparison.for_questions(with_types(NOWHERE)[0], people=10, history=History(990)).people
        == 10
    )


def test_what_everybody_knows_is_free() -> None:
    budget = replace(BUDGET, protects=Protects.PRIVATE_COLUMNS)
    policy = replace(NOWHERE, budget=budget)
    found = Comparison.of(policy, ASKED)
    assert found.work.number == 1 and found.free == {0, 1}
    assert as_json(found)["plan"][0]["strategy"] == "exact"
    with pytest.raises(Misconfigured, match="exact and free"):
        Comparison.of(policy, ASKED[:1])


# Types ----------------------------------------------------------------------------------------


def test_a_column_of_which_nothing_is_declared_is_left_out_and_named() -> None:
    policy = replace(NOWHERE, columns=(*COLUMNS, Column("note")))
    found, notes = with_types(policy)
    assert found.columns[-1].type is None
    assert any("the type of note does not follow" in each for each in notes)
    assert Comparison.of(policy, ASKED).universe.shape == (11, 3, 3)


def test_what_is_no_policy_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="never opens a table"):
        Comparison.of(tmp_path / "people.csv")
    with pytest.raises(Misconfigured, match="has no budget"):
        Comparison.of(replace(NOWHERE, budget=None))
    with pytest.raises(Misconfigured, match="can be asked about"):
        Comparison.of(replace(NOWHERE, columns=(Column("id", Role.IDENTIFIER),)))


# What it says ---------------------------------------------------------------------------------


def test_each_question_has_the_strategy_with_the_least_error_for_it() -> None:
    found = Comparison.of(NOWHERE, ASKED, expected=1000)
    for place, (forecast, error) in enumerate(found.by_question()):
        assert forecast.checked and forecast.typical is not None
        assert error == pytest.approx(float(forecast.typical[place]))
