"""The policy file: one protected table described in TOML, read into frozen values.

Relative paths in it are seen from the folder it lies in. The first mistake ends the reading, with
one sentence that names the file, the key, and what was expected.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from casemate.errors import Misconfigured, checked_path
from casemate.table.schema import (
    Answering,
    Budget,
    CellFormat,
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
    Value,
    is_value,
    misfit,
    of_one_kind,
)
from casemate.table.shipped.tables import names
from casemate.table.sources.place import (
    FORMS,
    DuckDBTable,
    Files,
    Place,
    PostgresTable,
    beside,
    find,
)
from casemate.table.sources.source import RECORD
from casemate.table.toml import TomlTable, join_words, read_document

FORMAT = ("missing_markers", "thousands", "decimal", "currency")
COLUMN = (
    *("role", "type", "min", "max", "values", "unbounded"),
    *("bins", "from", "missing", "nullable", "per_person"),
    *FORMAT,
)
Wrong = tuple[str, str]
"""A key of the section, and what is wrong with it."""


def read_column(columns: TomlTable, name: str, section: TomlTable, usual: CellFormat) -> Column:
    """The column that the section `columns.NAME` describes; `usual` is the table's format."""
    if name in ("", RECORD):
        raise columns.mistake(name, "is not a name a column can have; rename the column")
    section.allow(*COLUMN)
    low, high = _bounds(section)
    column = Column(
        name=name,
        role=section.choice("role", Role) or Role.PUBLIC,
        type=section.choice("type", ColumnType),
        low=low,
        high=high,
        values=_values(section),
        unbounded=section.flag("unbounded") or False,
        bins=section.whole("bins", least=1),
        provenance=section.choice("from", Provenance) or Provenance.PUBLIC,
        missing=_missing(section),
        per_person=section.choice("per_person", PerPerson) or PerPerson.VARYING,
        format=_format(section, usual),
    )
    _check(section, column)
    return column


def _bounds(section: TomlTable) -> tuple[Value | None, Value | None]:
    low, high = (_bound(section, key) for key in ("min", "max"))
    if low is None and high is None:
        return None, None
    if low is None or high is None:
        missing, given = ("min", "max") if low is None else ("max", "min")
        raise section.mistake(missing, f"is missing; `{given}` needs it")
    if not of_one_kind((low, high)):
        raise section.mistake("max", "must be of the same kind as `min`")
    if low > high:  # type: ignore[operator]  # two of one kind, and every kind here is ordered
        raise section.mistake("min", "must not be above `max`")
    return low, high


def _bound(section: TomlTable, key: str) -> Value | None:
    value: Any = section.entries.get(key)
    if value is None or (is_value(value) and not isinstance(value, bool | str)):
        return value
    raise section.mistake(key, "must be a number, a date, or a date-time without a time zone")


def _values(section: TomlTable) -> tuple[Value, ...] | None:
    items: Sequence[Any] | None = section.items("values")
    if items is None:
        return None
    if not items:
        raise section.mistake("values", "is empty; expected every value the column may hold")
    values = tuple(item for item in items if is_value(item))
    if len(values) < len(items) or not of_one_kind(values):
        raise section.mistake("values", "must hold strings, numbers, dates, or true and false")
    if len(set(values)) < len(values):
        raise section.mistake("values", "lists a value twice; expected each one once")
    return values


def _missing(section: TomlTable) -> Missing:
    """Whether values may be missing; `nullable` is the older word for "secret"."""
    stated, nullable = section.choice("missing", Missing), section.flag("nullable")
    if stated is None:
        return Missing.SECRET if nullable else Missing.NONE
    if nullable is not None and nullable is (stated is Missing.NONE):
        reason = f'does not agree with `missing = "{stated}"`; keep `missing` alone'
        raise section.mistake("nullable", reason)
    return stated


def _format(section: TomlTable, usual: CellFormat) -> CellFormat:
    """How cells are written, as far as a section says it."""
    markers: Sequence[Any] | None = section.items("missing_markers")
    if markers is not None and not all(type(each) in (str, int, Decimal) for each in markers):
        raise section.mistake("missing_markers", 'must hold strings such as "NA"')
    found = CellFormat(
        usual.markers if markers is None else tuple(str(each).strip() for each in markers),
        section.text("thousands") or usual.thousands,
        section.text("decimal") or usual.decimal,
        section.text("currency") or usual.currency,
    )
    wrong = found.mistake()
    if wrong is not None:
        raise section.mistake(*wrong)
    return found


