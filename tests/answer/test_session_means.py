"""Means as a session answers them: proven from measured sums, and paid for before the first."""

import json
from pathlib import Path

import pytest
from answer.session_world import number, numbers, truth, world

from casemate.answer import Session
from casemate.doors import EntryKind
from casemate.grid import ProofSource

MEAN = "SELECT AVG(visits) FROM t"
BY_SEX = "SELECT sex, AVG(age) FROM t GROUP BY sex"


@pytest.mark.parametrize("seed", range(3))
def test_means_are_proven_around_the_truth_without_room_for_bins(tmp_path: Path, seed: int) -> None:
    path = world(tmp_path, number=6_000)
    with Session.simulated(path, seed) as session:
        for sql in (MEAN, BY_SEX, "SELECT AVG(bonus) FROM t WHERE ill = 1"):
            answer = session.query(sql)
            expected = [row[-1] for row in truth(path, sql)]
            for cell, true in zip(numbers(answer), expected, strict=False):
                assert cell.proof is ProofSource.TABLES
                assert isinstance(cell.value, float) and cell.lo is not None
                assert cell.lo <= cell.value <= cell.hi  # type: ignore[operator]  # floats
                if true is not None:
                    assert cell.lo <= float(true) <= cell.hi  # type: ignore[operator]  # floats
        whole = number(session.query("SELECT AVG(age) FROM t"))
    assert isinstance(whole.lo, float) and isinstance(whole.hi, float)
    assert whole.hi - whole.lo < 9, "a bin alone is ten years wide"


def test_sums_are_measured_once_for_their_share_of_the_budget(tmp_path: Path) -> None:
    path = world(tmp_path)
    with Session(path) as session:
        session.query(MEAN)
        plan, ledger = session._dataset.construction.plan, session._dataset.doors.ledger
        spent = ledger.spent().amount
        assert 0 < sum(plan.sums) < plan.start_price
        assert spent <= plan.start_price
    with Session(path) as session:
        session.query(BY_SEX)
        assert session._dataset.doors.ledger.spent().amount == spent
        entries = session._dataset.doors.transcript.of_kinds((EntryKind.MEASURED,))
    texts = [json.loads(each.content.question) for each in entries]  # type: ignore[union-attr]
    assert sum("sums" in each for each in texts) == len(plan.sums)


def test_a_mean_over_a_limit_inside_a_bin_keeps_room_for_it(tmp_path: Path) -> None:
    path = world(tmp_path, number=6_000)
    sql = "SELECT AVG(visits) FROM t WHERE age > 33"
    with Session.simulated(path, 5) as session:
        cell = number(session.query(sql))
    (((true,),)) = truth(path, sql)
    assert cell.lo <= float(true) <= cell.hi  # type: ignore[operator]  # floats


SHARES = (
    "1.0 * SUM(CASE WHEN sex = 'f' THEN 1 ELSE 0 END) / COUNT(*)",
    "COUNT(*) FILTER (WHERE sex = 'f') * 1.0 / COUNT(*)",
    "CAST(COUNT(*) FILTER (WHERE sex = 'f') AS DOUBLE) / NULLIF(COUNT(*), 0)",
)


@pytest.mark.parametrize("share", SHARES)
def test_shares_of_a_whole_are_proven_by_themselves_however_they_are_written(
    tmp_path: Path, share: str
) -> None:
    path = world(tmp_path, number=6_000)
    counts = "COUNT(*) FILTER (WHERE sex = 'f'), COUNT(*)"
    mean = "AVG(CASE WHEN sex = 'f' THEN 1 ELSE 0 END)"
    sql = f"SELECT ill, {counts}, {share}, {mean} FROM t GROUP BY ill"
    with Session.simulated(path, 3) as session:
        rows = session.query(sql).rows
    expected = {row[0]: float(row[3]) for row in truth(path, sql)}
    for ill, above, below, cell, same in rows:
        if ill not in expected:
            continue
        ends = [each.band(session=False) for each in (above, below, cell, same)]  # type: ignore[union-attr]
        corners = ends[0][0] / ends[1][1], ends[0][1] / ends[1][0]  # type: ignore[index]
        assert ends[2][0] <= expected[ill] <= ends[2][1]  # type: ignore[index]
        assert ends[2][1] - ends[2][0] < 0.9 * (corners[1] - corners[0])  # type: ignore[index]
        assert ends[2][0] >= 0 and ends[2][1] <= 1  # type: ignore[index]
        assert ends[3] == pytest.approx(ends[2], rel=1e-6)


def test_what_wide_bins_leave_is_no_share_of_a_whole(tmp_path: Path) -> None:
    path = world(tmp_path, number=300)
    with Session.simulated(path, 3) as session:
        for sql, shares in (
            ("SELECT AVG(CASE WHEN ill = 1 THEN 1 ELSE 0 END) FROM t", 1),
            ("SELECT AVG(CASE WHEN age < 20 THEN age ELSE 15 END) FROM t", 0),
            ("SELECT COUNT(*) FILTER (WHERE age < 33) * 1.0 / COUNT(*) FROM t", 0),
            ("SELECT COUNT(*) FILTER (WHERE ill = 1) * 1.0 / COUNT(*) FROM t", 1),
            ("SELECT COUNT(*) FILTER (WHERE ill = 1) / COUNT(*) FROM t", 0),
        ):
            assert len(session._compile(sql).asked.shares) == shares, sql


HALVES = (
    "SELECT SUM(CASE WHEN ill = 1 THEN 1 ELSE 0 END) * 1.0 / "
    "SUM(CASE WHEN ill = 1 THEN 0.5 ELSE 0.5 END) FROM t WHERE sex = 'f'",
    "SELECT COUNT(*) FILTER (WHERE ill = 1) * 1.0 / "
    "SUM(CASE WHEN sex = 'f' THEN 0.5 ELSE 0 END) FROM t WHERE sex = 'f'",
)


@pytest.mark.parametrize("sql", HALVES)
def test_a_quotient_over_halves_of_records_is_no_share_of_a_whole(sql: str, tmp_path: Path) -> None:
    path = world(tmp_path, number=400)
    ((true,),) = truth(path, sql)
    for seed in range(3):
        with Session.simulated(path, seed) as session:
            cell = number(session.query(sql))
        assert cell.lo <= float(true) <= cell.hi  # type: ignore[operator]  # floats


def test_two_means_of_one_sum_do_not_depend_on_their_order(tmp_path: Path) -> None:
    path = world(tmp_path, number=2_000)
    means = ["AVG(visits)", "AVG(COALESCE(visits, 5))"]
    found = []
    for columns in (means, means[::-1]):
        with Session.simulated(path, 1) as session:
            found.append(numbers(session.query(f"SELECT {', '.join(columns)} FROM t")))
    assert found[0] == found[1][::-1]
