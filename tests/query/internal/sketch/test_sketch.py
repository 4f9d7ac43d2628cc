"""Records behind many sums: codes in memory and sums in SQL give what membership gives."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import duckdb
import numpy as np
import pytest

from casemate.exact import determine, determine_sketched
from casemate.exact.sketch import with_rest_column
from casemate.query import Aggregate, Function
from casemate.query.engines import answers
from casemate.query.engines import rows as rows_of
from casemate.query.language import TRUE
from casemate.query.parse import parse
from casemate.query.records import membership
from casemate.query.sketch import CodedRecords, HashKeys, Selection, SummedRecords, hash_lanes
from casemate.query.sketch.record_hash import LANE_MASK, fingerprints, lane
from casemate.table import Table
from casemate.table.sources import Source

FORMS = [CodedRecords, SummedRecords]
ENGINES = ["people", pytest.param("people_in_postgres", marks=pytest.mark.postgres)]
Form = type[CodedRecords] | type[SummedRecords]
GROUPED = [
    "SELECT sex, SUM(income) FROM people GROUP BY 1",
    "SELECT area, member, age / 10, SUM(income) FROM people WHERE weight > 2 GROUP BY 1, 2, 3",
    'SELECT note, "Height", SUM(income) FROM people GROUP BY 1, 2',
    "SELECT score, born, SUM(income) FROM people WHERE age < 60 OR sex = 'f' GROUP BY 1, 2",
]
PLAIN = [
    "SELECT SUM(income) FROM people",
    "SELECT SUM(income) FROM people WHERE age > 18 AND sex = 'f'",
    "SELECT SUM(income) FROM people WHERE age < 90 OR member OR note LIKE 'a%'",
    "SELECT SUM(income) FROM people WHERE age + weight > 40",
    "SELECT SUM(income) FROM people WHERE sex IN ('f', 'x') AND area IS NOT NULL",
    "SELECT SUM(income) FROM people WHERE age < -100",
]


def selections(sql: str, table: Table) -> list[Selection]:
    """Every cell of the sum of a statement."""
    (aggregate,) = parse(sql, table.policy)
    counted = Aggregate(Function.COUNT, None, aggregate.predicate, aggregate.keys)
    cells = answers([counted], table.source)[0]
    return [Selection(aggregate.predicate, aggregate.keys, key) for key in cells]


def by_membership(listed: Sequence[Selection], source: Source) -> np.ndarray:
    """Equations x records, as `membership` has them."""
    found = membership([Aggregate(Function.COUNT, None, *each.family) for each in listed], source)
    rows = []
    for index, each in enumerate(listed):
        inside, groups = found.mask(index), found.groups[index]
        if groups is not None:
            inside = inside & (groups.codes == groups.keys.index(each.key))
        rows.append(inside)
    return np.array(rows)


def everybody(records: CodedRecords | SummedRecords) -> np.ndarray:
    """The places of all records, in order."""
    found = records.sample(1000 * records.count)
    return found[np.argsort([records.names[place] for place in found])]


# The hash -------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_the_hash_is_the_same_in_sql(
    request: pytest.FixtureRequest, engine: str, rng: Random
) -> None:
    source = request.getfixturevalue(engine).source
    keys = HashKeys.draw(rng.randbytes)
    inner = f"SELECT r + {2**61 - 40} AS r FROM ({rows_of(source, (), TRUE, {})}) AS g"
    for shown, shift in ((rows_of(source, (), TRUE, {}), 0), (inner, 2**61 - 40)):
        frame = source.read(hash_lanes(shown, keys, source.dialect, True, ["r"]))
        name = frame["r"].values
        assert sorted(name - shift) == list(range(1, 61))
        assert (frame["y"].values == lane(name, keys.lanes[0])).all()
        assert (frame["w"].values == lane(name, keys.lanes[1])).all()


def test_fingerprints_of_neighbours_do_not_cancel(rng: Random) -> None:
    """Differences of any order, which multiples of the names would all pass."""
    names = np.arange(-1000, 60_000)
    found = fingerprints(names, HashKeys.draw(rng.randbytes))
    assert found.min() >= 1 and found.max() <= 2**38
    for order in range(1, 7):
        assert np.diff(found, n=order).all()
    assert not np.diff(names * 12_345 & LANE_MASK, n=2).all()


def test_keys_are_never_shown(rng: Random) -> None:
    assert repr(HashKeys.draw(rng.randbytes)) == "Keys(secret)"


# Rows, totals and searches ----------------------------------------------------------------------


BOTH = [(CodedRecords, "people"), (SummedRecords, "people")]
IN_POSTGRES = pytest.param(SummedRecords, "people_in_postgres", marks=pytest.mark.postgres)


@pytest.mark.parametrize(("form", "engine"), [*BOTH, IN_POSTGRES])
def test_both_forms_know_rows_totals_and_strays(
    request: pytest.FixtureRequest, form: Form, engine: str, rng: Random
) -> None:
    table = request.getfixturevalue(engine)
    listed = [each for sql in (*PLAIN, *GROUPED) for each in selections(sql, table)]
    listed += listed[:3]
    keys = rng.randbytes
    records = form(listed, table.source, keys)
    places = everybody(records)
    wanted = by_membership(listed, table.source)
    assert records.count == len(places) == 60
    assert (records.rows(places) == wanted).all()
    some, others = places[:20], places[20:]
    marks = _marks(records, places)
    assert (records.totals == wanted.astype(np.int64) @ marks).all()
    assert (records.rest(some) == wanted[:, 20:].astype(np.int64) @ marks[20:]).all()
    for _ in range(5):
        claim = {rng.randrange(len(listed)): rng.choice([1, -1, 3]) for _ in range(4)}
        both = [claim, {0: 2**70, 1: -(2**70)}]
        values = [sum(w * wanted[e].astype(object) for e, w in each.items()) for each in both]
        there = np.flatnonzero((values[0] != 0) | (values[1] != 0))
        expected = np.setdiff1d(places[there], some)
        assert sorted(records.strays(both, some)) == sorted(expected.tolist())
    assert len(others) == 40


def _marks(records: CodedRecords | SummedRecords, places: np.ndarray) -> np.ndarray:
    """Fingerprints, out of what is left when one record is taken away."""
    whole = records.rest(np.zeros(0, np.int64))
    return np.array([(whole - records.rest(places[k : k + 1])).max() for k in range(len(places))])


# Who is exposed ---------------------------------------------------------------------------------


def assert_exposed(form: Form, listed: Sequence[Selection], source: Source) -> None:
    """Whoever an elimination of everything exposes is exposed, and somebody is."""
    records = form(listed, source)
    found = determine_sketched(records)
    whole = determine(with_rest_column(by_membership(listed, source)))
    names = membership([Aggregate(Function.COUNT, None)], source).records
    assert found.rank == whole.rank
    shown = {records.names[place] for place in found.by}
    assert shown == set(names[whole.determined].tolist()) and shown


@pytest.mark.parametrize(("form", "engine"), [*BOTH, IN_POSTGRES])
def test_both_forms_expose_whom_an_elimination_of_everything_exposes(
    request: pytest.FixtureRequest, form: Form, engine: str
) -> None:
    table = request.getfixturevalue(engine)
    listed = [each for sql in (*PLAIN, *GROUPED) for each in selections(sql, table)]
    assert_exposed(form, listed, table.source)


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A table whose records are named by text, longer than everything that is kept of it."""
    path = tmp_path_factory.mktemp("towns") / "towns.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE towns AS SELECT 'it''s ' || i AS name, CAST(i % 97 AS INTEGER) AS a, "
            "CAST(i // 40 AS INTEGER) AS b, 'kind ' || i % 300 AS c, i % 11 AS income "
            "FROM range(4000) AS r(i)"
        )
    policy = Path(path).with_suffix(".toml")
    roles = "".join(f'[columns.{name}]\nrole = "public"\n' for name in "abc")
    policy.write_text(
        f'[table]\nsource = "duckdb:///{path}#towns"\nkey = "name"\n{roles}'
        '[columns.income]\nrole = "private"\nunbounded = true\n'
        '[columns.name]\nrole = "identifier"\n'
    )
    with Table.open(policy) as table:
        yield table


@pytest.mark.parametrize("form", FORMS)
def test_records_may_be_named_by_text(form: Form, towns: Table, rng: Random) -> None:
    """The same people as an elimination of everything, found among 4,000."""
    texts = [
        f"SELECT SUM(income) FROM towns WHERE a BETWEEN {rng.randrange(50)} AND "
        f"{rng.randrange(50, 97)} AND b < {rng.randrange(1, 100)}"
        for _ in range(15)
    ]
    texts += ["SELECT SUM(income) FROM towns WHERE a = 3 AND b = 2", *texts[:2]]
    texts += ["SELECT SUM(income) FROM towns WHERE a < 9 OR (b > 5 AND c = 'kind 7') OR b = 70"]
    texts += ["SELECT b, SUM(income) FROM towns WHERE a < 4 GROUP BY b"]
    listed = [each for sql in texts for each in selections(sql, towns)]
    assert_exposed(form, listed, towns.source)
