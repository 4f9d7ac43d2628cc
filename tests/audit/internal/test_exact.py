"""Decided exactly: equal to ranks in fractions and to plain linear programs, never by floats."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from exact_rank import Matrix, anti_hadamard, determined, generated
from scipy.optimize import linprog

from casemate.audit import Audit, AuditOptions
from casemate.audit.result import Audited, Proof, Verdict
from casemate.published import Knowledge

LARGEST = 99_999_989


def systems(rng: Random, count: int, kind: str) -> list[Matrix]:
    """Small systems of one kind: 0/1, weights, repeated and empty equations among them."""
    found: list[Matrix] = []
    while len(found) < count:
        matrix = [
            [value % LARGEST if abs(value) > LARGEST else value for value in row]
            for row in generated(rng)
        ]
        if kind == "weights" or all(value in (0, 1) for row in matrix for value in row):
            found.append(matrix)
    return found


def write(
    systems: Sequence[Matrix], private: Sequence[object], path: Path
) -> list[tuple[int, int]]:
    """One table for many systems: w0, w1, ... weigh each record; where each record belongs."""
    most = max(map(len, systems))
    lines = [",".join(["part", *(f"w{i}" for i in range(most)), "x"])]
    records: list[tuple[int, int]] = []
    for number, matrix in enumerate(systems):
        for column in range(len(matrix[0])):
            weights = [str(row[column]) for row in matrix] + [""] * (most - len(matrix))
            lines.append(",".join([str(number), *weights, str(private[len(records)])]))
            records.append((number, column))
    path.write_text("\n".join(lines) + "\n")
    return records


def expected(systems: Sequence[Matrix]) -> set[tuple[int, int]]:
    return {(number, column) for number, m in enumerate(systems) for column in determined(m)}


WEIGHED = "SELECT part, SUM(w{0} * x) FROM t GROUP BY part"
CHOSEN = [
    "SELECT part, SUM(x) FROM t WHERE w{0} = 1 GROUP BY part",
    "SELECT part, AVG(x) FILTER (WHERE w{0} = 1) FROM t GROUP BY part",
    "SELECT part, SUM(CASE WHEN w{0} = 1 THEN x ELSE 0 END) FROM t GROUP BY part",
    "SELECT part, SUM(x) / COUNT(*) FROM t WHERE w{0} = 1 GROUP BY part",
]


def asked(rng: Random, systems: Sequence[Matrix], kind: str) -> list[str]:
    forms = [WEIGHED] if kind == "weights" else CHOSEN
    return [rng.choice(forms).format(row) for row in range(max(map(len, systems)))]


@pytest.mark.theorem("002: Which records are exposed? (all columns)")
@pytest.mark.parametrize("kind", ["weights", "yes or no"])
def test_exactly_those_are_exposed_without_whom_the_rank_is_smaller(
    kind: str, seed: int, tmp_path: Path
) -> None:
    rng = Random(f"{seed} {kind}")
    for _ in range(2):
        chosen = systems(rng, 20, kind)
        values = [Fraction(rng.randint(-999, 999), 4) for m in chosen for _ in m[0]]
        places = write(chosen, [float(value) for value in values], tmp_path / "t.csv")
        log, alone = asked(rng, chosen, kind), AuditOptions(group_size=1)
        found = Audit.of(log, tmp_path / "t.csv", private="x", options=alone)
        shown = {places[int(str(each.record)) - 1]: each for each in found.exposed}
        assert shown.keys() == expected(chosen)
        for record, value in zip(places, values, strict=True):
            assert record not in shown or shown[record].value == value
        assert all(each.proof is Proof.RANK for each in found.exposed)


# Floats must not decide -------------------------------------------------------------------------


def sums_of(matrix: Matrix, tmp_path: Path, rng: Random) -> tuple[Audited, list[int]]:
    values = [rng.randint(-99, 99) for _ in matrix[0]]
    write([matrix], values, tmp_path / "t.csv")
    log = [f"SELECT SUM(w{row} * x) FROM t" for row in range(len(matrix))]
    return Audit.of(log, tmp_path / "t.csv", private="x"), values


def ids(size: int, folder: Path, rng: Random) -> list[int]:
    values = [rng.randint(0, 99) for _ in range(size)]
    lines = [f"{i},{value}" for i, value in enumerate(values, start=1)]
    (folder / "t.csv").write_text("\n".join(["id,x", *lines]) + "\n")
    return values


def test_all_of_the_70_anti_hadamard_queries_victims_are_found(rng: Random, tmp_path: Path) -> None:
    values = ids(70, tmp_path, rng)
    log = [
        f"SELECT SUM(x) FROM t WHERE id = {i} OR (id > {i} AND (id - {i}) % 2 = 1)"
        for i in range(1, 71)
    ]
    by_rank = AuditOptions(group_size=1, insiders=0, certificates=0)
    found = Audit.of(log, tmp_path / "t.csv", private="x", options=by_rank)
    assert [(each.record, each.value) for each in found.exposed] == list(enumerate(values, start=1))
    assert all(each.proof is Proof.RANK for each in found.exposed)
    without_the_last = Audit.of(log[:-1], tmp_path / "t.csv", private="x", options=by_rank)
    assert (without_the_last.verdict, without_the_last.exposed) == (Verdict.NONE_EXPOSED, ())


def test_floating_point_ranks_would_miss_most_of_them() -> None:
    """Which is why they do not decide."""
    dense = np.array(anti_hadamard(70), float)
    full = np.linalg.matrix_rank(dense)
    smaller = [np.linalg.matrix_rank(np.delete(dense, j, axis=1)) < full for j in range(70)]
    assert sum(smaller) < 35


def test_two_rows_whose_determinant_is_a_famous_prime_expose_both(
    rng: Random, tmp_path: Path
) -> None:
    """2^31 x + y and x + 2^30 y have determinant 2^61 - 1: dependent modulo that prime."""
    found, values = sums_of([[2**31, 1], [1, 2**30]], tmp_path, rng)
    assert [(each.record, each.value) for each in found.exposed] == [(1, values[0]), (2, values[1])]


# Intervals ---------------------------------------------------------------------------------------


def test_every_interval_is_that_of_two_plain_linear_programs(seed: int, tmp_path: Path) -> None:
    rng = Random(f"intervals {seed}")
    for _ in range(8):
        size, rows = rng.randint(2, 7), rng.randint(1, 4)
        chosen = [[rng.random() < 0.6 for _ in range(size)] for _ in range(rows)]
        matrix = [[int(each) for each in row] for row in chosen if any(row)]
        if not matrix:
            continue
        high = rng.choice([5, 10])
        values = [round(rng.uniform(0, high), 1) for _ in range(size)]
        write([matrix], values, tmp_path / "t.csv")
        log, lines = [], []
        for number, row in enumerate(matrix):
            sql, line = published(rng, number, row, values)
            log.append(sql)
            lines.append(line)
        bounds = Knowledge(Fraction(0), Fraction(high))
        found = Audit.of(log, tmp_path / "t.csv", private="x", knowledge=bounds)
        for each in found.bounds:
            low, most = plain_range(lines, size, high, int(str(each.record)) - 1)
            assert each.low is not None and each.high is not None
            assert float(each.low) == pytest.approx(low, abs=1e-6)
            assert float(each.high) == pytest.approx(most, abs=1e-6)


Line = tuple[list[float], float, float]


def published(
    rng: Random, number: int, row: Sequence[int], values: Sequence[float]
) -> tuple[str, Line]:
    """A sum, or an average rounded to a tenth, with what it says of the sum."""
    total, count = sum(v for v, chosen in zip(values, row, strict=True) if chosen), sum(row)
    weights = [float(each) for each in row]
    if rng.random() < 0.6:
        return f"SELECT SUM(x) FROM t WHERE w{number} = 1", (weights, total, total)
    exact = sum(Fraction(str(v)) for v, c in zip(values, row, strict=True) if c) / count
    tenths = (20 * exact + 1) // 2  # halves away from zero
    low, high = (float((tenths + side) / 10) * count for side in (-0.5, 0.5))
    return f"SELECT ROUND(AVG(x), 1) FROM t WHERE w{number} = 1", (weights, low, high)


def plain_range(lines: Sequence[Line], size: int, high: int, record: int) -> tuple[float, float]:
    table = [weights for weights, _, _ in lines] + [[-w for w in line[0]] for line in lines]
    most = [high for _, _, high in lines] + [-low for _, low, _ in lines]
    ends = []
    for sign in (1, -1):
        costs = np.zeros(size)
        costs[record] = sign
        result = linprog(costs, table, np.array(most) + 1e-9, bounds=[(0, high)] * size)
        assert result.fun is not None
        ends.append(sign * float(result.fun))
    return ends[0], ends[1]
