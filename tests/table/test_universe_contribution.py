"""Bounded contribution: so many rows of each person, chosen by the key and by nothing else."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from chance import assert_rate_at_most

from casemate.table.duckdb_opening import Columns
from casemate.table.duckdb_source import DuckDBSource
from casemate.table.place import PostgresTable
from casemate.table.postgres_source import PostgresSource
from casemate.table.schema import Column, ColumnType, Policy
from casemate.table.source import RECORD, Series, Source
from casemate.table.universe import Universe
from casemate.table.universe_contribution import BoundedSource, bounded

PEOPLE = [1] * 5 + [2] * 2 + [3] + [None] * 3
KEY = bytes(range(16))


def visits(values: list[int] | None = None) -> DuckDBSource:
    """Visits of three people, and three of nobody knows whom."""
    count = len(PEOPLE)
    numbers = np.array([each or 0 for each in PEOPLE])
    missing = np.array([each is None for each in PEOPLE])
    cost = np.array(values or [7] * count)
    series = {"who": Series(numbers, missing), "cost": Series(cost, np.zeros(count, np.bool_))}
    types = dict.fromkeys(series, ColumnType.INTEGER)
    return DuckDBSource(Columns("visits", series, types))


def kept(source: Source) -> list[int]:
    frame = source.read(f"SELECT {RECORD} AS r FROM {source.relation()} AS t")
    return sorted(frame["r"].values.tolist())


def people(records: list[int]) -> Counter[int | None]:
    return Counter(PEOPLE[record - 1] for record in records)


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_at_most_so_many_rows_of_each_person_are_kept(most: int) -> None:
    source = BoundedSource(visits(), "who", most, KEY)
    assert people(kept(source)) == {1: min(5, most), 2: min(2, most), 3: 1}


def test_the_same_rows_are_kept_at_every_question() -> None:
    source = BoundedSource(visits(), "who", 2, KEY)
    assert kept(source) == kept(source) == kept(BoundedSource(visits(), "who", 2, KEY))


def test_no_value_has_a_part_in_the_choice(rng: Random) -> None:
    chosen = {
        tuple(kept(BoundedSource(visits([rng.randrange(100) for _ in PEOPLE]), "who", 2, KEY)))
        for _ in range(20)
    }
    assert len(chosen) == 1


def test_somebody_elses_rows_have_no_part_in_the_choice() -> None:
    class Without(BoundedSource):
        def relation(self, public: str | None = None) -> str:
            return super().relation(public).replace("IS NOT NULL", "<> 2")

    alone = kept(Without(visits(), "who", 2, KEY))
    assert alone == [
        each for each in kept(BoundedSource(visits(), "who", 2, KEY)) if each <= 5 or each == 8
    ]


def test_a_source_without_people_stays_as_it_is() -> None:
    column = (Column("cost", type=ColumnType.INTEGER, low=0, high=9),)
    source = visits()
    assert bounded(Universe.of(Policy("", column)), source, None) is source
    universe = Universe.of(Policy("", column, person="who", rows_per_person=2))
    once = bounded(universe, source, KEY)
    assert isinstance(once, BoundedSource) and bounded(universe, once, None) is once
    with pytest.raises(ValueError, match="needs the dataset's key"):
        bounded(universe, source, None)


def test_a_key_is_long_and_never_shown() -> None:
    with pytest.raises(ValueError, match="at least 16 bytes, got 3"):
        BoundedSource(visits(), "who", 1, b"abc")
    shown = repr(BoundedSource(visits(), "who", 1, KEY))
    assert KEY.hex() not in shown and "at most 1 rows of each who" in shown


def test_a_bounded_source_is_a_source() -> None:
    source = visits()
    limited = BoundedSource(source, "who", 1, KEY)
    assert limited.dialect == "duckdb" and limited.fields() == source.fields()
    limited.close()


@pytest.mark.postgres
def test_postgres_keeps_the_same_rows(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE visits (id bigint PRIMARY KEY, who bigint)")
        for number, who in enumerate(PEOPLE, start=1):
            connection.execute("INSERT INTO visits VALUES (%s, %s)", (number, who))
    source = PostgresSource(PostgresTable("", postgres, ("visits",)))
    assert kept(BoundedSource(source, "who", 2, KEY)) == kept(
        BoundedSource(visits(), "who", 2, KEY)
    )
    source.close()


# True with a stated probability ------------------------------------------------------------------


def assert_even(chosen: list[int]) -> None:
    """Each of the five rows of a person is the one kept a fifth of the time, at most."""
    for record in range(1, 6):
        assert_rate_at_most(chosen.count(record), len(chosen), 0.2)


def test_over_keys_every_row_of_a_person_is_kept_equally_often(rng: Random) -> None:
    source = visits()
    assert_even([kept(BoundedSource(source, "who", 1, rng.randbytes(16)))[0] for _ in range(300)])


def test_a_choice_that_favours_a_row_is_noticed(rng: Random) -> None:
    with pytest.raises(AssertionError):
        assert_even([min(rng.randint(1, 5), rng.randint(1, 5)) for _ in range(300)])
