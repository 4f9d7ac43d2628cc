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
    Missing,
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
missing = "public"
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
DATABASE = '[table]\nsource = "postgresql://h/d#t"\nkey = "id"\n[columns.ZIP]\n'

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
                missing=Missing.PUBLIC,
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


def test_what_is_not_said_has_its_default_key_by_key(write: Write) -> None:
    policy = load_policy(write(MINIMAL))
    assert policy.columns == (Column("ZIP"),) and policy.version == "1"
    assert policy.budget is None and policy.key is None and policy.rows_per_person == 1
    assert load_policy(write(MINIMAL + "[budget]\nepsilon = 2")).budget == Budget(Fraction(2))
    for said, expected in (
        ("", Answering()),
        ("[answer]", Answering()),
        ("[answer]\nsurprises = 3", replace(Answering(), surprises=3)),
    ):
        assert load_policy(write(MINIMAL + said)).answering == expected


def test_a_private_number_may_be_declared_to_have_no_bounds(write: Write) -> None:
    (zip_code,) = load_policy(write(MINIMAL + 'role = "private"\nunbounded = true')).columns
    assert zip_code.unbounded and zip_code.low is None and zip_code.values is None


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("", Missing.NONE),
        ("nullable = false", Missing.NONE),
        ("nullable = true", Missing.SECRET),
        ('missing = "none"\nnullable = false', Missing.NONE),
        ('missing = "secret"\nnullable = true', Missing.SECRET),
        ('missing = "public"\nnullable = true', Missing.PUBLIC),
    ],
)
def test_the_policy_says_whether_missingness_is_secret(
    write: Write, said: str, missing: Missing
) -> None:
    (zip_code,) = load_policy(write(MINIMAL + said)).columns
    assert zip_code.missing is missing and zip_code.nullable is (missing is not Missing.NONE)


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
    public = '[public.zips]\nkey="zip"\n[public.regions]\nsource="#reference.regions"\nkey="id"'
    assert load_policy(write(DATABASE + public)).public_tables == (
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

SECTIONS = {
    "table": "[table]\n{}\n[columns.ZIP]",
    "columns.ZIP": MINIMAL + "{}",
    'columns."Blood sugar"': '[table]\nsource = "hospital.csv"\n[columns."Blood sugar"]\n{}',
    "public.z": MINIMAL + "[public.z]\n{}",
    "budget": MINIMAL + "[budget]\n{}",
    "answer": MINIMAL + "[answer]\n{}",
}
"""A policy in which one section is open."""

IN_SECTIONS = {
    "table": [
        ('key = "id"', "source", "is missing"),
        ('source = ""', "source", "is empty"),
        ('source = "clinic.csv"', "source", "no such file"),
        ('source = "mixed-*"', "source", "both CSV and Parquet"),
        ('source = "notes.docx"', "source", "unknown"),
        ('source = "folder.csv"', "source", "folder"),
        ('source = "base.db"', "source", "say which table"),
        ('source = "mysql://h/d#t"', "source", "mysql://"),
        ('source = "duckdb:///base.db"', "source", "#table"),
        ('source = "duckdb:///base.db#a.b.c"', "source", "#schema.table"),
        ('source = "duckdb://base.db#t"', "source", "three slashes"),
        ('source = "duckdb:///base.db#people"', "key", "unique and never NULL"),
        ('source = "hospital.csv"\nperson = "id"', "rows_per_person", "is missing"),
        ('source = "hospital.csv"\nrows_per_person = 2', "person", "is missing"),
        ('source = "hospital.csv"\nrows_per_person = 0', "rows_per_person", "at least 1"),
    ],
    "columns.ZIP": [
        ("mim = 3", "mim", "did you mean `min`?"),
        ("zzz = 3", "zzz", "expected `role`, `type`"),
        ('role = "secret"', "role", '"public", "private" or'),
        ('nullable = "yes"', "nullable", "true or false"),
        ('missing = "secert"', "missing", "did you mean `secret`?"),
        ('missing = "none"\nnullable = true', "nullable", "keep `missing` alone"),
        ('missing = "public"\nnullable = false', "nullable", 'agree with `missing = "public"`'),
        ("min = 3\nmax = 2.9", "min", "above `max`"),
        ("min = 3", "max", "is missing"),
        ('min = "3"\nmax = 4', "min", "a number, a date"),
        ("min = -inf\nmax = 4", "min", "a number"),
        ("min = 2020-01-01T00:00:00\nmax = 2020-01-02T00:00:00Z", "max", "without a time zone"),
        ("min = 3\nmax = 2020-01-01", "max", "same kind"),
        ('role = "private"', "role", "`values`"),
        ("min = 1\nmax = 2\nvalues = [1]", "values", "keep one"),
        ("min = 1\nmax = 2\nunbounded = true", "unbounded", "beside bounds"),
        ("values = []", "values", "is empty"),
        ("values = 3", "values", "an array"),
        ('values = ["a", "a"]', "values", "twice"),
        ('values = ["a", 1]', "values", "must hold"),
        ("values = [true, 1]", "values", "must hold"),
        ("min = 1\nmax = 2\nbins = 0", "bins", "at least 1"),
        ("bins = 3", "bins", "needs `min` and `max`"),
        ("min = 1\nmax = 1\nbins = 2", "bins", "must be 1"),
        ('type = "integer"\nmin = 0\nmax = 2.5', "max", "whole numbers"),
        ('type = "text"\nmin = 1\nmax = 2', "min", "`values`"),
    ],
    'columns."Blood sugar"': [("mim = 3", "mim", "?")],
    "public.z": [
        ('keys = "a"', "keys", "`key`?"),
        ('source = "zips.csv"', "key", "missing"),
        ('key = "zip"', "source", "file"),
        ('key = "zip"\nsource = "z.csv"', "source", "no such file"),
        ('key = "zip"\nsource = "#zips"', "source", "files too"),
        ('key = "zip"\nsource = "postgresql://h/d#t"', "source", "must be a file"),
    ],
    "budget": [
        ("epsilom = 1", "epsilom", "`epsilon`?"),
        ("delta = 0.1", "epsilon", "is missing"),
        ("epsilon = 0", "epsilon", "above 0"),
        ("epsilon = inf", "epsilon", "a number, not infinity"),
        ("epsilon = 1\ndelta = -1e-9", "delta", "at least 0"),
        ('epsilon = 1\nledger = "redis://h"', "ledger", "postgresql"),
    ],
    "answer": [
        ("surprise = 3", "surprise", "`surprises`?"),
        ('strategy = "hot"', "strategy", '"auto", "warm", "cold"'),
        ("start = 0", "start", "above 0 and below 1"),
        ("surprises = 0", "surprises", "at least 1"),
        ("ration = 0", "ration", "at least 1"),
        ("questions = 0", "questions", "at least 1"),
        ('strategy = "gaussian"', "questions", "is missing; `gaussian` needs"),
        ("confidence = 95", "confidence", "below 1"),
        ('exhausted = "guess"', "exhausted", '"refuse" or "unverified"'),
    ],
}
ANYWHERE = [
    (MINIMAL + "[colums.x]", "`colums`", "did you mean `columns`?"),
    ("[columns.ZIP]", "`table`", "expected a section"),
    ("table = 3\n[columns.ZIP]", "`table`", "a section, not a whole number"),
    ('[table]\nsource = "hospital.csv"', "`columns`", "[columns.NAME]"),
    (MINIMAL + '[columns.""]', '`columns.""`', "rename"),
    (MINIMAL + "[columns.casemate_record]", "`columns.casemate_record`", "rename"),
    (DATABASE + '[public.z]\nkey="a"\nsource="zips.csv"', "`public.z.source`", "same database"),
    ("answer = 3\n" + MINIMAL, "`answer`", "a section, not a whole number"),
    ("[table]\nsource = ", "not valid TOML", "line 2, column 10"),
    ('[table]\nsource = "a"\nsource = "b"', "not valid TOML", "line 3"),
]
MISTAKES = [
    *ANYWHERE,
    *(
        (SECTIONS[section].format(lines), f"`{section}.{key}`", sentence)
        for section, mistakes in IN_SECTIONS.items()
        for lines, key, sentence in mistakes
    ),
]


@pytest.mark.parametrize(("text", "key", "expected"), MISTAKES)
def test_a_mistake_is_one_sentence_that_names_file_and_key(
    write: Write, text: str, key: str, expected: str
) -> None:
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
