"""What is measured for a question, and how much work one may be: both by the question alone."""

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from answer.session_world import codes, csv, policy
from answer.small_dataset import world
from grid.small_grid import SHAPE, counting

from casemate.answer import Session, work_limits
from casemate.answer.schedule import predicted_error, table_for
from casemate.answer.work_limits import require_answerable
from casemate.errors import Unsupported
from casemate.grid import GridQuestion, LinearCells, Product, Relation, all_codes, coarsest_classes
from casemate.privacy.noise import GaussianLaw

LAW = GaussianLaw(Fraction(10))
ASKED = counting({0: [1, 2], 1: [0]})


def test_the_error_that_is_predicted_is_that_of_the_noise_of_the_cells_read() -> None:
    assert predicted_error(ASKED, all_codes((0, 1), SHAPE), LAW, Relation()) == pytest.approx(
        200**0.5
    )
    assert predicted_error(ASKED, coarsest_classes(ASKED), LAW, Relation()) == pytest.approx(10)


def test_the_error_is_counted_in_what_a_person_moves() -> None:
    added = GridQuestion((LinearCells(((Product(SHAPE, {}, {0: np.array([0.0, 0, 0, 7])}),),)),))
    assert predicted_error(added, all_codes((0,), SHAPE), LAW, Relation()) == pytest.approx(10)
    assert predicted_error(added, all_codes((0,), SHAPE), LAW, Relation(rows=2)) == pytest.approx(5)


def test_the_whole_table_is_taken_where_it_is_good_enough() -> None:
    assert table_for(ASKED, SHAPE, LAW, Relation(), 29) == all_codes((0, 1), SHAPE)
    assert table_for(ASKED, SHAPE, LAW, Relation(), 28) == coarsest_classes(ASKED)


LARGE = (2000, 2000)


def test_too_large_a_table_is_not_taken_and_one_of_too_many_kinds_is_refused() -> None:
    asked = counting({0: [1], 1: [1]}, LARGE)
    assert table_for(asked, LARGE, LAW, Relation(), 10**9) == coarsest_classes(asked)
    require_answerable(asked)
    weights = {0: np.arange(2000.0), 1: np.arange(2000.0)}
    with pytest.raises(Unsupported, match="kinds of people apart; ask for fewer groups"):
        require_answerable(GridQuestion((LinearCells(((Product(LARGE, {}, weights),),)),)))


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
    sql: str, message: str, tmp_path: Path
) -> None:
    csv(tmp_path / "people.csv", "abcx", [(1, 2, 3, 6)] * 20)
    binned = '[columns.x]\nrole = "private"\ntype = "integer"\nmin = 0\nmax = 5000\nbins = 10\n'
    path = policy(tmp_path, columns=codes(dict.fromkeys("abc", 19)) + binned)
    with Session.looking(path) as session, pytest.raises(Unsupported, match=message):
        session.forecast(sql)


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
    sizes = {f"c{i}": size - 1 for i, size in enumerate(ADULT_LIKE)}
    random = np.random.default_rng(1)
    records = np.stack([random.integers(0, size, 3000) for size in sizes.values()], axis=1)
    csv(tmp_path / "people.csv", list(sizes), records.tolist())
    path = policy(tmp_path, columns=codes(sizes), more='[answer]\nstrategy = "cold"\n')
    where = " AND ".join(f"{name} >= 1" for name in list(sizes)[:9])
    sql = f"SELECT COUNT(*) FROM t WHERE {where}"
    script = [sys.executable, "-c", SCRIPT, str(path), str(ADDRESS_SPACE), sql]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(script, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("surrogate", "measured")
    cells = int(np.prod(ADULT_LIKE[:9], dtype=np.int64))
    assert 8 * cells > ADDRESS_SPACE, "the twin: all codes of the scope would not fit"
