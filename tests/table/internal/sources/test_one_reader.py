"""What `policy check` calls valid an audit reads, with the same numbers, and no more."""

from decimal import Decimal, InvalidOperation
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.table import Table, review_policy

POLICY = '[table]\nsource = "{}"\n[columns.pay]\nrole = "private"\ntype = "{}"\nunbounded = true\n'


def written(folder: Path, cells: list[str], type_: str = "integer") -> Path:
    (folder / "t.csv").write_text("\n".join(["area,pay", *(f"1,{each}" for each in cells)]) + "\n")
    (folder / "t.toml").write_text(POLICY.format("t.csv", type_))
    return folder / "t.toml"


def values(policy: Path) -> list[Decimal]:
    with Table.open(policy) as table:
        read = table.source.read(f"SELECT pay AS x FROM {table.source.relation()} AS t")
    return sorted(Decimal(str(each)) for each in read["x"].values)


def is_whole(cell: str) -> bool:
    try:
        number = Decimal(cell)
    except InvalidOperation:
        return False
    return number.is_finite() and number == number.to_integral_value() and abs(number) < 2**63


SPELLINGS = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.integers(-(10**6), 10**6).map(lambda n: f"{n}.0"),
    st.tuples(st.integers(-999, 999), st.integers(0, 9)).map(lambda p: f"{p[0]}e+0{p[1]}"),
    st.tuples(st.integers(-999, 999), st.integers(-4, 6)).map(lambda p: f"{p[0]}.50E{p[1]}"),
    st.sampled_from(["+5", "5.", "007", " 8 ", "1e18", ".5e1", "-0.0", "0e0"]),
    st.sampled_from([".5", "5000.5", "1e-1", "1e-400", "1e19", "9223372036854775808", "inf", "x"]),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(SPELLINGS, min_size=1, max_size=6))
def test_whole_numbers_are_those_of_any_spelling_for_a_check_and_for_an_audit(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str]
) -> None:
    policy = written(tmp_path_factory.mktemp("t"), cells)
    refused = review_policy(policy)[1].not_exact
    assert (refused is None) == all(is_whole(each) for each in cells)
    if refused is None:
        assert values(policy) == sorted(Decimal(each) for each in cells)
    else:
        with pytest.raises(Misconfigured):
            Table.open(policy)


@pytest.mark.parametrize("cell", ["1e+05", "2.5e-3", "-1.50E1", "5000.0", ".5"])
def test_a_declared_decimal_may_have_an_exponent(tmp_path: Path, cell: str) -> None:
    policy = written(tmp_path, [cell, "7"], "decimal")
    assert values(policy) == sorted([Decimal(cell), Decimal(7)])
    assert review_policy(policy)[1].not_exact is None


@pytest.mark.parametrize(
    ("cells", "remedy"),
    [
        (["1", "5000.5", "2.25"], 'declare type = "decimal", which all of them are'),
        (["1", "12345678901234567890", "1.5"], 'declare type = "decimal"'),
        (["1", "1e-40", "2.5"], 'declare type = "double"'),
        (["1", "nan", "nan"], 'declare missing_markers = ["nan"]'),
        (["1", "3", "secret"], "correct the 1 cell that holds other text"),
    ],
)
def test_cells_that_are_not_whole_are_counted_and_placed_and_never_shown(
    tmp_path: Path, cells: list[str], remedy: str
) -> None:
    policy = written(tmp_path, cells)
    wrong = [place for place, cell in enumerate(cells, start=1) if not is_whole(cell)]
    with pytest.raises(Misconfigured) as caught:
        Table.open(policy)
    said = str(caught.value)
    assert f"{len(wrong)} of its 3 cells" in said and f"the first in row {wrong[0]} below" in said
    assert remedy in said and not any(
        cells[place - 1] in said for place in wrong if cells[1] != "nan"
    )
    assert review_policy(policy)[1].not_exact == said


@pytest.mark.parametrize("kind", ["DOUBLE", "DECIMAL(12, 2)"])
@pytest.mark.parametrize(("cell", "read"), [("3", True), ("3.5", False)])
def test_whole_numbers_in_a_column_of_doubles_are_whole_where_that_is_declared(
    tmp_path: Path, kind: str, cell: str, read: bool
) -> None:
    cells = f"SELECT CAST(x AS {kind}) AS pay FROM (VALUES (1), ({cell}), (NULL)) AS t(x)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({cells}) TO '{tmp_path / 't.parquet'}' (FORMAT PARQUET)")
    policy = tmp_path / "t.toml"
    policy.write_text(POLICY.format("t.parquet", "integer"))
    assert (review_policy(policy)[1].not_exact is None) is read
    if read:
        with Table.open(policy) as table:
            assert table.source.fields()["pay"] == "integer"
    else:
        with pytest.raises(
            Misconfigured, match=r"is integer, and the source has d.*; declare type"
        ):
            Table.open(policy)
