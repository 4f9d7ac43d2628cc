"""Quantiles: the row that a share names is found exactly, in every engine and every spelling."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query import slow

from casemate.query import Aggregate, Function
from casemate.query.aggregate import decimal
from casemate.query.engines import answers
from casemate.query.parse import parse
from casemate.table import Table

SHARES = [Fraction(step, 100) for step in range(101)]
SHARES += [Fraction(1, 10**6), Fraction(333_333, 10**6), Fraction(999_999, 10**6)]
SIZES = (1, 2, 7, 20, 25, 40, 75)


def numbered(aggregate: Aggregate, size: int) -> Any:
    """What the slow way makes of the numbers 1 to `size`."""
    return slow.compute(aggregate, list(range(1, size + 1)))


def statement(shares: list[Fraction]) -> str:
    """Both kinds of quantiles of x, at every share, for every size."""
    written = [f"quantile_disc(x, {decimal(p)}), quantile_cont(x, {decimal(p)})" for p in shares]
    return f"SELECT n, {', '.join(written)} FROM numbers GROUP BY n"


ROWS = f"SELECT n, x FROM (VALUES {', '.join(f'({n})' for n in SIZES)}) AS s (n)"
ROWS = f"{ROWS}, generate_series(1, n) AS g (x)"
MAKE = f"CREATE TABLE numbers AS SELECT 100 * n + x AS id, n, x FROM ({ROWS}) AS m"


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def numbers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Table]:
    url = f"duckdb:///{tmp_path}/numbers.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres")
        with psycopg.connect(url) as server:
            server.execute(MAKE.encode())
    else:
        with duckdb.connect(f"{tmp_path}/numbers.db") as file:
            file.execute(MAKE)
    path = tmp_path / "numbers.toml"
    path.write_text(f'[table]\nsource = "{url}#numbers"\nkey = "id"\n[columns.n]\n[columns.x]\n')
    with Table.open(path) as table:
        yield table


@pytest.mark.postgres
def test_the_product_of_postgres_rounds_past_the_seventh_row_of_25(postgres: str) -> None:
    series = b"FROM generate_series(1, 25) AS g (x)"
    with psycopg.connect(postgres) as server:
        query = b"SELECT percentile_disc(0.28) WITHIN GROUP (ORDER BY x) " + series
        assert server.execute(query).fetchall() == [(8,)]


def test_the_row_of_every_share_is_found(numbers: Table) -> None:
    aggregates = parse(statement(SHARES), numbers.policy)
    assert len(aggregates) == 2 * len(SHARES)
    for aggregate, cells in zip(aggregates, answers(aggregates, numbers.source), strict=True):
        assert set(cells) == {(size,) for size in SIZES}
        for (size,), found in cells.items():
            assert slow.close(found, numbered(aggregate, int(str(size))))
            assert not aggregate.discrete or isinstance(found, int)


@given(
    st.lists(st.integers(-100, 100), min_size=1, max_size=30),
    st.integers(0, 10**6).map(lambda parts: Fraction(parts, 10**6)),
)
@settings(max_examples=40)
def test_turning_the_order_turns_the_share(people: Table, values: list[int], p: Fraction) -> None:
    order = f"percentile_cont({decimal(p)}) WITHIN GROUP (ORDER BY age"
    (up,) = parse(f"SELECT {order}) FROM people", people.policy)
    (down,) = parse(f"SELECT {order} DESC) FROM people", people.policy)
    shares = [each.fraction if each.fraction is not None else Fraction(1, 2) for each in (up, down)]
    assert sum(shares) == 1
    mirrored = slow.quantile(sorted(-each for each in values), shares[0], discrete=False)
    assert slow.close(slow.quantile(sorted(values), shares[1], discrete=False), -mirrored)


@pytest.mark.parametrize(
    ("spelling", "dialect"),
    [
        ("percentile_disc(0.25) WITHIN GROUP (ORDER BY income)", "postgres"),
        ("percentile_disc(.250) WITHIN GROUP (ORDER BY income NULLS FIRST)", "postgres"),
        ("quantile_disc(income, 25e-2)", "postgres"),
        ("quantile_disc(income, 0.25)", "duckdb"),
        ("quantile(income, 0.25)", "duckdb"),
        ("quantile(income, 0.25)", "postgres"),
    ],
)
def test_every_spelling_is_the_same_aggregate(people: Table, spelling: str, dialect: str) -> None:
    (found,) = parse(f"SELECT {spelling} FROM people", people.policy, dialect)
    assert (found.function, found.fraction, found.discrete) == (
        Function.QUANTILE,
        Fraction(1, 4),
        True,
    )


@pytest.mark.parametrize("half", ["0.5", ".5", "0.50", "5e-1"])
def test_the_quantile_at_one_half_is_the_median(people: Table, half: str) -> None:
    for sql in (
        f"SELECT quantile_cont(income, {half}) FROM people",
        f"SELECT percentile_cont({half}) WITHIN GROUP (ORDER BY income DESC) FROM people",
    ):
        assert parse(sql, people.policy) == parse(
            "SELECT median(income) FROM people", people.policy
        )
