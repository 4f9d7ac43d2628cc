"""The command `casemate attack reconstruct`: what it prints, bad input, and Ctrl-C."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from casemate.attack import commands as attack
from casemate.attack.reconstruct.reconstruction import Solver
from casemate.cli.main import ended

QUERIES = """
SELECT SUM("Blood sugar") FROM hospital;
SELECT SUM("Blood sugar") FROM hospital WHERE Gender = 'Female';
SELECT SUM("Blood sugar") FROM hospital WHERE ZIP > 32000 AND ZIP < 35000 AND Gender = 'Male';
"""
THIRD = 31 / 6
SOLUTION = [5.7, 5.2, THIRD, THIRD, 5.7, THIRD]
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.sql").write_text(QUERIES)
    (tmp_path / "people.csv").write_text("id,age,pay\n1,30,100\n2,30,200\n3,40,400\n4,50,800\n")
    (tmp_path / "seen.csv").write_text("id,age\n1,30\n2,30\n3,40\n4,50\n")
    (tmp_path / "pay.sql").write_text(
        "SELECT age, SUM(pay) FROM t GROUP BY age; SELECT SUM(pay) FROM t WHERE id < 3 AND id <> 1"
    )
    return tmp_path


def reconstruct(*options: str, queries: str = "q.sql") -> int:
    return ended(["attack", "reconstruct", queries, *options, "--seed", "1"])


def found(capsys: Captured, *options: str, queries: str = "q.sql") -> dict[str, Any]:
    assert reconstruct(*options, "--format", "json", queries=queries) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def values(fields: dict[str, Any]) -> list[Any]:
    return [each["value"] for each in fields["values"]]


# The document's example -----------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["least-squares", "box", "kaczmarz", "sgd"])
def test_the_documents_values_by_the_command(solver: str, capsys: Captured) -> None:
    fields = found(capsys, "--table", "hospital", "--solver", solver, "--reveal")
    assert fields["schema"] == "casemate.attack/1" and fields["solver"] == solver
    assert values(fields) == pytest.approx(SOLUTION, abs=1e-3)
    assert (fields["records"], fields["queries"], fields["equations"]) == (6, 3, 3)
    assert fields["recovered"] == pytest.approx(1 / 6) and fields["finished"] is True


def test_with_constraints_values_are_inside_and_sums_are_kept(
    folder: Path, capsys: Captured
) -> None:
    (folder / "known.csv").write_text("record,lo,hi\n1,,5\n")
    options = ("--table", "hospital", "--bounds", "3:10", "--known", "known.csv", "--reveal")
    fields = found(capsys, *options)
    x = values(fields)
    assert 3 <= x[0] <= 5.0001 and 6.3999 <= x[4] <= 8.4001
    ends = [(each["lo"], each["hi"]) for each in fields["values"]]
    assert ends[0] == pytest.approx((3, 5), abs=1e-3)
    assert ends[4] == pytest.approx((6.4, 8.4), abs=1e-3)
    sums = [sum(x), x[2] + x[3] + x[5], x[0] + x[4]]
    assert sums == pytest.approx([32.1, 15.5, 11.4], abs=1e-3)


# What it hides --------------------------------------------------------------------------------


def test_no_value_is_printed_until_it_is_told_to(folder: Path, capsys: Captured) -> None:
    assert reconstruct("--table", "hospital") == 0
    printed = capsys.readouterr().out
    assert "recovered 16.7 % of 6 private values, by the solver box" in printed
    assert "(leave one out)" in printed and "5.2" not in printed and "5.7" not in printed
    fields = found(capsys, "--table", "hospital")
    assert fields["values"] is None and fields["quantiles"]["max"] == 2
    assert reconstruct("--table", "hospital", "--reveal") == 0
    assert "record 2: Blood sugar = 5.2 (5.2 to 5.2)" in capsys.readouterr().out


def test_the_page_goes_to_a_file_and_hides_values_too(folder: Path, capsys: Captured) -> None:
    options = ("--table", "hospital", "--format", "html", "--output", "attack.html")
    assert reconstruct(*options) == 0
    assert capsys.readouterr().out == ""
    hidden = (folder / "attack.html").read_text()
    assert hidden.startswith("<!DOCTYPE html>") and "How much noise would be enough" in hidden
    assert "5.16667" not in hidden and 'id="values"' not in hidden
    assert reconstruct(*options, "--reveal") == 0
    shown = (folder / "attack.html").read_text()
    assert "5.16667" in shown and "Found against true values" in shown


def test_the_same_seed_gives_the_same_report(capsys: Captured) -> None:
    options = ("--table", "hospital", "--noise", "laplace:0.5", "--reveal")
    one, other = found(capsys, *options), found(capsys, *options)
    del one["seconds"], other["seconds"]
    assert one == other and one["noise"] == "laplace:0.5"
    assert values(one) != pytest.approx(SOLUTION, abs=1e-3)


# The outsider's view --------------------------------------------------------------------------


def test_an_outsider_needs_the_public_columns_and_the_answers(
    folder: Path, capsys: Captured
) -> None:
    (folder / "a.csv").write_text("query,cell,answer\n1,30,300\n1,40,400\n1,50,800\n2,,200\n")
    options = ("--table", "seen.csv", "--private", "pay", "--answers", "a.csv")
    fields = found(capsys, *options, queries="pay.sql")
    assert values(fields) == pytest.approx([100, 200, 400, 800])
    assert [each["record"] for each in fields["values"]] == [1, 2, 3, 4]
    for name in ("recovered", "within", "baseline", "difference", "coverage", "tolerance"):
        assert fields[name] is None
    assert reconstruct(*options, queries="pay.sql") == 0
    printed = capsys.readouterr().out
    assert "reconstructed 4 values (the table does not have the truth)" in printed
    assert "record 2: pay = 200" in printed


def test_cells_by_their_number_and_a_log_with_its_own_answers(
    folder: Path, capsys: Captured
) -> None:
    (folder / "a.csv").write_text("query,cell,answer\n1,1,300\n1,2,400\n1,3,800\n2,1,200\n")
    options = ("--table", "seen.csv", "--private", "pay")
    numbered = found(capsys, *options, "--answers", "a.csv", queries="pay.sql")
    (folder / "log.csv").write_text(
        "sql,answer\nSELECT SUM(pay) FROM t WHERE age = 30,300\n"
        "SELECT SUM(pay) FROM t WHERE age = 40,400\nSELECT SUM(pay) FROM t WHERE age = 50,800\n"
        "SELECT SUM(pay) FROM t WHERE id = 2,200\n"
    )
    logged = found(capsys, *options, queries="log.csv")
    assert values(numbered) == pytest.approx([100, 200, 400, 800])
    assert values(logged) == pytest.approx(values(numbered))


def test_a_text_category_and_a_count_of_ids(folder: Path, capsys: Captured) -> None:
    (folder / "log.csv").write_text(
        "sql,answer\n"
        "\"SELECT COUNT(*) FROM t WHERE age = 30 AND status = 'C'\",1\n"
        "\"SELECT COUNT(DISTINCT id) FROM t WHERE id > 1 AND status = 'C'\",1\n"
        "\"SELECT COUNT(*) FROM t WHERE id IN (2, 4) AND status = 'C'\",0\n"
        "\"SELECT COUNT(*) FROM t WHERE id = 3 AND status = 'C'\",1\n"
    )
    fields = found(capsys, "--table", "seen.csv", "--private", "status", queries="log.csv")
    assert values(fields) == ["C", None, "C", None]
    assert {each["column"] for each in fields["values"]} == {"status"}


# Several columns, refused queries -------------------------------------------------------------


def test_several_private_columns_are_reported_each(folder: Path, capsys: Captured) -> None:
    (folder / "two.csv").write_text("id,pay,ill\n1,100,0\n2,200,1\n3,400,1\n")
    (folder / "two.sql").write_text(
        ";".join(f"SELECT SUM(pay), SUM(ill) FROM t WHERE id <= {i}" for i in (1, 2, 3))
    )
    options = ("--table", "two.csv", "--private", "pay", "--private", "ill")
    fields = found(capsys, *options, queries="two.sql")
    assert [each["column"] for each in fields["columns"]] == ["ill", "pay"]
    assert fields["recovered"] == 1 and fields["difference"] is None
    assert set(fields["baseline"]) == {"prior_mean", "majority", "marginal", "leave_one_out"}


def test_queries_that_cannot_be_used_are_named(folder: Path, capsys: Captured) -> None:
    (folder / "q.sql").write_text(f'SELECT MAX("Blood sugar") FROM t;{QUERIES}SELECT SUM(x) FROM t')
    fields = found(capsys, "--table", "hospital")
    assert [each["query"] for each in fields["refused"]] == [1, 5]
    assert reconstruct("--table", "hospital") == 0
    printed = capsys.readouterr().out
    assert "not used: 2" in printed and "query 5 (line 5): there is no column x" in printed


# Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--bounds", "5:3"), "--bounds 5:3 is empty"),
        (("--bounds", "5"), "not LO:HI"),
        (("--noise", "cauchy:3"), "unknown law of noise 'cauchy:3'"),
        (("--noise", "laplace"), "has no number after its name"),
        (("--noise", "laplace:0"), "must be finite and above 0"),
        (("--noise", "gaussian:-2"), "must be finite and above 0"),
        (("--solver", "magic"), '"least-squares", "box", "convex", "robust", "lp", "integer"'),
        (("--confidence", "0"), "--confidence 0 must lie between 0 and 1"),
        (("--confidence", "1.5"), "--confidence 1.5 must lie between 0 and 1"),
        (("--confidence", "nan"), "must lie between 0 and 1"),
        (("--tolerance=-1",), "--tolerance -1 is no distance"),
        (("--tolerance", "nan"), "--tolerance nan is no distance"),
        (("--known", "gone.csv"), "gone.csv cannot be read"),
        (("--answers", "gone.csv"), "gone.csv cannot be read"),
        (("--dialect", "klingon"), "klingon"),
    ],
)
def test_a_bad_option_is_one_sentence(
    options: tuple[str, ...], sentence: str, capsys: Captured
) -> None:
    assert reconstruct("--table", "hospital", *options) == 2
    assert_one_sentence(sentence, capsys)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["1,,32.1", "2,,15.5"], "query 3 has no answer"),
        (["1,,32.1", "2,,15.5", "3,,11.4", "4,,1"], "answers query 4, and there are 3 queries"),
        (["1,,32.1", "2,,15.5", "3,,NaN"], "line 4: the answer is not a finite number"),
        (["1,,32.1", "2,,15.5", "3,,many"], "line 4: the answer is not a number"),
        (["1,,32.1", "2,x,15.5", "3,,11.4"], "query 2 shows no cell of that name"),
    ],
)
def test_answers_that_do_not_fit_are_one_sentence(
    lines: list[str], sentence: str, folder: Path, capsys: Captured
) -> None:
    (folder / "a.csv").write_text("\n".join(["query,cell,answer", *lines, ""]))
    assert reconstruct("--table", "hospital", "--answers", "a.csv") == 2
    assert_one_sentence(sentence, capsys)


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ("record,value\n1,11\n", "contradicts its bounds"),
        ("record,lo,hi\n1,6,4\n", "contradicts its bounds, or itself"),
        ("record,value\n77,4\n", "a record that is not in the table"),
        ("record,value\n1,x\n", "not a number"),
    ],
)
def test_what_cannot_be_known_is_one_sentence(
    known: str, sentence: str, folder: Path, capsys: Captured
) -> None:
    (folder / "known.csv").write_text(known)
    assert reconstruct("--table", "hospital", "--known", "known.csv") == 2
    assert_one_sentence(sentence, capsys)


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("", "holds no statement"),
        ("-- nothing\n", "holds no statement"),
        ("SELECT COUNT(*) FROM t", "none of the queries is about a private column"),
        ('SELECT MAX("Blood sugar") FROM t', "none of the queries can be used"),
        ("SELECT SUM(x) FROM t", "there is no column x"),
    ],
)
def test_a_log_without_use_is_one_sentence(
    log: str, sentence: str, folder: Path, capsys: Captured
) -> None:
    (folder / "q.sql").write_text(log)
    assert reconstruct("--table", "hospital") == 2
    assert_one_sentence(sentence, capsys)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--table", "people.csv"), "no column is private"),
        (("--table", "seen.csv", "--private", "pay"), "does not have the private column"),
        (("--table", "nowhere", "--private", "pay"), "nowhere"),
    ],
)
def test_a_table_that_does_not_fit_is_one_sentence(
    options: tuple[str, ...], sentence: str, capsys: Captured
) -> None:
    assert reconstruct(*options, queries="pay.sql") == 2
    assert_one_sentence(sentence, capsys)


def test_a_negative_seed_is_one_sentence(capsys: Captured) -> None:
    assert ended(["attack", "reconstruct", "q.sql", "--table", "hospital", "--seed=-1"]) == 2
    assert_one_sentence("--seed -1 is negative", capsys)


def assert_one_sentence(sentence: str, capsys: Captured) -> None:
    printed = capsys.readouterr()
    assert printed.out == "" and sentence in printed.err and printed.err.count("\n") == 1


def test_every_solver_can_be_asked_for() -> None:
    assert list(get_args(attack.SolverName)) == [solver.value for solver in Solver]


# Ctrl-C ---------------------------------------------------------------------------------------

PROGRAM = """
import sys
from casemate.attack.reconstruct.reconstruction import Watch
from casemate.cli.main import run

