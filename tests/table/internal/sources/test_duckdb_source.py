"""What is true of DuckDB only: the lock, memory, the order of Parquet, damaged files."""

import os
import stat
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pytest
from table.stored import run_in

from casemate.errors import Misconfigured
from casemate.table.sources import RECORD
from casemate.table.sources.duckdb import DuckDBSource
from casemate.table.sources.files import interruptible
from casemate.table.sources.place import DuckDBTable, Files, find


def opened(
    folder: Path, source: str, key: str | None = None, memory_limit: str | None = None
) -> DuckDBSource:
    place = find(source, folder)
    assert isinstance(place, Files | DuckDBTable)
    return DuckDBSource(place, key=key, memory_limit=memory_limit)


def parquet(folder: Path, name: str, query: str, options: str = "") -> None:
    duckdb.connect().execute(f"COPY ({query}) TO '{folder}/{name}' (FORMAT parquet{options})")


# The lock -------------------------------------------------------------------------------------

FORBIDDEN = [
    "SELECT * FROM read_csv('{other}')",
    "SELECT * FROM read_text('{other}')",
    "SELECT * FROM '{other}'",
    "SELECT * FROM glob('{folder}/*')",
    "ATTACH '{folder}/new.db' AS other",
    "ATTACH '{folder}/base.db' AS again",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{folder}/t.parquet'",
    "EXPORT DATABASE '{folder}/export'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET threads = 1",
    "SET enable_external_access = true",
    "SET allowed_paths = ['/']",
    "SET allowed_directories = ['/']",
    "RESET lock_configuration",
    "PRAGMA memory_limit = '1GB'",
]


@pytest.fixture(params=["t.csv", "t.parquet", "duckdb:///base.db#t"])
def locked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DuckDBSource]:
    (tmp_path / "t.csv").write_text("id\n1\n2\n")
    parquet(tmp_path, "t.parquet", "SELECT * FROM range(1, 3) AS r(id)")
    run_in(tmp_path / "base.db", "CREATE TABLE t AS FROM range(1, 3) AS r(id)")
    (tmp_path / "other.csv").write_text("secret\n1\n")
    source = opened(tmp_path, request.param, key="id")
    yield source
    source.close()


def test_after_the_lock_nothing_else_can_be_reached(locked: DuckDBSource, tmp_path: Path) -> None:
    """Through the interface and, were that to fail, on the engine itself."""
    before = sorted(os.listdir(tmp_path))
    for sql in FORBIDDEN:
        text = sql.format(folder=tmp_path, other=tmp_path / "other.csv")
        with pytest.raises((Misconfigured, ValueError)):
            locked.read(text)
        with pytest.raises(duckdb.Error):
            locked._connection.cursor().execute(text).fetchall()
        assert sorted(os.listdir(tmp_path)) == before, sql
    counted = locked.read(f"SELECT COUNT(*) AS n FROM {locked.relation()} AS t")
    assert counted["n"].values[0] == 2


def test_a_query_cannot_name_a_python_variable(locked: DuckDBSource) -> None:
    secret = {"a": np.arange(3)}
    with pytest.raises(Misconfigured):
        locked.read("SELECT * FROM secret")
    assert len(secret) == 1


def test_a_view_in_a_database_file_cannot_open_files(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("id\n1\n")
    view = f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path}/other.csv')"
    run_in(tmp_path / "base.db", view)
    with pytest.raises(Misconfigured):
        opened(tmp_path, "duckdb:///base.db#v", key="id")


