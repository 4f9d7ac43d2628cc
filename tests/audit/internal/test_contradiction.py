"""Answers that cannot all be true are named, and the rest is audited (`audit.contradiction`)."""

from fractions import Fraction
from pathlib import Path

import pytest
from audit.internal.test_rounding import SUMS, audit, write_log

from casemate.audit import Audit
from casemate.audit.result import Audited, Verdict
from casemate.published import Knowledge


def reasons(found: Audited) -> list[tuple[int, int | None, str]]:
    return [(each.query, each.line, each.reason) for each in found.refused]


@pytest.mark.theorem("002: Which records are exposed? (condition 1)")
def test_the_answer_that_the_table_does_not_give_is_the_one_left_out(tmp_path: Path) -> None:
    found = audit(tmp_path, [('SELECT SUM("Blood sugar") FROM t', "33"), *SUMS])
    assert found.consistent is False
    assert reasons(found) == [(1, 2, "its answer contradicts that of query 2; correct one of them")]
    assert [(each.record, each.value) for each in found.exposed] == [(2, Fraction("5.2"))]


def test_an_answer_out_of_bounds_contradicts_by_itself(tmp_path: Path) -> None:
    found = audit(tmp_path, [*SUMS, ('SELECT SUM("Blood sugar") FROM t WHERE ZIP = 22983', "11")])
    assert [(query, line) for query, line, _ in reasons(found)] == [(4, 5)]
    assert "within the bounds" in found.refused[0].reason
    assert [each.record for each in found.exposed] == [2]


def test_no_whole_numbers_add_up_to_a_half(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,pay\n1,5\n2,7\n")
    lines = [("SELECT SUM(pay) FROM t", "12.5"), ("SELECT SUM(2 * pay) FROM t WHERE id = 1", "10")]
    log = write_log(tmp_path / "log.csv", lines)
    found = Audit.of(log, tmp_path / "t.csv", private="pay")
    assert [(each.query, each.reason[:29]) for each in found.refused] == [
        (1, "no values of the right type w")
    ]
    assert [each.record for each in found.exposed] == [1]


def test_whole_numbers_may_contradict_where_others_do_not(tmp_path: Path) -> None:
    """6 x + 10 y + 15 z = 29 has no solution in whole numbers from 0 to 2."""
    (tmp_path / "t.csv").write_text("w,pay\n6,1\n10,1\n15,1\n")
    log = write_log(tmp_path / "log.csv", [("SELECT SUM(w * pay) FROM t", "29")])
    up_to_two = Knowledge(Fraction(0), Fraction(2))
    found = Audit.of(log, tmp_path / "t.csv", private="pay", knowledge=up_to_two)
    assert (found.verdict, found.consistent) == (Verdict.INCOMPLETE, False)
    assert not found.exposed and found.undecided == (1, 2, 3)


def test_rounding_makes_room_for_answers_that_exact_ones_would_contradict(tmp_path: Path) -> None:
    lines = [*SUMS, ('SELECT SUM("Blood sugar") FROM t', "32")]
    assert audit(tmp_path, lines).consistent is False
    assert audit(tmp_path, lines, rounding=True).consistent is True


def test_an_extreme_that_is_not_the_tables_is_left_out(tmp_path: Path) -> None:
    found = audit(tmp_path, [*SUMS, ('SELECT MAX("Blood sugar") FROM t', "9.5")])
    assert [(query, line) for query, line, _ in reasons(found)] == [(4, 5)]
    assert "not the table's" in found.refused[0].reason
    assert [each.record for each in found.exposed] == [2]


def test_what_is_not_a_number_is_named_with_its_line(tmp_path: Path) -> None:
    found = audit(tmp_path, [SUMS[0], ('SELECT SUM("Blood sugar") FROM t', "many"), *SUMS[1:]])
    assert reasons(found) == [(2, 3, "the answer is not a number")]
    assert [(each.record, each.by) for each in found.exposed] == [(2, 4)]


@pytest.mark.parametrize("missing", ["none", "secret", "public"])
@pytest.mark.parametrize("kind", ["integer", "decimal"])
@pytest.mark.parametrize("extreme", ["MIN(x) FROM t WHERE k = 1", "MEDIAN(x) FROM t WHERE k = 1"])
@pytest.mark.parametrize("told", [["3"], []])
def test_an_answer_beside_an_extreme_that_the_table_does_not_give_is_left_out(
    missing: str, kind: str, extreme: str, told: list[str], tmp_path: Path
) -> None:
    policy, log = tmp_path / "n.toml", tmp_path / "log.csv"
    (tmp_path / "n.csv").write_text("k,x,y\n1,3,2\n3,4,2\n")
    policy.write_text(
        '[table]\nsource = "n.csv"\n[columns.k]\n'
        f'[columns.x]\nrole = "private"\ntype = "{kind}"\nmin = 0\nmax = 9\nmissing = "{missing}"\n'
        '[columns.y]\nrole = "private"\ntype = "integer"\nmin = 0\nmax = 9\n'
    )
    sums = [("SELECT SUM(x) FROM t WHERE k = 1", 4), ("SELECT SUM(y) FROM t WHERE k = 1", 3)]
    lines = "".join(f"{sql},{answer}\n" for sql, answer in sums)
    log.write_text(f"sql,answer\n{lines}SELECT {extreme},{''.join(told)}\n")
    found = Audit.of(log, policy)
    assert [(each.query, each.line) for each in found.refused] == [(1, 2)]
    assert found.consistent is None
    exposed = {(each.record, each.column): each.value for each in found.exposed}
    assert exposed == {(1, "x"): 3, (1, "y"): 3}  # of y nothing contradicts what was given


def test_what_a_false_answer_says_of_another_number_through_a_sum_is_left_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "n.csv").write_text("k,x,y\n1,4,3\n2,5,1\n")
    log = tmp_path / "log.csv"
    log.write_text(
        "sql,answer\nSELECT SUM(x) + SUM(y) FROM t WHERE k = 1,7\n"
        "SELECT SUM(y) FROM t WHERE k = 1,4\nSELECT MIN(x) FROM t WHERE k = 1,4\n"
    )
    found = Audit.of(log, tmp_path / "n.csv", private=["x", "y"])
    assert [each.query for each in found.refused] == [2]
    exposed = {(each.record, each.column): each.value for each in found.exposed}
    assert exposed.get((1, "x")) == 4 and exposed.get((1, "y"), 3) == 3
