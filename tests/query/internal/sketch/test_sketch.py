"""Records behind many sums: codes in memory and sums in SQL give what membership gives."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query.predicates import predicates

from casemate.exact import exposed, exposure
from casemate.exact.sketch import with_rest
from casemate.query import Aggregate, Function
from casemate.query.engines import answers
from casemate.query.engines import rows as rows_of
from casemate.query.language import TRUE
from casemate.query.parse import parse
from casemate.query.records import membership
from casemate.query.sketch import CodedRecords, HashKeys, Selection, SummedRecords, hashed
from casemate.query.sketch.layouts import MOST_MERGED
from casemate.query.sketch.passes import LOW, fingerprints, lane
from casemate.query.sketch.sketch import spread
from casemate.table import Table
from casemate.table.sources import Source

FORMS = [CodedRecords, SummedRecords]
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
        inside, groups = found.selected(index), found.groups[index]
        if groups is not None:
            inside = inside & (groups.codes == groups.keys.index(each.key))
        rows.append(inside)
    return np.array(rows)


def everybody(records: CodedRecords | SummedRecords) -> np.ndarray:
    """The places of all records, in order."""
    found = records.sample(1000 * records.count)
    return found[np.argsort([records.names[place] for place in found])]


# The hash -------------------------------------------------------------------------------------


def test_the_hash_is_the_same_in_sql(people: Table, rng: Random) -> None:
    assert_same_hash(people.source, rng)


@pytest.mark.postgres
def test_the_hash_is_the_same_in_postgres(people_in_postgres: Table, rng: Random) -> None:
    assert_same_hash(people_in_postgres.source, rng)


def assert_same_hash(source: Source, rng: Random) -> None:
    keys = HashKeys.drawn(rng.randbytes)
    inner = f"SELECT r + {2**61 - 40} AS r FROM ({rows_of(source, (), TRUE, {})}) AS g"
    for shown, shift in ((rows_of(source, (), TRUE, {}), 0), (inner, 2**61 - 40)):
        frame = source.read(hashed(shown, keys, source.dialect, True, ["r"]))
        name = frame["r"].values
        assert sorted(name - shift) == list(range(1, 61))
        assert (frame["y"].values == lane(name, keys.lanes[0])).all()
        assert (frame["w"].values == lane(name, keys.lanes[1])).all()


def test_fingerprints_of_neighbours_do_not_cancel(rng: Random) -> None:
    """Differences of any order, which multiples of the names would all pass."""
    names = np.arange(-1000, 60_000)
    found = fingerprints(names, HashKeys.drawn(rng.randbytes))
    assert found.min() >= 1 and found.max() <= 2**38
    for order in range(1, 7):
        assert np.diff(found, n=order).all()
    assert not np.diff(names * 12_345 & LOW, n=2).all()


def test_keys_are_never_shown(rng: Random) -> None:
    assert repr(HashKeys.drawn(rng.randbytes)) == "Keys(secret)"


# Rows, totals and searches ----------------------------------------------------------------------


@given(st.lists(predicates, min_size=1, max_size=80))
@settings(max_examples=25)
def test_coded_records_are_selected_as_by_membership(people: Table, texts: list[str]) -> None:
    parsed = (parse(f"SELECT COUNT(*) FROM people WHERE {text}", people.policy) for text in texts)
    listed = [Selection(aggregate.predicate) for (aggregate,) in parsed]
    records = CodedRecords(listed, people.source)
    assert (records.rows(np.arange(60)) == by_membership(listed, people.source)).all()


@pytest.mark.parametrize("form", FORMS)
def test_both_forms_know_rows_totals_and_strays(form: Form, people: Table, rng: Random) -> None:
    assert_knows(form, people, rng)


@pytest.mark.postgres
def test_sums_in_postgres_know_rows_totals_and_strays(
    people_in_postgres: Table, rng: Random
) -> None:
    assert_knows(SummedRecords, people_in_postgres, rng)


def assert_knows(form: Form, table: Table, rng: Random) -> None:
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


def test_codes_and_sums_add_up_the_same_fingerprints(people: Table, seed: int) -> None:
    listed = [each for sql in (*PLAIN, *GROUPED) for each in selections(sql, people)]
    coded = CodedRecords(listed, people.source, Random(seed).randbytes)
    summed = SummedRecords(listed, people.source, Random(seed).randbytes)
    assert (coded.totals == summed.totals).all()


@pytest.mark.postgres
def test_duckdb_and_postgres_add_up_the_same_fingerprints(
    people: Table, people_in_postgres: Table, seed: int
) -> None:
    totals = []
    for table in (people, people_in_postgres):
        listed = [each for sql in PLAIN for each in selections(sql, table)]
        totals.append(SummedRecords(listed, table.source, Random(seed).randbytes).totals)
    assert (totals[0] == totals[1]).all()


# Who is exposed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_both_forms_expose_whom_an_elimination_of_everything_exposes(
    form: Form, people: Table
) -> None:
    assert_exposes(form, people)


@pytest.mark.postgres
def test_sums_in_postgres_expose_whom_an_elimination_of_everything_exposes(
    people_in_postgres: Table,
) -> None:
    assert_exposes(SummedRecords, people_in_postgres)


def assert_exposes(form: Form, table: Table) -> None:
    listed = [each for sql in (*PLAIN, *GROUPED) for each in selections(sql, table)]
    records = form(listed, table.source)
    found = exposed(records)
    whole = exposure(with_rest(by_membership(listed, table.source)))
    assert found.rank == whole.rank
    names = {records.names[place] for place in found.by}
    assert names == set((np.flatnonzero(whole.determined) + 1).tolist())
    assert names


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
        for _ in range(40)
    ]
    texts += ["SELECT SUM(income) FROM towns WHERE a = 3 AND b = 2", *texts[:2]]
    texts += ["SELECT SUM(income) FROM towns WHERE a < 9 OR (b > 5 AND c = 'kind 7') OR b = 70"]
    texts += ["SELECT b, SUM(income) FROM towns WHERE a < 4 GROUP BY b"]
    listed = [each for sql in texts for each in selections(sql, towns)]
    records = form(listed, towns.source)
    found = exposed(records)
    rows = by_membership(listed, towns.source)
    whole = exposure(with_rest(rows))
    names = membership([Aggregate(Function.COUNT, None)], towns.source).records
    assert found.rank == whole.rank
    shown = {records.names[place] for place in found.by}
    assert shown == set(names[whole.determined].tolist())
    assert shown


def test_columns_are_merged_only_as_far_as_their_codes_stay_few(towns: Table) -> None:
    text = "SELECT COUNT(*) FROM towns WHERE a = {0} AND b <> {0} AND c <> 'kind {0}'"
    parsed = [parse(text.format(i), towns.policy)[0] for i in range(90)]
    listed = [Selection(each.predicate) for each in parsed]
    records = CodedRecords(listed, towns.source)
    sizes = [len(table) for table in records.layout.tables]
    assert len(sizes) > 1 and max(sizes) <= max(MOST_MERGED, 301)
    places = np.arange(records.count)
    assert (records.rows(places) == by_membership(listed, towns.source)).all()


def test_differing_records_are_spread_over_their_values() -> None:
    places, values = np.arange(1000), np.arange(1000) % 7
    chosen = spread(places, values, 5)
    assert len(chosen) == 5 and len(set(values[chosen].tolist())) == 5
