"""The policy file: one protected table described in TOML, read into frozen values.

Relative paths in it are seen from the folder it lies in. The first mistake ends the reading, with
one sentence that names the file, the key, and what was expected.
"""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from casemate.errors import Misconfigured, checked_path
from casemate.table.column_section import read_column
from casemate.table.place import FORMS, DuckDBTable, Files, Place, PostgresTable, beside, find
from casemate.table.schema import (
    Answering,
    Budget,
    Column,
    Exhausted,
    Neighbours,
    Policy,
    Protects,
    PublicTable,
    Strategy,
)
from casemate.table.shipped import names
from casemate.table.toml import Section, listed, read_document

SECTIONS = ("table", "columns", "public", "budget", "answer")
TABLE = ("source", "key", "person", "rows_per_person", "version")
PUBLIC = ("source", "key")
BUDGET = ("epsilon", "delta", "neighbours", "protects", "ledger")
ANSWER = ("strategy", "start", "surprises", "ration", "questions", "confidence", "exhausted")


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
    return Policy(
        source=source,
        columns=_columns(document),
        key=_key(table, place),
        person=person,
        rows_per_person=rows_per_person,
        public_tables=() if absent else _public_tables(document, place),
        budget=_budget(document.section("budget")),
        answering=_answering(document.section("answer")),
        version=table.text("version") or "1",
        path=document.file,
    )


def _source(table: Section, absent: bool) -> tuple[str, Place | None]:
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


def _place(section: Section, source: str) -> Place | None:
    try:
        return find(source, section.file.parent)
    except Misconfigured as error:
        raise section.mistake("source", str(error)) from None


def _absent(section: Section, source: str) -> Misconfigured:
    path = section.file.parent / source
    return section.mistake("source", f"names {path}, and there is no such file; expected {FORMS}")


def _key(table: Section, place: Place | None) -> str | None:
    key = table.text("key")
    if key is None and isinstance(place, DuckDBTable | PostgresTable):
        raise table.mistake(
            "key", "is missing; a table of a database needs a column that is unique and never NULL"
        )
    return key


def _person(table: Section) -> tuple[str | None, int]:
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


def _columns(document: Section) -> tuple[Column, ...]:
    section = document.section("columns")
    if section is None or not section.entries:
        raise document.mistake("columns", "is missing; expected a section [columns.NAME] for each")
    return tuple(read_column(section, name, inner) for name, inner in section.sections())


# Public tables and the budget -----------------------------------------------------------------


def _public_tables(document: Section, place: Place | None) -> tuple[PublicTable, ...]:
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


def _public_table(name: str, section: Section, place: Place | None) -> PublicTable:
    section.allow(*PUBLIC)
    key, source = section.text("key"), section.text("source")
    if key is None:
        raise section.mistake("key", "is missing; expected the column it is joined by, unique")
    if source is None and not isinstance(place, DuckDBTable | PostgresTable):
        raise section.mistake("source", "is missing; a table beside a file is a file too")
    return PublicTable(name, _beside(section, source, place), key)


def _beside(section: Section, source: str | None, place: Place | None) -> str | None:
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


def _budget(section: Section | None) -> Budget | None:
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


def _ledger(section: Section) -> str | None:
    ledger = section.text("ledger")
    if ledger is None or ledger.startswith(("postgresql://", "postgres://")):
        return ledger
    if "://" in ledger:
        known = listed(("a file", "postgresql://host/database"), mark="")
        raise section.mistake("ledger", f"has an address casemate does not know; expected {known}")
    return str((section.file.parent / ledger).absolute())


# Answers --------------------------------------------------------------------------------------


def _answering(section: Section | None) -> Answering:
    if section is None:
        return Answering()
    section.allow(*ANSWER)
    usual = Answering()
    found = Answering(
        strategy=section.choice("strategy", Strategy) or usual.strategy,
        start=_share(section, "start", usual.start),
        surprises=section.whole("surprises", least=1) or usual.surprises,
        ration=section.whole("ration", least=1),
        questions=section.whole("questions", least=1),
        confidence=_share(section, "confidence", usual.confidence),
        exhausted=section.choice("exhausted", Exhausted) or usual.exhausted,
    )
    if found.strategy in (Strategy.GAUSSIAN, Strategy.LAPLACE) and found.questions is None:
        raise section.mistake(
            "questions", f"is missing; `{found.strategy}` needs to know how many share the budget"
        )
    return found


def _share(section: Section, key: str, usual: Fraction) -> Fraction:
    number = section.number(key)
    if number is not None and not 0 < number < 1:
        raise section.mistake(key, "must be a number above 0 and below 1")
    return usual if number is None else Fraction(number)
