"""Bounded contribution: so many rows of each person, chosen by their own rows and the key."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from chance import assert_rate_at_most
from hypothesis import given, settings
from hypothesis import strategies as st
from table.stored import cells_of, store, write_csv

from casemate.table import Column, ColumnType, Policy, Role, Table, Universe
from casemate.table.sources import RECORD, Source, bound_contribution
from casemate.table.sources.contribution import BoundedSource, Contribution
from casemate.table.sources.source import PERSON, SourceView

KEY = bytes(range(16))
Visit = tuple[int | None, str | None, str | None]
"""Whose visit it is, where it was, and what it cost: as cells."""

PEOPLE: list[Visit] = [
    *((1, "north", str(cost)) for cost in range(5)),
    *((2, "south", None), (2, "south", None), (3, "north", "4.0")),
    *((None, "north", "1") for _ in range(3)),
]
COLUMNS = (
    Column("place", values=("north", "south")),
    Column("cost", Role.PRIVATE, ColumnType.INTEGER, low=0, high=99),
)


def visits_of(visits: Sequence[Visit]) -> list[tuple[Any, ...]]:
    """Visits with a name of their own: the position among this person's rows, and the person."""
    seen: Counter[int | None] = Counter()
    rows = []
    for visit in visits:
        seen[visit[0]] += 1
        rows.append((1000 * (visit[0] or 0) + seen[visit[0]], *visit))
    return rows


@contextmanager
def opened(
    folder: Path,
    kind: str,
    visits: Sequence[Visit],
    *,
    most: int = 2,
    keyed: bool = False,
    postgres: str | None = None,
) -> Iterator[Table]:
    types = {"id": "bigint", "who": "bigint", "place": "text", "cost": "text"}
    if kind == "parquet" and any(visit[0] is None for visit in visits):
        types["who"] = "double"  # as a writer that chooses types by cells has them with a NULL
    for before in folder.iterdir():
        before.unlink()
    source = store(kind, folder, types, visits_of(visits), postgres=postgres)
    key = "id" if keyed or kind in ("duckdb", "postgres") else None
    policy = Policy(source, COLUMNS, key=key, person="who", rows_per_person=most)
    with Table.open(policy, by_policy=True) as table:
        yield table


def kept(table: Table, key: bytes = KEY) -> list[tuple[Any, ...]]:
    """The rows that count, as the policy reads them."""
    source = bound_contribution(Universe.of(table.policy), table.source, key)
    return rows_of(source, RECORD if table.policy.key else "'-'")


def rows_of(source: Source, name: str) -> list[tuple[Any, ...]]:
    frame = source.read(f"SELECT {name} AS r, place, cost FROM {source.relation()} AS t")
    columns = [cells_of(each) for each in frame.values()]
    return sorted(zip(*columns, strict=True), key=repr)


# Exactly ------------------------------------------------------------------------------------------

KINDS = pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
VISITS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3]) | st.none(),
        st.sampled_from(["north", "south", "west"]) | st.none(),
        st.sampled_from(["1", "2", "2.0", "3.5", "many", "1000"]) | st.none(),
    ),
    max_size=14,
)


@KINDS
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("most", [2, 9])
def test_at_most_so_many_rows_of_each_person_are_kept(
    tmp_path: Path, kind: str, keyed: bool, most: int
) -> None:
    with opened(tmp_path, kind, PEOPLE, most=most, keyed=keyed) as table:
        assert len(kept(table)) == min(5, most) + min(2, most) + 1
        assert kept(table) == kept(table)


def difference(more: list[Any], fewer: list[Any]) -> Counter[Any]:
    """What two tables do not have in common."""
    one, other = Counter(more), Counter(fewer)
    return (one - other) + (other - one)


def assert_nobody_else_moves(
    folder: Path,
    kind: str,
    visits: list[Visit],
    person: int | None,
    choose: Callable[[Table], list[Any]],
    *,
    keyed: bool = False,
) -> None:
    """One person's leaving takes away rows that were theirs, and nothing else."""
    others = [visit for visit in visits if visit[0] != person]
    own = [visit for visit in visits if visit[0] == person]
    chosen: list[list[Any]] = []
    for rows in (visits, others, own):
        with opened(folder, kind, rows, keyed=keyed) as table:
            chosen.append(choose(table))
    everybody, without, alone = chosen
    assert difference(everybody, without) == Counter(alone)
    assert len(alone) <= (0 if person is None else 2)


@KINDS
@settings(max_examples=4)
@given(visits=VISITS, person=st.sampled_from([1, 2, 3, None]), keyed=st.booleans())
def test_a_person_who_leaves_takes_away_their_own_rows_and_nobody_elses(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    visits: list[Visit],
    person: int | None,
    keyed: bool,
) -> None:
    assert_nobody_else_moves(tmp_path_factory.mktemp("v"), kind, visits, person, kept, keyed=keyed)


class ByPosition(SourceView):
    """As it was: rows are chosen by where they stand among the rows of everybody."""

    def relation(self, public: str | None = None) -> str:
        place = f"row_number() OVER (PARTITION BY {PERSON} ORDER BY sha256('k' || {RECORD}))"
        text = self._source.relation(public)
        inner = f"SELECT *, {place} AS n FROM {text} AS a WHERE {PERSON} IS NOT NULL"
        return f"(SELECT * FROM ({inner}) AS b WHERE n <= 2)"