def _check(section: TomlTable, column: Column) -> None:
    """What no single key can tell: the keys of a column must agree with each other."""
    wrong = _wrong_domain(column) or _wrong_bins(column) or _wrong_type(column)
    if wrong is not None:
        raise section.mistake(*wrong)


def _wrong_domain(column: Column) -> Wrong | None:
    """Bounds, values and unbounded: at most one of the three, and exactly one where private."""
    bounded, enumerated = column.low is not None, column.values is not None
    stated = bounded + enumerated + column.unbounded
    if bounded and enumerated:
        return "values", "must not stand beside `min` and `max`; keep one of them"
    if stated > 1:
        return "unbounded", "must not stand beside bounds or `values`"
    if column.role is Role.PRIVATE and not stated:
        return (
            "role",
            'is "private"; expected bounds (`min` and `max`), `values` or `unbounded` beside it',
        )
    return None


def _wrong_bins(column: Column) -> Wrong | None:
    """Bins part what lies between two bounds."""
    if column.bins is None:
        return None
    if column.low is None:
        return "bins", "needs `min` and `max`"
    if column.bins > 1 and column.low == column.high:
        return "bins", "must be 1 where `min` equals `max`"
    return None


def _wrong_type(column: Column) -> Wrong | None:
    """Bounds and values are of the column's type, where it states one."""
    return None if column.type is None else misfit(column, column.type)


# The file ----------------------------------------------------------------------------------------


SECTIONS = ("table", "columns", "public", "budget", "answer")
TABLE = ("source", "key", "person", "rows_per_person", "version", *FORMAT)
PUBLIC = ("source", "key")
BUDGET = ("epsilon", "delta", "neighbours", "protects", "ledger")
ANSWER = (
    "strategy",
    "start",
    "surprises",
    "ration",
    "questions",
    "confidence",
    "exhausted",
    "prior",
)


def load_policy(path: str | Path, *, absent: bool = False) -> Policy:
    """Read a policy file; it is checked against its source only when the source is opened.

    With `absent` the files it names need not be there: for what never opens them.
    """
    document = read_document(Path(checked_path(path, "a policy (.toml)")))
    document.allow(*SECTIONS)
    table = document.section("table")
    if table is None:
        raise document.mistake("table", "is missing; expected a section with the key `source`")
    table.allow(*TABLE)
    person, rows_per_person = _person(table)
    source, place = _source(table, absent)
    usual = _format(table, CellFormat())
    return Policy(
        source=source,
        columns=_columns(document, usual),
        key=_key(table, place),
        person=person,
        rows_per_person=rows_per_person,
        public_tables=() if absent else _public_tables(document, place),
        budget=_budget(document.section("budget")),
        answering=_answering(document.section("answer"), absent),
        format=usual,
        version=table.text("version") or "1",
        path=document.file,
    )


def _source(table: TomlTable, absent: bool) -> tuple[str, Place | None]:
    """The source with its path made absolute, and where it is; None for a shipped table."""
    source = table.text("source")
    if source is None:
        raise table.mistake("source", f"is missing; expected {FORMS}")
    if absent:
        return source, None
    place = _place(table, source)
    if place is not None:
        return place.source, place
    if source.partition(":")[0] not in names():
        raise _absent(table, source)
    return source, None


def _place(section: TomlTable, source: str) -> Place | None:
    try:
        return find(source, section.file.parent)
    except Misconfigured as error:
        raise section.mistake("source", str(error)) from None


def _absent(section: TomlTable, source: str) -> Misconfigured:
    path = section.file.parent / source
    return section.mistake("source", f"names {path}, and there is no such file; expected {FORMS}")


def _key(table: TomlTable, place: Place | None) -> str | None:
    key = table.text("key")
    if key is None and isinstance(place, DuckDBTable | PostgresTable):
        raise table.mistake(
            "key", "is missing; a table of a database needs a column that is unique and never NULL"
        )
    return key


def _person(table: TomlTable) -> tuple[str | None, int]:
    person, rows = table.text("person"), table.whole("rows_per_person", least=1)
    if person is not None and rows is None:
        raise table.mistake(
            "rows_per_person", "is missing; `person` needs the most rows that one person may have"
        )
    if person is None and rows is not None:
        raise table.mistake(
            "person", "is missing; `rows_per_person` needs the column that says whose row it is"
        )
    return person, rows or 1


def _columns(document: TomlTable, usual: CellFormat) -> tuple[Column, ...]:
    section = document.section("columns")
    if section is None or not section.entries:
        raise document.mistake("columns", "is missing; expected a section [columns.NAME] for each")
    return tuple(read_column(section, name, inner, usual) for name, inner in section.sections())


