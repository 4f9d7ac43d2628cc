from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from casemate.errors import Misconfigured
from casemate.table import (
    Answering,
    Budget,
    Column,
    ColumnType,
    Exhausted,
    Neighbours,
    PerPerson,
    Policy,
    Protects,
    Provenance,
    PublicTable,
    Role,
    Strategy,
    load_policy,
)

HOSPITAL = """
[table]
source  = "hospital.csv"
key     = "id"
person  = "id"
rows_per_person = 1
version = "2026-01"
[columns.ZIP]
role = "public"
min = 20000
max = 50000
bins = 16
[columns.Gender]
values = ["Male", "Female"]
[columns."Blood sugar"]
role = "private"
type = "decimal"
min = 3
max = 10.5
from = "data"
nullable = true
per_person = "constant"
[budget]
epsilon = 0.1
delta = 1e-9
neighbours = "replace"
protects = "private-columns"
ledger = "spent/casemate.ledger"
[answer]
strategy = "cold"
start = 0.3
surprises = 40
ration = 5
questions = 1000
confidence = 0.99
exhausted = "unverified"
"""
MINIMAL = """
[table]
source = "hospital.csv"
[columns.ZIP]
"""

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a policy beside the files it may name."""
    for name in ("hospital.csv", "zips.csv", "part-1.parquet", "part-2.parquet", "mixed-1.csv"):
        (tmp_path / name).touch()
    (tmp_path / "mixed-1.parquet").touch()
    (tmp_path / "notes.docx").touch()
    (tmp_path / "folder.csv").mkdir()
    duckdb.connect(str(tmp_path / "base.db")).close()

    def write_policy(text: str) -> Path:
        path = tmp_path / "casemate.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_policy


def test_every_key_becomes_a_value(write: Write, tmp_path: Path) -> None:
    policy = load_policy(write(HOSPITAL))
    assert policy == Policy(
        source=str(tmp_path / "hospital.csv"),
        key="id",
        person="id",
        rows_per_person=1,
        columns=(
            Column("ZIP", low=20_000, high=50_000, bins=16),
            Column("Gender", values=("Male", "Female")),
            Column(
                "Blood sugar",
                Role.PRIVATE,
                ColumnType.DECIMAL,
                low=3,
                high=Decimal("10.5"),
                provenance=Provenance.DATA,
                nullable=True,
                per_person=PerPerson.CONSTANT,
            ),
        ),
        budget=Budget(
            epsilon=Fraction(1, 10),
            delta=Fraction(1, 10**9),
            neighbours=Neighbours.REPLACE,
            protects=Protects.PRIVATE_COLUMNS,
            ledger=str(tmp_path / "spent/casemate.ledger"),
        ),
        answering=Answering(
            strategy=Strategy.COLD,
            start=Fraction(3, 10),
            surprises=40,
            ration=5,
            questions=1000,
            confidence=Fraction(99, 100),
            exhausted=Exhausted.UNVERIFIED,
        ),
        version="2026-01",
    )
    assert policy.path == tmp_path / "casemate.toml"


def test_what_is_not_said_has_its_default(write: Write) -> None:
    policy = load_policy(write(MINIMAL))
    assert policy.columns == (Column("ZIP"),)
    assert policy.budget is None and policy.key is None and policy.rows_per_person == 1
    budget = load_policy(write(MINIMAL + "[budget]\nepsilon = 2")).budget
    assert budget == Budget(Fraction(2))
    assert budget.delta == 0


def test_how_questions_are_answered_has_defaults_key_by_key(write: Write) -> None:
    policy = load_policy(write(MINIMAL))
    assert policy.answering == Answering() and policy.version == "1"
    assert load_policy(write(MINIMAL + "[answer]")).answering == Answering()
    policy = load_policy(write(MINIMAL + "[answer]\nsurprises = 3"))
    assert policy.answering == replace(Answering(), surprises=3)


def test_a_private_number_may_be_declared_to_have_no_bounds(write: Write) -> None:
    (zip_code,) = load_policy(write(MINIMAL + 'role = "private"\nunbounded = true')).columns
    assert zip_code.unbounded and zip_code.low is None and zip_code.values is None


def test_dates_and_times_are_bounds_too(write: Write) -> None:
    text = "min = 2020-01-01\nmax = 2020-12-31\n[columns.t]\nmin = 2020-01-01T00:00:00\n"
    days, times = load_policy(write(MINIMAL + text + "max = 2020-01-01T12:30:00.5")).columns
    assert (days.low, days.high) == (date(2020, 1, 1), date(2020, 12, 31))
    assert times.high == datetime(2020, 1, 1, 12, 30, 0, 500_000)


@pytest.mark.parametrize(
    ("source", "resolved"),
    [
        ("hospital.csv", "{folder}/hospital.csv"),
        ("part-*.parquet", "{folder}/part-*.parquet"),
        ("{folder}/hospital.csv", "{folder}/hospital.csv"),
        ("duckdb:///base.db#people", "duckdb:///{folder}/base.db#people"),
        ("duckdb:///{folder}/base.db#main.people", "duckdb:///{folder}/base.db#main.people"),
        ("duckdb://{folder}/base.db#people", "duckdb:///{folder}/base.db#people"),
        ("postgresql://me@host/db#people", "postgresql://me@host/db#people"),
        ("hospital", "hospital"),
        ("population:100:7", "population:100:7"),
    ],
)
def test_a_relative_source_is_seen_from_the_policys_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, resolved: str
) -> None:
    monkeypatch.chdir("/")
    given = source.format(folder=tmp_path)
    policy = load_policy(write(f'[table]\nsource = "{given}"\nkey = "id"\n[columns.ZIP]'))
    assert policy.source == resolved.format(folder=tmp_path)


def test_public_tables_are_files_beside_a_file_and_tables_beside_a_table(
    write: Write, tmp_path: Path
) -> None:
    beside_a_file = load_policy(write(MINIMAL + '[public.zips]\nsource="zips.csv"\nkey="zip"'))
    assert beside_a_file.public_tables == (PublicTable("zips", f"{tmp_path}/zips.csv", "zip"),)
    database = '[table]\nsource = "postgresql://h/d#t"\nkey = "id"\n[columns.ZIP]\n'
    public = '[public.zips]\nkey="zip"\n[public.regions]\nsource="#reference.regions"\nkey="id"'
    assert load_policy(write(database + public)).public_tables == (
        PublicTable("zips", None, "zip"),
        PublicTable("regions", "#reference.regions", "id"),
    )


def test_a_printed_policy_shows_no_address(write: Write) -> None:
    url = "postgresql://me:secret@host/db"
    text = f'[table]\nsource = "{url}#t"\nkey = "id"\n[columns.ZIP]\n'
    policy = load_policy(write(text + f'[budget]\nepsilon = 1\nledger = "{url}"'))
    assert "secret" not in repr(policy)
    assert policy.budget and policy.budget.ledger == url


# Mistakes -------------------------------------------------------------------------------------


def column(lines: str, name: str = "ZIP") -> str:
    return f'[table]\nsource = "hospital.csv"\n[columns.{name}]\n{lines}'


def table(lines: str) -> str:
    return f"[table]\n{lines}\n[columns.ZIP]"


def budget(lines: str) -> str:
    return f"{MINIMAL}[budget]\n{lines}"


def answer(lines: str) -> str:
    return f"{MINIMAL}[answer]\n{lines}"


MISTAKES = {
    "unknown section": (MINIMAL + "[colums.x]", "`colums`", "did you mean `columns`?"),
    "unknown key of a column": (column("mim = 3"), "`columns.ZIP.mim`", "did you mean `min`?"),
    "unlike any key": (column("zzz = 3"), "`columns.ZIP.zzz`", "expected `role`, `type`"),
    "unknown key of budget": (budget("epsilom = 1"), "`budget.epsilom`", "`epsilon`?"),
    "unknown key of public": (MINIMAL + '[public.z]\nkeys="a"', "`public.z.keys`", "`key`?"),
    "no table": ("[columns.ZIP]", "`table`", "expected a section"),
    "table is a value": ("table = 3\n[columns.ZIP]", "`table`", "a section, not a whole number"),
    "no columns": ('[table]\nsource = "hospital.csv"', "`columns`", "[columns.NAME]"),
    "a column without a name": (column("", '""'), '`columns.""`', "rename"),
    "a column called as the record": (
        column("", "casemate_record"),
        "`columns.casemate_record`",
        "rename",
    ),
    "a name with a blank": (column("mim = 3", '"Blood sugar"'), '`columns."Blood sugar".mim`', "?"),
    "no source": (table('key = "id"'), "`table.source`", "is missing"),
    "source is empty": (table('source = ""'), "`table.source`", "is empty"),
    "no such file": (table('source = "clinic.csv"'), "`table.source`", "no such file"),
    "two formats": (table('source = "mixed-*"'), "`table.source`", "both CSV and Parquet"),
    "unknown format": (table('source = "notes.docx"'), "`table.source`", "unknown"),
    "a folder": (table('source = "folder.csv"'), "`table.source`", "folder"),
    "a bare database": (table('source = "base.db"'), "`table.source`", "say which table"),
    "unknown address": (table('source = "mysql://h/d#t"'), "`table.source`", "mysql://"),
    "no table of a database": (table('source = "duckdb:///base.db"'), "`table.source`", "#table"),
    "too long a table": (
        table('source = "duckdb:///base.db#a.b.c"'),
        "`table.source`",
        "#schema.table",
    ),
    "two slashes": (table('source = "duckdb://base.db#t"'), "`table.source`", "three slashes"),
    "a database without key": (
        table('source = "duckdb:///base.db#people"'),
        "`table.key`",
        "unique and never NULL",
    ),
    "person without rows": (
        table('source = "hospital.csv"\nperson = "id"'),
        "`table.rows_per_person`",
        "is missing",
    ),
    "rows without person": (
        table('source = "hospital.csv"\nrows_per_person = 2'),
        "`table.person`",
        "is missing",
    ),
    "no rows": (
        table('source = "hospital.csv"\nperson = "id"\nrows_per_person = 0'),
        "`table.rows_per_person`",
        "at least 1",
    ),
    "unknown role": (column('role = "secret"'), "`columns.ZIP.role`", '"public", "private" or'),
    "nullable is a string": (column('nullable = "yes"'), "`columns.ZIP.nullable`", "true or false"),
    "min above max": (column("min = 3\nmax = 2.9"), "`columns.ZIP.min`", "above `max`"),
    "min alone": (column("min = 3"), "`columns.ZIP.max`", "is missing"),
    "min is a string": (column('min = "3"\nmax = 4'), "`columns.ZIP.min`", "a number, a date"),
    "min is not finite": (column("min = -inf\nmax = 4"), "`columns.ZIP.min`", "a number"),
    "max has a zone": (
        column("min = 2020-01-01T00:00:00\nmax = 2020-01-02T00:00:00Z"),
        "`columns.ZIP.max`",
        "without a time zone",
    ),
    "two kinds of bounds": (column("min = 3\nmax = 2020-01-01"), "`columns.ZIP.max`", "same kind"),
    "private without a domain": (column('role = "private"'), "`columns.ZIP.role`", "`values`"),
    "bounds and values": (column("min=1\nmax=2\nvalues=[1]"), "`columns.ZIP.values`", "keep one"),
    "unbounded and bounds": (
        column("min = 1\nmax = 2\nunbounded = true"),
        "`columns.ZIP.unbounded`",
        "beside bounds",
    ),
    "no values": (column("values = []"), "`columns.ZIP.values`", "is empty"),
    "values is a number": (column("values = 3"), "`columns.ZIP.values`", "an array"),
    "the same value twice": (column('values = ["a", "a"]'), "`columns.ZIP.values`", "twice"),
    "values of two kinds": (column('values = ["a", 1]'), "`columns.ZIP.values`", "must hold"),
    "truth beside a number": (column("values = [true, 1]"), "`columns.ZIP.values`", "must hold"),
    "no bins": (column("min=1\nmax=2\nbins=0"), "`columns.ZIP.bins`", "at least 1"),
    "bins without bounds": (column("bins = 3"), "`columns.ZIP.bins`", "needs `min` and `max`"),
    "bins of a point": (column("min=1\nmax=1\nbins=2"), "`columns.ZIP.bins`", "must be 1"),
    "a fraction bounds an integer": (
        column('type = "integer"\nmin = 0\nmax = 2.5'),
        "`columns.ZIP.max`",
        "whole numbers",
    ),
    "text has bounds": (column('type = "text"\nmin = 1\nmax = 2'), "`columns.ZIP.min`", "`values`"),
    "public without key": (MINIMAL + '[public.z]\nsource="zips.csv"', "`public.z.key`", "missing"),
    "public without source": (MINIMAL + '[public.z]\nkey = "zip"', "`public.z.source`", "file"),
    "public file is not there": (
        MINIMAL + '[public.z]\nkey = "zip"\nsource = "z.csv"',
        "`public.z.source`",
        "no such file",
    ),
    "public table beside a file": (
        MINIMAL + '[public.z]\nkey = "zip"\nsource = "#zips"',
        "`public.z.source`",
        "files too",
    ),
    "public file beside PostgreSQL": (
        '[table]\nsource="postgresql://h/d#t"\nkey="id"\n[columns.ZIP]\n'
        '[public.z]\nkey = "zip"\nsource = "zips.csv"',
        "`public.z.source`",
        "same database",
    ),
    "public table of another database": (
        MINIMAL + '[public.z]\nkey = "zip"\nsource = "postgresql://h/d#t"',
        "`public.z.source`",
        "must be a file",
    ),
    "no epsilon": (budget("delta = 0.1"), "`budget.epsilon`", "is missing"),
    "epsilon is 0": (budget("epsilon = 0"), "`budget.epsilon`", "above 0"),
    "epsilon is infinite": (budget("epsilon = inf"), "`budget.epsilon`", "a number, not infinity"),
    "delta is negative": (budget("epsilon = 1\ndelta = -1e-9"), "`budget.delta`", "at least 0"),
    "unknown ledger": (budget('epsilon=1\nledger="redis://h"'), "`budget.ledger`", "postgresql"),
    "answer is a value": ("answer = 3\n" + MINIMAL, "`answer`", "a section, not a whole number"),
    "unknown key of answer": (answer("surprise = 3"), "`answer.surprise`", "`surprises`?"),
    "unknown strategy": (answer('strategy = "hot"'), "`answer.strategy`", '"auto", "warm", "cold"'),
    "start is 0": (answer("start = 0"), "`answer.start`", "above 0 and below 1"),
    "no surprises": (answer("surprises = 0"), "`answer.surprises`", "at least 1"),
    "no ration": (answer("ration = 0"), "`answer.ration`", "at least 1"),
    "no questions": (answer("questions = 0"), "`answer.questions`", "at least 1"),
    "Gaussian for nobody knows how many": (
        answer('strategy = "gaussian"'),
        "`answer.questions`",
        "is missing; `gaussian` needs",
    ),
    "confidence in per cent": (answer("confidence = 95"), "`answer.confidence`", "below 1"),
    "unknown exhausted": (
        answer('exhausted = "guess"'),
        "`answer.exhausted`",
        '"refuse" or "unverified"',
    ),
    "not TOML": ("[table]\nsource = ", "not valid TOML", "line 2, column 10"),
    "a key twice": (table('source = "a"\nsource = "b"'), "not valid TOML", "line 3"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_sentence_that_names_file_and_key(write: Write, case: str) -> None:
    text, key, expected = MISTAKES[case]
    path = write(text)
    with pytest.raises(Misconfigured) as caught:
        load_policy(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert key in sentence and expected in sentence
    assert "\n" not in sentence and ". " not in sentence.removeprefix(str(path))


def test_a_file_that_is_not_there_or_not_text_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"cannot read the policy .*absent.toml: No such file"):
        load_policy(tmp_path / "absent.toml")
    with pytest.raises(Misconfigured, match=r"cannot read the policy .*: Is a directory"):
        load_policy(tmp_path)
    (tmp_path / "latin.toml").write_bytes("[columns.Größe]".encode("latin-1"))
    with pytest.raises(Misconfigured, match=r"latin.toml is not UTF-8 text"):
        load_policy(tmp_path / "latin.toml")


def test_a_byte_order_mark_is_ignored(write: Write) -> None:
    path = write(MINIMAL)
    marked = b"\xef\xbb\xbf" + path.read_bytes()
    path.write_bytes(marked)
    assert load_policy(path).columns == (Column("ZIP"),)
