"""The commands `casemate attack`: their options, their objects, and what they hide."""

import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from cli.running import SUMS, Captured, shown, told

from casemate.attack import commands
from casemate.attack.one_bit.choice import KnownNoise, OneBitLearnerName
from casemate.attack.one_bit.streams import Weighting
from casemate.attack.reconstruct.reconstruction import Solver

THIRD = 31 / 6
SOLUTION = [5.7, 5.2, THIRD, THIRD, 5.7, THIRD]
HOSPITAL = ("--table", "hospital")
OUTSIDE = ("--table", "seen.csv", "--private", "pay")
MANY = ("one-bit", "--table", "many.csv", "--private", "pay", "--bounds", "0:100")
PREDICT = ("extract", "--predict", "stolen:predict", "--dimension", "3")


def found(capsys: Captured, *options: str) -> dict[str, Any]:
    return shown(capsys, "attack", *options, "--seed", "1")


def reconstruct_problem(capsys: Captured, *options: str, queries: str = "q.sql") -> dict[str, Any]:
    return found(capsys, "reconstruct", queries, *options)


def values(fields: dict[str, Any]) -> list[Any]:
    return [each["value"] for each in fields["values"]]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (commands.SolverName, Solver),
        (commands.LearnerChoice, OneBitLearnerName),
        (commands.ToldChoice, KnownNoise),
        (commands.WeightsChoice, Weighting),
    ],
)
def test_everything_there_is_can_be_asked_for(choice: Any, names: Any) -> None:
    assert list(get_args(choice)) == [each.value for each in names]


@pytest.mark.parametrize(
    "options",
    [
        ("reconstruct", "q.sql", *HOSPITAL, "--noise", "laplace:0.5", "--reveal"),
        (*MANY, "--noise", "laplace:5", "--queries", "700", "--reveal"),
        PREDICT,
    ],
)
def test_the_same_seed_gives_the_same_report(options: tuple[str, ...], capsys: Captured) -> None:
    one, other = (found(capsys, *options) for _ in range(2))
    del one["seconds"], other["seconds"]
    assert one == other


# Reconstruction ---------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["least-squares", "box", "kaczmarz", "sgd"])
def test_the_documents_values_by_the_command(solver: str, capsys: Captured) -> None:
    fields = reconstruct_problem(capsys, *HOSPITAL, "--solver", solver, "--reveal")
    assert fields["schema"] == "casemate.attack/1" and fields["solver"] == solver
    assert values(fields) == pytest.approx(SOLUTION, abs=1e-3)
    assert (fields["records"], fields["queries"], fields["equations"]) == (6, 3, 3)
    assert fields["recovered"] == pytest.approx(1 / 6) and fields["finished"] is True


def test_with_constraints_values_are_inside_and_sums_are_kept(
    folder: Path, capsys: Captured
) -> None:
    (folder / "known.csv").write_text("record,lo,hi\n1,,5\n")
    options = (*HOSPITAL, "--bounds", "3:10", "--known", "known.csv", "--reveal")
    fields = reconstruct_problem(capsys, *options)
    ends = [(each["lo"], each["hi"]) for each in fields["values"]]
    assert ends[0] == pytest.approx((3, 5), abs=1e-3)
    assert ends[4] == pytest.approx((6.4, 8.4), abs=1e-3)
    x = values(fields)
    sums = [sum(x), x[2] + x[3] + x[5], x[0] + x[4]]
    assert sums == pytest.approx([32.1, 15.5, 11.4], abs=1e-3)


def test_no_value_is_printed_until_it_is_told_to(capsys: Captured) -> None:
    command = ("attack", "reconstruct", "q.sql", *HOSPITAL)
    printed = told(capsys, *command)
    assert "recovered 16.7 % of 6 private values, by the solver box" in printed
    assert "(leave one out)" in printed and "5.2" not in printed and "5.7" not in printed
    fields = reconstruct_problem(capsys, *HOSPITAL)
    assert fields["values"] is None and fields["quantiles"]["max"] == 2
    assert "record 2: Blood sugar = 5.2 (5.2 to 5.2)" in told(capsys, *command, "--reveal")


@pytest.mark.parametrize("cells", [("30", "40", "50", ""), ("1", "2", "3", "1")])
def test_an_outsider_needs_the_public_columns_and_the_answers(
    cells: tuple[str, ...], folder: Path, capsys: Captured
) -> None:
    first, second, third, only = cells  # by their key, or by their number
    (folder / "a.csv").write_text(
        f"query,cell,answer\n1,{first},300\n1,{second},400\n1,{third},800\n2,{only},200\n"
    )
    options = (*OUTSIDE, "--answers", "a.csv")
    fields = reconstruct_problem(capsys, *options, queries="pay.sql")
    assert values(fields) == pytest.approx([100, 200, 400, 800])
    assert [each["record"] for each in fields["values"]] == [1, 2, 3, 4]
    for name in ("recovered", "within", "baseline", "difference", "coverage", "tolerance"):
        assert fields[name] is None
    printed = told(capsys, "attack", "reconstruct", "pay.sql", *options)
    assert "reconstructed 4 values (the table does not have the truth)" in printed
    assert "record 2: pay = 200" in printed