def test_a_choice_by_position_is_noticed(tmp_path: Path, rng: Random) -> None:
    visits: list[Visit] = [(rng.randint(1, 3), "north", str(cost)) for cost in range(30)]

    def choose(table: Table) -> list[Any]:
        return rows_of(ByPosition(table.source), "'-'")

    with pytest.raises(AssertionError):
        assert_nobody_else_moves(tmp_path, "csv", visits, 1, choose)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_order_of_the_rows_has_no_part_in_the_choice(
    tmp_path: Path, kind: str, rng: Random
) -> None:
    places = ["north", "south"]
    visits: list[Visit] = [(rng.randint(1, 3), rng.choice(places), str(c % 7)) for c in range(30)]
    chosen = set()
    for _ in range(3):
        rng.shuffle(visits)
        with opened(tmp_path, kind, visits) as table:
            chosen.add(repr(kept(table)))
    assert len(chosen) == 1


@pytest.mark.parametrize("keyed", [True, False])
def test_no_private_value_has_a_part_in_which_public_cells_are_kept(
    tmp_path: Path, keyed: bool, rng: Random
) -> None:
    places = [rng.choice(["north", "south", "west"]) for _ in range(12)]
    chosen = set()
    for _ in range(4):
        visits: list[Visit] = [(1, place, str(rng.randrange(99))) for place in places]
        with opened(tmp_path, "csv", visits, keyed=keyed) as table:
            chosen.add(repr([row[:2] for row in kept(table)]))
    assert len(chosen) == 1


def test_where_a_key_is_not_unique_private_values_still_choose_no_public_cells(
    tmp_path: Path,
) -> None:
    chosen = set()
    policy = Policy(str(tmp_path / "t.csv"), COLUMNS, "id", "who", 2)
    for cost in range(6):
        rows = [(7, 1, "north", cost), (7, 1, "south", 5), (7, 1, "west", 5)]
        write_csv(tmp_path / "t.csv", ["id", "who", "place", "cost"], rows)
        with Table.open(policy, by_policy=True) as table:
            chosen.add(repr(sorted(str(row[1]) for row in kept(table))))
    assert len(chosen) == 1


def test_a_source_without_people_stays_as_it_is(tmp_path: Path) -> None:
    with opened(tmp_path, "csv", PEOPLE) as table:
        source, universe = table.source, Universe.of(table.policy)
        assert bound_contribution(Universe.of(Policy("", COLUMNS)), source, None) is source
        once = bound_contribution(universe, source, KEY)
        assert isinstance(once, BoundedSource) and bound_contribution(universe, once, None) is once
        assert once.dialect == "duckdb" and once.fields() == source.fields()
        with pytest.raises(ValueError, match="needs the dataset's key"):
            bound_contribution(universe, source, None)


def test_a_key_is_long_and_never_shown(tmp_path: Path) -> None:
    contribution = Contribution(1, (), ())
    with opened(tmp_path, "csv", PEOPLE) as table:
        with pytest.raises(ValueError, match="at least 16 bytes, got 3"):
            BoundedSource(table.source, contribution, b"abc")
        shown = repr(BoundedSource(table.source, contribution, KEY))
        assert KEY.hex() not in shown and "at most 1 rows of each person" in shown


@pytest.mark.postgres
def test_postgresql_keeps_the_same_rows(tmp_path: Path, postgres: str, rng: Random) -> None:
    costs = ["1", "2", "3.5", "many", None]
    visits: list[Visit] = [
        (rng.choice([1, 2, 3, None]), rng.choice(["north", "west", None]), rng.choice(costs))
        for _ in range(40)
    ]
    with opened(tmp_path, "postgres", visits, postgres=postgres) as table:
        there = kept(table)
    with opened(tmp_path, "duckdb", visits) as table:
        assert kept(table) == there


# True with a stated probability ------------------------------------------------------------------


def assert_even(chosen: list[Any]) -> None:
    """Each of the five rows of a person is the one kept a fifth of the time, at most."""
    for row in range(5):
        assert_rate_at_most(chosen.count(row), len(chosen), 0.2)


@pytest.mark.parametrize("keyed", [True, False])
def test_of_many_people_every_row_is_kept_equally_often(
    tmp_path: Path, rng: Random, keyed: bool
) -> None:
    visits: list[Visit] = [(who, "north", str(cost)) for who in range(1, 301) for cost in range(5)]
    with opened(tmp_path, "csv", visits, most=1, keyed=keyed) as table:
        chosen = [cost for _, _, cost in kept(table, rng.randbytes(16))]
    assert len(chosen) == 300
    assert_even(chosen)


def test_rows_alike_in_everything_count_as_often_as_others(tmp_path: Path, rng: Random) -> None:
    alike = ["0", "9", "9", "9", "9"]
    visits: list[Visit] = [(who, "north", cost) for who in range(1, 301) for cost in alike]
    with opened(tmp_path, "csv", visits, most=1) as table:
        chosen = [cost for _, _, cost in kept(table, rng.randbytes(16))]
    assert_rate_at_most(chosen.count(0), 300, 0.2)
    assert_rate_at_most(chosen.count(9), 300, 0.8)


def test_a_choice_that_favours_a_row_is_noticed(rng: Random) -> None:
    with pytest.raises(AssertionError):
        assert_even([min(rng.randrange(5), rng.randrange(5)) for _ in range(300)])