def test_the_temporary_folder_is_private_and_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = opened(tmp_path, "t.csv")
    [folder] = tmp_path.glob("casemate-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    source.close()
    assert not folder.exists()
    opened(tmp_path, "t.csv")  # not closed: it goes with the source
    assert not list(tmp_path.glob("casemate-*"))
    with pytest.raises(Misconfigured):
        opened(tmp_path, "t.csv", key="absent")
    assert not list(tmp_path.glob("casemate-*"))


def test_what_does_not_fit_the_memory_limit_is_still_answered(tmp_path: Path) -> None:
    parquet(tmp_path, "t.parquet", "SELECT i AS id, hash(i) AS h FROM range(2000000) AS r(i)")
    source = opened(tmp_path, "t.parquet", memory_limit="64MB")
    frame = source.read(f"SELECT COUNT(DISTINCT h) AS n FROM {source.relation()} AS t")
    assert frame["n"].values[0] == 2_000_000
    source.close()


# Parquet and database files -------------------------------------------------------------------


def test_positions_in_parquet_follow_the_files_names_whatever_order_rows_come_in(
    tmp_path: Path,
) -> None:
    small = ", ROW_GROUP_SIZE 2048"
    parquet(tmp_path, "b.parquet", "SELECT * FROM range(150000, 270000) AS r(i)", small)
    parquet(tmp_path, "a.parquet", "SELECT * FROM range(0, 150000) AS r(i)", small)
    parquet(tmp_path, "c.parquet", "SELECT * FROM range(270000, 300000) AS r(i)", small)
    source = opened(tmp_path, "*.parquet")
    for condition in ("TRUE", "i % 7 = 3", "i >= 270000", f"{RECORD} > 150000"):
        frame = source.read(f"SELECT {RECORD}, i FROM {source.relation()} AS t WHERE {condition}")
        assert len(frame["i"].values) > 1_000
        assert bool((frame[RECORD].values == frame["i"].values + 1).all())
    source.close()


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    (tmp_path / "year=2020").mkdir()
    parquet(tmp_path / "year=2020", "1.parquet", "SELECT 1 AS a")
    source = opened(tmp_path, "*/*.parquet")
    assert list(source.fields()) == ["a"]
    source.close()


@pytest.mark.parametrize("name", ["file_row_number", "File_Index", "filename", "casemate_record"])
def test_a_column_that_casemate_needs_itself_is_one_sentence(tmp_path: Path, name: str) -> None:
    parquet(tmp_path, "t.parquet", f"SELECT 1 AS {name}")
    with pytest.raises(Misconfigured, match="rename it"):
        opened(tmp_path, "t.parquet")


def test_files_that_disagree_are_damaged_or_being_written_are_one_sentence(tmp_path: Path) -> None:
    parquet(tmp_path, "1.parquet", "SELECT 1 AS a, 'x' AS b")
    parquet(tmp_path, "2.parquet", "SELECT 1.5 AS a, 'x' AS b")
    (tmp_path / "t.pq").write_bytes(b"secret" * 1000)
    (tmp_path / "bad.db").write_bytes(b"secret" * 1000)
    with duckdb.connect(str(tmp_path / "base.db")) as writer:
        writer.execute("CREATE TABLE t (id INTEGER)")
        for source, expected in (
            ("*.parquet", "2.parquet has other columns, or columns of other"),
            ("t.pq", "t.pq cannot be read as Parquet"),
            ("duckdb:///bad.db#t", "bad.db cannot be opened as a DuckDB database"),
            ("duckdb:///base.db#t", "no other program is writing"),
        ):
            with pytest.raises(Misconfigured) as caught:
                opened(tmp_path, source, key="id")
            assert expected in str(caught.value) and "secret" not in str(caught.value)


def test_sums_that_fit_64_bits_come_as_integers_and_others_as_decimals(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"x\n{2**62}\n{2**62}\n")
    source = opened(tmp_path, "t.csv")
    frame = source.read(
        f"SELECT SUM(x) AS all_, SUM(x) FILTER (WHERE {RECORD} = 1) AS one "
        f"FROM {source.relation()} AS t"
    )
    assert frame["all_"].values[0] == Decimal(2**63)
    assert frame["one"].values.dtype == np.int64 and frame["one"].values[0] == 2**62
    source.close()


@pytest.mark.slow
def test_more_rows_than_fit_are_filtered_and_aggregated(tmp_path: Path) -> None:
    """The small form of benchmarks/larger_than_memory.py."""
    from benchmarks.larger_than_memory import answer, generate

    generate(tmp_path, rows=2_000_000, files=2)
    found, roomy = answer(tmp_path, "100MB"), answer(tmp_path, "4GB")
    assert found.areas == 1_000
    assert found.people == roomy.people > 1_700_000


# Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "heard"),
    [
        (duckdb.InterruptException("INTERRUPT Error: Interrupted!"), KeyboardInterrupt),
        (RuntimeError("Query interrupted"), KeyboardInterrupt),
        (RuntimeError("another"), RuntimeError),
    ],
)
def test_what_duckdb_makes_of_an_interrupt_is_one(
    raised: Exception, heard: type[BaseException]
) -> None:
    with pytest.raises(heard), interruptible():
        raise raised