def test_a_log_may_have_its_own_answers_also_about_a_category(
    folder: Path, capsys: Captured
) -> None:
    (folder / "log.csv").write_text(
        "sql,answer\n"
        "\"SELECT COUNT(*) FROM t WHERE age = 30 AND status = 'C'\",1\n"
        "\"SELECT COUNT(DISTINCT id) FROM t WHERE id > 1 AND status = 'C'\",1\n"
        "\"SELECT COUNT(*) FROM t WHERE id IN (2, 4) AND status = 'C'\",0\n"
        "\"SELECT COUNT(*) FROM t WHERE id = 3 AND status = 'C'\",1\n"
    )
    fields = reconstruct_problem(capsys, *OUTSIDE[:2], "--private", "status", queries="log.csv")
    assert values(fields) == ["C", None, "C", None]
    assert {each["column"] for each in fields["values"]} == {"status"}


def test_several_private_columns_are_reported_each(folder: Path, capsys: Captured) -> None:
    (folder / "two.csv").write_text("id,pay,ill\n1,100,0\n2,200,1\n3,400,1\n")
    (folder / "two.sql").write_text(
        ";".join(f"SELECT SUM(pay), SUM(ill) FROM t WHERE id <= {i}" for i in (1, 2, 3))
    )
    options = ("--table", "two.csv", "--private", "pay", "--private", "ill")
    fields = reconstruct_problem(capsys, *options, queries="two.sql")
    assert [each["column"] for each in fields["columns"]] == ["ill", "pay"]
    assert fields["recovered"] == 1 and fields["difference"] is None
    assert set(fields["baseline"]) == {"prior_mean", "majority", "marginal", "leave_one_out"}


def test_queries_that_cannot_be_used_are_named(folder: Path, capsys: Captured) -> None:
    (folder / "q.sql").write_text(f'SELECT MAX("Blood sugar") FROM t;{SUMS}SELECT SUM(x) FROM t')
    fields = reconstruct_problem(capsys, *HOSPITAL)
    assert [each["query"] for each in fields["refused"]] == [1, 5]
    printed = told(capsys, "attack", "reconstruct", "q.sql", *HOSPITAL)
    assert "not used: 2" in printed and "query 5 (line 5): there is no column x" in printed


# Plans ------------------------------------------------------------------------------------------


def planned(capsys: Captured, *options: str) -> dict[str, Any]:
    return shown(capsys, "attack", "plan", *options)


def test_a_plan_for_one_record_is_its_queries_or_why_there_is_none(capsys: Captured) -> None:
    options = (*HOSPITAL, "--target", "2", "--min-count", "3")
    found = planned(capsys, *options)
    assert found.pop("seconds") >= 0
    assert found == {
        "schema": "casemate.attack-plan/1",
        "target": 2,
        "private": "Blood sugar",
        "records": 6,
        "min_count": 3,
        "queries": [
            'SELECT SUM("Blood sugar") FROM t',
            'SELECT SUM("Blood sugar") FROM t WHERE "ZIP" <= 43765',
        ],
        "combination": [1, -1],
        "counts": [6, 5],
        "values": None,
        "decoder": None,
        "verified": True,
        "optimal": True,
        "lower_bound": 2,
        "inseparable": [],
        "undetermined": [],
        "impossible": False,
        "reason": None,
    }
    assert told(capsys, "attack", "plan", *options) == (
        "record 2: 2 queries, the fewest possible; verified\n"
        "every query selects at least 3 records\n\n"
        "queries:\n"
        '  1. SELECT SUM("Blood sugar") FROM t;  -- 6 records\n'
        '  2. SELECT SUM("Blood sugar") FROM t WHERE "ZIP" <= 43765;  -- 5 records\n\n'
        "Blood sugar of record 2 = query 1 - query 2\n"
    )
    found = planned(capsys, *options, "--max-queries", "1")
    assert (found["queries"], found["verified"], found["impossible"]) == ([], False, True)
    assert told(capsys, "attack", "plan", *options, "--max-queries", "1") == (
        "no plan for record 2\nrecord 2 needs at least 2 queries, and the limit is 1\n"
        "this is proved\n"
    )


def test_a_plan_for_all_has_a_combination_for_each(capsys: Captured) -> None:
    found = planned(capsys, *HOSPITAL, "--target", "all", "--min-count", "4")
    assert found["verified"] and not found["optimal"]
    assert [each["record"] for each in found["combination"]] == [2, 3, 4, 6]
    assert found["undetermined"] == [1, 5]
    queries = {term["query"] for each in found["combination"] for term in each["combination"]}
    assert queries == set(range(1, len(found["queries"]) + 1))


