"""Answers against the truth: close where the budget is large, and near it where it is usual.

`test_coverage` has what is proven of them. The tables are held out: nothing is tuned to them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answer.session_world import COLUMNS, HEAD, LAVISH, csv, numbers, policy, truth, values, world

from casemate import Session

# A large budget ---------------------------------------------------------------------------------

AREAS = [("f", "north", 2), ("m", "south", 3)]
EXACT: list[tuple[int, list[float], str]] = [  # keys, what a person moves each result by
    (0, [1], "COUNT(*) FROM t"),
    (0, [1], "COUNT(*) FROM t WHERE age < 37 AND sex = 'f'"),
    (0, [15, 0.05, 1], "SUM(visits), AVG(visits), COUNT(visits) FROM t WHERE ill = 1"),
    (1, [1, 0.5], "sex, COUNT(*), AVG(age) FROM t GROUP BY sex ORDER BY sex"),
    (2, [15], "sex, ill, SUM(visits) FROM t WHERE age >= 20 GROUP BY sex, ill ORDER BY 1, 2 DESC"),
    (1, [1], "visits, COUNT(*) n FROM t GROUP BY 1 HAVING COUNT(*) > 60 ORDER BY n DESC LIMIT 2"),
    (0, [0.1, 0.1, 0.1], "MEDIAN(visits), MIN(visits), MAX(age) FROM t WHERE ill = 1"),
    (0, [0.1], "percentile_disc(0.25) WITHIN GROUP (ORDER BY age) FROM t"),
    (0, [0.1], "percentile_cont(0.9) WITHIN GROUP (ORDER BY visits) FROM t WHERE sex = 'm'"),
    (2, [1], "sex, ill, COUNT(*) FROM t GROUP BY GROUPING SETS ((sex), (ill), ()) ORDER BY 1, 2"),
    (0, [15], "COUNT(*) AS n FROM t WHERE ill = 1 UNION ALL SELECT SUM(visits) FROM t ORDER BY n"),
    (
        1,
        [1, 3],
        "area, COUNT(*), SUM(rate) FROM t JOIN areas ON sex = letter GROUP BY 1 ORDER BY 1",
    ),
    (0, [0.2, 2], "SUM(ill) * 100.0 / COUNT(*), COUNT(*) * 2 + 1 FROM t WHERE age > 30"),
    (0, [1, 15], "COUNT(*) FILTER (WHERE ill = 1), SUM(CASE WHEN ill = 1 THEN visits END) FROM t"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of which every value is a cell of its own, so that nothing is snapped."""
    folder = tmp_path_factory.mktemp("single")
    csv(folder / "areas.csv", ("letter", "area", "rate"), AREAS)
    more = '[public.areas]\nsource = "areas.csv"\nkey = "letter"\n'
    columns = COLUMNS.replace("bins = 10\n", "bins = 100\n")
    return world(folder, number=1500, budget=LAVISH, columns=columns, more=more)


@pytest.fixture(scope="module")
def session(table: Path) -> Iterator[Session]:
    with Session(table) as opened:
        yield opened


@pytest.mark.parametrize("measure", [False, True])
@pytest.mark.parametrize("case", EXACT)
def test_with_a_large_budget_answers_are_close_to_the_exact_ones(
    case: tuple[int, list[float], str], measure: bool, table: Path, session: Session
) -> None:
    keys, moves, sql = case
    true = truth(table, f"SELECT {sql}")
    if "LIMIT 2" in sql:  # which the custodian's view does not have
        true = sorted(true, key=lambda row: -row[1])[:2]
    exact = by_key(true, keys)
    answer = session.query(f"SELECT {sql}", measure=measure, all_groups=True)
    assert not any("as if for" in note for note in answer.notes)
    found = by_key(values(answer), keys)
    assert set(exact) <= set(found)
    room = 3 if measure else 12
    for key, rows in found.items():
        nobody = [[0.0] * len(moves)] * (len(rows) - len(exact.get(key, [])))
        for row, wanted in zip(rows, [*exact.get(key, []), *nobody], strict=True):
            for a, b, move in zip(row, wanted, moves, strict=True):
                assert abs(a - b) <= room * move


def by_key(rows: list[tuple[Any, ...]], keys: int) -> dict[tuple[Any, ...], list[list[float]]]:
    """The numbers of each key, largest first; a mean of nobody counts as nothing."""
    found: dict[tuple[Any, ...], list[list[float]]] = {}
    for row in rows:
        found.setdefault(row[:keys], []).append([float(each or 0) for each in row[keys:]])
    return {key: sorted(each, reverse=True) for key, each in found.items()}


# A usual budget ---------------------------------------------------------------------------------


def test_half_of_everybody_is_answered_within_a_few_of_them(tmp_path: Path) -> None:
    """Accuracy that a user would notice if it went away: typical, and not proven."""
    rows = [(i, i % 100, "fm"[i % 2], i % 7, i % 2, i % 15) for i in range(4000)]
    csv(tmp_path / "people.csv", HEAD, rows)
    with Session.simulated(policy(tmp_path), 3) as session:
        answer = session.query("SELECT sex, COUNT(*) FROM t GROUP BY sex", all_groups=True)
    found = [float(cell.value) for cell in numbers(answer)]  # type: ignore[arg-type]  # counts
    assert found[:2] == pytest.approx([2000, 2000], abs=200) and abs(found[2]) < 200
