"""What a question takes is bounded by the question, and checked before anything is charged."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from answer.small_dataset import world
from grid.internal.test_classes import questions
from grid.small_grid import counting
from hypothesis import given

from casemate.answer import Session, work_limits
from casemate.answer.work_limits import require_answerable
from casemate.errors import Unsupported
from casemate.grid import Classes, GridQuestion, PrivateCells, coarsest_classes, private_cells
from casemate.grid.question import merge_codes
from casemate.query.snapping import histogram
from casemate.table import Table, Universe

WIDE = (7,) * 12


def counted(codes: np.ndarray, shape: tuple[int, ...], asked: list[int]) -> PrivateCells:
    """Cells that are counted by classes, and how many cells each count had."""

    def count(classes: Classes) -> np.ndarray:
        table = np.zeros(classes.sizes, np.int64)
        places = [np.array(labels)[codes[:, a]] for a, labels in _axes(classes)]
        np.add.at(table, tuple(places), 1 if places else len(codes))
        asked.append(table.size)
        return table

    return PrivateCells(shape, count)


def _axes(classes: Classes) -> list[tuple[int, tuple[int, ...]]]:
    return list(zip(classes.scope, classes.labels, strict=True))


def test_a_conjunction_over_many_attributes_is_counted_by_its_classes() -> None:
    codes = np.random.default_rng(3).integers(0, 7, (500, 12))
    asked = counting({a: [0, 2, 3, 5, 6] for a in range(12)}, WIDE)
    sizes: list[int] = []
    cells = counted(codes, WIDE, sizes)
    inside = np.isin(codes, [0, 2, 3, 5, 6]).all(axis=1).sum()
    assert cells.exact(asked) == [[inside]] and sizes == [2**12]
    assert sum(cells.class_counts(coarsest_classes(asked))) == 500 and sizes == [2**12], (
        "it was kept"
    )


@given(questions())
def test_classes_are_counted_as_the_whole_scope_is(asked: GridQuestion) -> None:
    codes = np.random.default_rng(4).integers(0, 2, (50, 3))
    expected = counted(codes, asked.shape, []).exact(asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(private_cells, "MAX_COUNTED_CODES", 0)
        assert counted(codes, asked.shape, []).exact(asked) == expected


@pytest.mark.parametrize("labels", [((0, 1, 0, 1), (0, 0)), ((0, 0, 0, 0), (0, 1))])
def test_an_engine_counts_classes_as_they_are_merged_afterwards(
    labels: tuple[tuple[int, ...], ...], tmp_path: Path
) -> None:
    rows = "a,b\n" + "".join(f"{i % 5},{'xyz'[i % 3]}\n" for i in range(40)) + ",\n"
    (tmp_path / "t.csv").write_text(rows)
    policy = tmp_path / "p.toml"
    policy.write_text(
        f'[table]\nsource = "{tmp_path / "t.csv"}"\n[columns.a]\ntype = "integer"\nmin = 0\n'
        'max = 4\nbins = 3\n[columns.b]\ntype = "text"\nvalues = ["x"]\n'
    )
    with Table.open(policy) as table:
        universe = Universe.of(table.policy)
        whole = histogram(universe, (0, 1), table.source)
        found = histogram(universe, (0, 1), table.source, labels=labels)
    assert found.tolist() == merge_codes(whole, Classes((0, 1), labels)).tolist()


# Limits -------------------------------------------------------------------------------------------


def test_a_question_of_too_many_looks_is_refused_before_anything_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = world(np.zeros((5, 3), np.int64))
    construction = room.construction()
    monkeypatch.setattr(work_limits, "MAX_CELL_READS", 10)
    with pytest.raises(Unsupported, match="look at cells more than 10 times; ask for fewer"):
        construction.ask(counting({0: [1, 2], 1: [0]}))
    assert room.ledger.spent().amount == 0 and room.transcript.newest() is None
    monkeypatch.undo()
    require_answerable(counting({0: [1, 2], 1: [0]}))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELECT a, b, c, COUNT(*), SUM(x), SUM(x + 1), SUM(x + 2), SUM(x + 3), SUM(x + 4), "
            "SUM(x + 5), SUM(x + 6), SUM(x + 7), SUM(x + 8) FROM t GROUP BY a, b, c",
            "more than 65,536 sets of cells",
        ),
        (
            f"SELECT COUNT(*) FROM t WHERE x IN ({', '.join(map(str, range(2000)))})",
            "compares x with more than 1,024 constants",
        ),
    ],
)
def test_a_statement_that_takes_too_long_to_read_is_refused_in_one_sentence(
    sql: str, message: str, wide_policy: Path
) -> None:
    with Session.looking(wide_policy) as session, pytest.raises(Unsupported, match=message):
        session.forecast(sql)


@pytest.fixture
def wide_policy(tmp_path: Path) -> Path:
    names = "abcde"
    (tmp_path / "t.csv").write_text("a,b,c,d,e,x\n" + "1,2,3,4,5,6\n" * 20)
    columns = "".join(
        f'[columns.{name}]\ntype = "integer"\nvalues = {list(range(19))}\n' for name in names
    )
    path = tmp_path / "p.toml"
    path.write_text(
        f'[table]\nsource = "{tmp_path / "t.csv"}"\n{columns}[columns.x]\nrole = "private"\n'
        'type = "integer"\nmin = 0\nmax = 5000\nbins = 10\n[budget]\nepsilon = 1\ndelta = 1e-6\n'
    )
    return path


ADULT_LIKE = (17, 10, 17, 17, 16, 8, 16, 7, 6, 3, 17, 17, 17, 43, 3)
ADDRESS_SPACE = 3 * 2**30

SCRIPT = """
import resource, sys
from casemate.answer.session import Session
with Session(sys.argv[1]) as session:
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
    print(session.query(sys.argv[3]).origin)
"""


@pytest.mark.slow
def test_a_conjunction_over_nine_columns_is_answered_in_little_memory(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(len(ADULT_LIKE))]
    random = np.random.default_rng(1)
    records = np.stack([random.integers(0, size - 1, 3000) for size in ADULT_LIKE], axis=1)
    lines = [",".join(names), *(",".join(map(str, row)) for row in records.tolist())]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    columns = "".join(
        f'[columns.{name}]\ntype = "integer"\nvalues = {list(range(size - 1))}\n'
        for name, size in zip(names, ADULT_LIKE, strict=True)
    )
    policy = tmp_path / "p.toml"
    policy.write_text(
        f'[table]\nsource = "{tmp_path / "t.csv"}"\n{columns}[budget]\nepsilon = 1\n'
        'delta = 1e-6\n[answer]\nstrategy = "cold"\n'
    )
    where = " AND ".join(f"{name} >= 1" for name in names[:9])
    sql = f"SELECT COUNT(*) FROM t WHERE {where}"
    script = [sys.executable, "-c", SCRIPT, str(policy), str(ADDRESS_SPACE), sql]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(script, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("surrogate", "measured")
    cells = int(np.prod(ADULT_LIKE[:9], dtype=np.int64))
    assert 8 * cells > ADDRESS_SPACE, "the twin: all codes of the scope would not fit"
