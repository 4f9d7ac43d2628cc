"""The real table: read exactly, described truthfully, and absent politely."""

import subprocess
import sys
from collections import Counter
from decimal import Decimal
from importlib import resources
from pathlib import Path

import duckdb
import pytest

from casemate.errors import Misconfigured
from casemate.table import ColumnType, PerPerson
from casemate.table.shipped import rand_hie
from casemate.table.sources import Series


@pytest.fixture(scope="module")
def table() -> dict[str, Series]:
    return rand_hie.columns()


def test_there_are_20190_years_of_5912_people_of_whom_nobody_has_more_than_the_policy_says(
    table: dict[str, Series],
) -> None:
    people, years = table["zper"].values.tolist(), table["year"].values.tolist()
    assert len(people) == len(set(zip(people, years, strict=True))) == 20_190
    assert len(set(people)) == 5_912
    assert max(Counter(people).values()) == rand_hie.policy().rows_per_person
    assert {name for name, series in table.items() if series.missing.any()} == rand_hie.NULLABLE


def test_every_number_is_the_files_own(table: dict[str, Series]) -> None:
    """Another reader, and totals in exact decimals, column by column."""
    path = str(resources.files("statsmodels").joinpath(rand_hie.FILE))
    totals = ", ".join(f"sum(CAST({n} AS DECIMAL(18, 7))), count({n})" for n in table)
    query = f"SELECT {totals} FROM read_csv(?, all_varchar = true, header = true)"
    present = [series.values[~series.missing].tolist() for series in table.values()]
    ours = [figure for values in present for figure in (sum(map(Decimal, values)), len(values))]
    assert duckdb.execute(query, [path]).fetchall() == [tuple(ours)]


def test_what_is_called_constant_is_constant_and_what_is_called_varying_varies(
    table: dict[str, Series],
) -> None:
    people = table["zper"].values.tolist()
    for column in rand_hie.policy().columns:
        series = table[column.name]
        seen = set(zip(people, series.missing.tolist(), series.values.tolist(), strict=True))
        constant = len(seen) == len(set(people))
        assert constant == (column.per_person is PerPerson.CONSTANT), column.name


def test_a_column_computed_from_a_private_one_is_private_too(table: dict[str, Series]) -> None:
    """The offers depend on income, the logarithms on what they are logarithms of."""
    assert {"linc", "mdeoff", "pioff", "lpi", "fmde", "lnmeddol", "binexp"} <= rand_hie.PRIVATE
    spent = table["meddol"].values > 0
    assert (spent == (table["binexp"].values == 1)).all()
    assert (spent == ~table["lnmeddol"].missing).all()


def test_every_column_says_what_it_means() -> None:
    assert all(meaning for _, meaning in rand_hie.COLUMNS.values())
    assert all(column.type is not ColumnType.DOUBLE for column in rand_hie.policy().columns)


def test_reading_it_does_not_load_pandas() -> None:
    """In a process of its own, because other tests may have loaded it here."""
    program = (
        "import sys; from casemate.table.shipped.rand_hie import columns; columns(); "
        "print(*sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "casemate.table.shipped.rand_hie" in ran.stdout and "pandas" not in ran.stdout


@pytest.mark.parametrize("text", [None, "", "plan,site\n1,1\n"])
def test_without_the_package_or_with_one_that_carries_something_else_it_says_what_to_install(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package called statsmodels, with another file or none in it, stands before the real one."""
    resources.files("statsmodels")  # load the real one, so that it is put back afterwards
    package = tmp_path / "statsmodels"
    (package / rand_hie.FILE).parent.mkdir(parents=True)
    (package / "__init__.py").touch()
    if text:
        (package / rand_hie.FILE).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    if text is None:
        monkeypatch.setitem(sys.modules, "statsmodels", None)
    else:
        monkeypatch.delitem(sys.modules, "statsmodels")
    with pytest.raises(Misconfigured, match=r"pip install 'casemate\[tables\]'"):
        rand_hie.columns()
