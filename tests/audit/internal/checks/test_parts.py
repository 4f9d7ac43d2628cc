"""Secrets as points: null vectors of the parts are null vectors of the equations."""

from pathlib import Path
from random import Random

import pytest
from audit.matrices import categories

from casemate.audit.case import Case
from casemate.audit.checks.groups import parts, splits
from casemate.audit.checks.rank import DeterminedByRank, determined
from casemate.published import Knowledge, equations, publication
from casemate.query.parse import Logged
from casemate.table import Table

DECLARED = ("flu", "gout", "none")


def counted(i: int, value: str) -> str:
    return f"SELECT COUNT(*) FROM t WHERE w{i} = 1 AND d = '{value}'"


def read(table: Table, log: list[str]) -> tuple[Case, DeterminedByRank]:
    found = publication([Logged(sql, 1) for sql in log], table.policy)
    system = equations(found.columns, table.policy, table.source, found.there)
    case = Case(system, table.policy, Knowledge(), found, table.source)
    return case, determined(case)


@pytest.mark.parametrize(
    ("log", "split"),
    [
        ([counted(0, "flu"), counted(1, "flu")], True),
        ([counted(0, "flu"), counted(1, "gout")], True),
        ([counted(0, "flu"), counted(0, "gout"), counted(0, "none")], True),
        ([counted(0, "none")], False),
        ([counted(0, "flu"), counted(1, "none")], False),
    ],
)
def test_kinds_of_secrets_split_unless_a_number_ties_them(
    log: list[str], split: bool, tmp_path: Path
) -> None:
    with categories([[1, 1, 0], [0, 1, 1]], ["flu", "gout", "none"], DECLARED, tmp_path) as table:
        assert splits(*read(table, log)) is split


def test_points_keep_every_equation(tmp_path: Path) -> None:
    rng = Random(5)
    matrix = [[rng.choice([0, 1, 1]) for _ in range(7)] for _ in range(4)]
    values = [rng.choice(DECLARED) for _ in range(7)]
    log = [counted(i, value) for i in range(4) for value in rng.sample(DECLARED, 2)]
    with categories(matrix, values, DECLARED, tmp_path) as table:
        case, known = read(table, log)
        small = parts(case, known, 7)
        (null, *_) = known.found.null
        points = small.points(null, rng.randbytes)
    single = {part.columns[0]: k for k, part in enumerate(small.listed) if len(part.columns) == 1}
    system = case.equations.system
    for vector in points.vectors:
        for line in system.dense():
            total = sum(a * int(vector[single[column]]) for column, a in enumerate(line))
            assert total % null.prime == 0
        for k, part in enumerate(small.listed):
            if len(part.columns) > 1:
                total = sum(int(vector[single[column]]) for column in part.columns)
                assert (int(vector[k]) + total) % null.prime == 0


def test_records_that_too_many_share_are_no_parts(tmp_path: Path) -> None:
    with categories([[1, 1, 1], [1, 0, 0]], ["flu"] * 3, DECLARED, tmp_path) as table:
        case, known = read(table, [counted(0, "flu"), counted(1, "flu")])
        assert {part.record for part in parts(case, known, 1).listed} == {0}
        assert {part.record for part in parts(case, known, 2).listed} == {0, 1, 2}