# Public tables and the budget -----------------------------------------------------------------


def _public_tables(document: TomlTable, place: Place | None) -> tuple[PublicTable, ...]:
    section = document.section("public")
    if section is None:
        return ()
    seen: set[str] = set()
    for name, _ in section.sections():
        if name.lower() in seen or "\0" in name:
            reason = "is a name that SQL cannot tell from another one; rename one of them"
            raise section.mistake(name, reason)
        seen.add(name.lower())
    return tuple(_public_table(name, inner, place) for name, inner in section.sections())


def _public_table(name: str, section: TomlTable, place: Place | None) -> PublicTable:
    section.allow(*PUBLIC)
    key, source = section.text("key"), section.text("source")
    if key is None:
        raise section.mistake("key", "is missing; expected the column it is joined by, unique")
    if source is None and not isinstance(place, DuckDBTable | PostgresTable):
        raise section.mistake("source", "is missing; a table beside a file is a file too")
    return PublicTable(name, _beside(section, source, place), key)


def _beside(section: TomlTable, source: str | None, place: Place | None) -> str | None:
    """A public table's source with its path made absolute; `#table` is in the same database."""
    if source is None:
        return None
    if source.startswith("#") and place is not None:
        try:
            beside(place, source[1:])
        except Misconfigured as error:
            raise section.mistake("source", str(error)) from None
        return source
    if isinstance(place, PostgresTable):
        raise section.mistake("source", "must be #table or left out: same database")
    found = _place(section, source)
    if found is None:
        raise _absent(section, source)
    if not isinstance(found, Files):
        raise section.mistake("source", "must be a file, or #table of the same database")
    return found.source


def _budget(section: TomlTable | None) -> Budget | None:
    if section is None:
        return None
    section.allow(*BUDGET)
    epsilon, delta = section.number("epsilon"), section.number("delta")
    if epsilon is None:
        raise section.mistake("epsilon", "is missing; expected a number above 0")
    if epsilon <= 0:
        raise section.mistake("epsilon", "must be a number above 0")
    if delta is not None and not 0 <= delta < 1:
        raise section.mistake("delta", "must be at least 0 and below 1; 0 is pure privacy")
    return Budget(
        epsilon=Fraction(epsilon),
        delta=Fraction(delta or Decimal(0)),
        neighbours=section.choice("neighbours", Neighbours) or Neighbours.ADD_REMOVE,
        protects=section.choice("protects", Protects) or Protects.PERSON,
        ledger=_ledger(section),
    )


def _ledger(section: TomlTable) -> str | None:
    ledger = section.text("ledger")
    if ledger is None or ledger.startswith(("postgresql://", "postgres://")):
        return ledger
    if "://" in ledger:
        known = join_words(("a file", "postgresql://host/database"), mark="")
        raise section.mistake("ledger", f"has an address casemate does not know; expected {known}")
    return str((section.file.parent / ledger).absolute())


# Answers --------------------------------------------------------------------------------------


def _answering(section: TomlTable | None, absent: bool) -> Answering:
    if section is None:
        return Answering()
    section.allow(*ANSWER)
    usual, listed = Answering(), isinstance(section.entries.get("questions"), str)
    found = Answering(
        strategy=section.choice("strategy", Strategy) or usual.strategy,
        start=_share(section, "start", usual.start),
        surprises=section.whole("surprises", least=1) or usual.surprises,
        ration=section.whole("ration", least=1),
        questions=None if listed else section.whole("questions", least=1),
        declared=_file_beside(section, "questions", absent) if listed else None,
        confidence=_share(section, "confidence", usual.confidence),
        exhausted=section.choice("exhausted", Exhausted) or usual.exhausted,
        prior=_file_beside(section, "prior", absent),
    )
    if found.strategy in (Strategy.GAUSSIAN, Strategy.LAPLACE) and found.questions is None:
        raise section.mistake(
            "questions",
            f"{'names a file' if listed else 'is missing'}; `{found.strategy}` needs to know how "
            f"many share the budget",
        )
    return found


def _file_beside(section: TomlTable, key: str, absent: bool) -> str | None:
    """The file that a key names, with its path made absolute."""
    name = section.text(key)
    if name is None:
        return None
    path = (section.file.parent / name).absolute()
    if not absent and not path.is_file():
        raise section.mistake(key, f"names {path}, and there is no such file")
    return str(path)


def _share(section: TomlTable, key: str, usual: Fraction) -> Fraction:
    number = section.number(key)
    if number is not None and not 0 < number < 1:
        raise section.mistake(key, "must be a number above 0 and below 1")
    return usual if number is None else Fraction(number)
