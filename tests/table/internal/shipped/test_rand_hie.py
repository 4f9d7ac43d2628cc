"""The real table: read exactly, described truthfully, and absent politely."""

import subprocess
import sys
from decimal import Decimal
from importlib import resources
from pathlib import Path

import duckdb
import numpy as np
import pytest

from casemate.errors import Misconfigured
from casemate.table import ColumnType, PerPerson
from casemate.table.shipped import rand_hie
from casemate.table.sources import Series


@pytest.fixture(scope="module")
def table() -> dict[str, Series]:
    return rand_hie.columns()


def stand_in(folder: Path, text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a package called statsmodels, with this file in it, before the real one."""
    package = folder / "statsmodels"
    (package / rand_hie.FILE).parent.mkdir(parents=True)
    (package / "__init__.py").touch()
    if text is not None:
        (package / rand_hie.FILE).write_text(text)
    resources.files("statsmodels")  # load the real one, so that it is put back afterwards
    monkeypatch.delitem(sys.modules, "statsmodels")
    monkeypatch.syspath_prepend(folder)


def test_there_are_20190_years_of_5912_people(table: dict[str, Series]) -> None:
    years = list(zip(table["zper"].values.tolist(), table["year"].values.tolist(), strict=True))
    assert len(years) == len(set(years)) == 20_190
    assert len({person for person, _ in years}) == 5_912


def test_rows_per_person_is_the_largest_number_of_years(table: dict[str, Series]) -> None:
    _, counts = np.unique(table["zper"].values, return_counts=True)
    assert counts.max() == rand_hie.policy().rows_per_person


def test_every_number_is_the_files_own(table: dict[str, Series]) -> None:
    """Another reader, and totals in exact decimals, column by column."""
    path = str(resources.files("statsmodels").joinpath(rand_hie.FILE))
    totals = ", ".join(f"sum(CAST({n} AS DECIMAL(18, 7))), count({n})" for n in table)
    query = f"SELECT {totals} FROM read_csv(?, all_varchar = true, header = true)"
    present = [series.values[~series.missing].tolist() for series in table.values()]
    ours = [figure for values in present for figure in (sum(map(Decimal, values)), len(values))]
    assert duckdb.execute(query, [path]).fetchall() == [tuple(ours)]


def test_missing_values_are_where_the_policy_says_and_nowhere_else(
    table: dict[str, Series],
) -> None:
    assert {name for name, series in table.items() if series.missing.any()} == rand_hie.NULLABLE


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


def test_without_the_package_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(Misconfigured, match=r"pip install 'casemate\[tables\]'$"):
        rand_hie.columns()


@pytest.mark.parametrize("text", [None, "plan,site\n1,1\n"])
def test_a_package_that_carries_something_else_is_not_trusted(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, text, monkeypatch)
    with pytest.raises(Misconfigured, match=r"pip install 'casemate\[tables\]'"):
        rand_hie.columns()