def test_a_plan_may_be_in_another_dialect_and_about_a_bare_table(
    folder: Path, capsys: Captured
) -> None:
    found = planned(capsys, *HOSPITAL, "--target", "2", "--dialect", "mysql")
    assert found["queries"] == ["SELECT SUM(`Blood sugar`) FROM t WHERE `ZIP` = 43813"]
    (folder / "t.csv").write_text("a,s\n1,5\n2,6\n3,7\n")
    bare = ("--table", "t.csv", "--private", "s", "--target", "2", "--seconds", "0")
    assert planned(capsys, *bare)["queries"] == ['SELECT SUM("s") FROM t WHERE "a" = 2']


# Yes/no answers ---------------------------------------------------------------------------------


def test_an_attack_by_bits_is_an_object_and_has_a_text(capsys: Captured) -> None:
    fields = found(capsys, *MANY, "--noise", "laplace:50", "--queries", "3000")
    assert fields["schema"] == "casemate.one-bit/1" and fields["finished"] is True
    assert (fields["dimensions"], fields["queries"], fields["records"]) == (16, 3000, 60)
    assert (fields["learner"], fields["kind"], fields["told"]) == ("kalman", "median", "law")
    assert fields["error"] < fields["baseline"] / 4 and 0.5 < fields["ratio"] < 3
    assert fields["values"] is None and fields["identifiable"] == 16
    assert fields["curve"][-1]["queries"] == 3000
    printed = told(capsys, "attack", *MANY, "--noise", "uniform:5", "--queries", "1000")
    assert printed.startswith("after 1,000 yes/no answers totals of pay were off by")
    assert "bounded noise is a gift to the attacker" in printed


def test_values_are_there_when_they_are_asked_for_and_a_policy_names_the_column_and_its_bounds(
    capsys: Captured,
) -> None:
    few = ("--noise", "laplace:1", "--queries", "100", "--dimensions", "3")
    fields = found(capsys, "one-bit", *HOSPITAL, *few)
    assert (fields["private"], fields["dimensions"]) == ("Blood sugar", 3)
    options = (*MANY, "--noise", "gaussian:0.001", "--queries", "2000", "--dimensions", "4")
    fields = found(capsys, *options, "--reveal")
    truth = [7 * place % 40 for place in range(60)]
    means = [sum(truth[15 * j : 15 * (j + 1)]) / 15 for j in range(4)]
    assert values(fields) == pytest.approx(means, abs=0.01)
    groups = ["id <= 14", "14 < id <= 29", "29 < id <= 44", "id > 44"]
    assert [each["group"] for each in fields["values"]] == groups


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ((), "learner", "edge"),
        (("--told", "scale"), "learner", "kalman"),
        (("--told", "nothing"), "learner", "automatic"),
        (("--weights", "subsets"), "weights", "subsets"),
        (("--learner", "bisection"), "weights", "single"),
        *((("--learner", name), "learner", name) for name in get_args(commands.LearnerChoice)[1:]),
    ],
)
def test_learners_what_they_are_told_and_weights_can_be_chosen(
    options: tuple[str, ...], field: str, value: str, capsys: Captured
) -> None:
    asked = (*MANY, "--noise", "uniform:50", "--queries", "500", "--dimensions", "2")
    assert found(capsys, *asked, *options)[field] == value


# Classifiers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("classifier", [PREDICT[1:3], ("--command", f"{sys.executable} stolen.py")])
def test_a_function_and_a_process_are_copied_alike(
    classifier: tuple[str, str], capsys: Captured
) -> None:
    options = ("--dimension", "3", "--truth", "truth.json")
    fields = found(capsys, "extract", *classifier, *options)
    assert fields["angle"] < 1e-5 and fields["offset"] < 1e-5
    assert fields["queries"] <= 21 * 4 and fields["labels"] == ["ham", "spam"]
    assert fields["learner"] == "lowd-meek" and fields["agreement"] == 1
    assert fields["weights"] == pytest.approx([0.43644, -0.87287, 0.21822], abs=1e-4)


def test_queries_are_what_the_classifier_was_asked(capsys: Captured) -> None:
    fields = found(capsys, *PREDICT, "--queries", "50", "--bounds=-30:5")
    assert fields["queries"] == sys.modules["stolen"].count <= 50
    assert fields["bounds"] == [-30, 5]


def test_noisy_labels_are_told_with_their_noise_and_a_curve_as_one(capsys: Captured) -> None:
    noisy = ("extract", "--predict", "stolen:noisy", "--dimension", "3")
    fields = found(capsys, *noisy, "--truth", "truth.json")
    assert fields["learner"] == "filter" and fields["angle"] < 0.05
    assert 0.05 < fields["noise"] < 0.15  # 0.2 over the length of the weights
    fields = found(capsys, *noisy, "--learner", "retraining", "--queries", "400")
    assert fields["learner"] == "retraining" and fields["queries"] == 400
    curve = ("attack", "extract", "--predict", "stolen:parabola", "--dimension", "2")
    printed = told(capsys, *curve, "--seed", "1")
    assert "no flat boundary explains" in printed and "the classifier is not linear" in printed
    assert "foretells the labels of" in printed