plain = Watch.__call__

def told(self, steps, residual, point):
    if steps == 2:
        print("solving", file=sys.stderr, flush=True)
    plain(self, steps, residual, point)

Watch.__call__ = told
run()
"""


@pytest.mark.parametrize("form", ["json", pytest.param("html", marks=pytest.mark.slow)])
def test_an_interrupt_writes_the_best_so_far_and_ends_with_130(form: str, folder: Path) -> None:
    """Ranges of places make a badly conditioned system, which one equation at a time takes long."""
    random = np.random.default_rng(0)
    pay = random.integers(0, 1000, 400) / 10
    rows = [f"{place},{each}" for place, each in enumerate(pay, start=1)]
    (folder / "t.csv").write_text("\n".join(["id,pay", *rows, ""]))
    pairs = np.sort(random.integers(1, 401, (800, 2)), axis=1).tolist()
    sums = (f"SELECT SUM(pay) FROM t WHERE id BETWEEN {low} AND {high}" for low, high in pairs)
    (folder / "q.sql").write_text(";\n".join(sums))
    table = ["q.sql", "--table", "t.csv", "--private", "pay", "--bounds", "0:100"]
    options = [*table, "--solver", "sgd", "--seed", "1", "--format", form]
    command = [sys.executable, "-c", PROGRAM, "attack", "reconstruct", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None and run.stderr.readline() == "solving\n"
        run.send_signal(signal.SIGINT)
        printed, said = run.communicate(timeout=120)
    assert run.returncode == 130
    assert said.endswith("interrupted: this is the best so far\n")
    if form == "json":
        fields = json.loads(printed)
        assert fields["finished"] is False and fields["solver"] == "sgd"
        assert fields["values"] is None and 0 < fields["residual"] < 1
    else:
        assert "interrupted: this is the best so far" in printed
