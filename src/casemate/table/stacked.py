"""Versions of one table stacked into one: the rows of all of them, each with its version.

A record is named by its key, in versions after the first with the version's name behind it. Whose
row it is, LINK says: the person where the policies name one, and otherwise the key. A private value
of a person that is the same in several versions is one (`Column.kept`). Public columns that are
declared alike are one column; others have the version's name behind theirs, and are empty in the
rows of other versions.

Memory   All columns that statements can use are read into a DuckDB in memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured
from casemate.table.schema import Column, ColumnType, PerPerson, Policy, PublicTable, Role
from casemate.table.sources.duckdb import DuckDBSource
from casemate.table.sources.exact_cells import check_exact
from casemate.table.sources.place import ColumnsInMemory
from casemate.table.sources.source import RECORD, Frame, Series, Source, quote_name
from casemate.table.table import Table

RELEASE, LINK, NAME = "casemate_release", "casemate_link", "casemate_name"
"""The columns of a stacked table that no version has: which one, whose row, and its name."""

DECLARED = {
    "type": "type",
    "low": "min",
    "high": "max",
    "values": "values",
    "unbounded": "unbounded",
    "missing": "missing",
    "per_person": "per_person",
}
"""What all policies must say alike of a private column, and the keys by which they say it."""


@dataclass(frozen=True)
class Version:
    """One version in a stack: its policy, and what its columns and public tables are called."""

    place: int
    policy: Policy
    columns: Mapping[str, str]
    public_tables: Mapping[str, str]


@dataclass(frozen=True, eq=False, repr=False)
class Stack:
    """The stacked table, its versions, and of each record its version and its row there."""

    table: Table
    versions: tuple[Version, ...]
    version: Mapping[str, int]
    called: Mapping[str, int | str]


def stack_tables(tables: Sequence[Table], names: Sequence[str]) -> Stack:
    """Stack versions of one table, which are called so in messages and after the first in names."""
    for table, name in zip(tables, names, strict=True):
        _check_alike(table, name, tables[0], names[0])
    stacking = _Stacking()
    for table, name in zip(tables, names, strict=True):
        stacking.add(table, name)
    return stacking.stack()


def _check_alike(table: Table, name: str, first: Table, first_name: str) -> None:
    """Refuse a version in which people cannot be found again, or other things are private."""
    if table.policy.key is None:
        raise Misconfigured(
            f"{name} has no `key`, by which people of one release are found again in another; "
            f"name it with --key, or declare it in a policy"
        )
    if (table.policy.person is None) is not (first.policy.person is None):
        raise Misconfigured(f"only one of {first_name} and {name} declares `person`; let both")
    link, first_link = _link(table), _link(first)
    if table.source.fields()[link] is not first.source.fields()[first_link]:
        raise Misconfigured(
            f"people cannot be found again: {first_link} in {first_name} and {link} in {name} are "
            f"of different types; declare the same `type`"
        )
    private, first_private = (
        {column.name: column for column in each.policy.private()} for each in (table, first)
    )
    if private.keys() != first_private.keys():
        raise Misconfigured(
            f"{first_name} protects {_listed(first_private)}, and {name} {_listed(private)}; "
            f"declare the same private columns"
        )
    for column, other in zip(first_private.values(), map(private.get, first_private), strict=True):
        unlike = [key for at, key in DECLARED.items() if getattr(column, at) != getattr(other, at)]
        if unlike:
            raise Misconfigured(
                f"{first_name} and {name} do not declare the private column {column.name} alike "
                f"({', '.join(unlike)}); declare the same in both"
            )


def _link(table: Table) -> str:
    """The column by which a person is found again in another version."""
    return table.policy.person or str(table.policy.key)


def _listed(columns: Mapping[str, Column]) -> str:
    return " and ".join(sorted(columns)) or "nothing"


class _Stacking:
    """Versions stacked so far."""

    def __init__(self) -> None:
        self._versions: list[Version] = []
        self._parts: list[dict[str, Series]] = []
        self._columns: dict[str, Column] = {}
        self._public: dict[str, tuple[PublicTable, ColumnsInMemory]] = {}
        self._version: dict[str, int] = {}
        self._called: dict[str, int | str] = {}

    def add(self, table: Table, name: str) -> None:
        """Read one more version."""
        place, policy = len(self._versions), table.policy
        columns = {
            column.name: self._name_column(column, name)
            for column in policy.columns
            if column.role is not Role.IDENTIFIER
        }
        public = {
            each.name: self._add_public(each, table.source, f" in {name}" if place else "")
            for each in policy.public_tables
        }
        asked = {RECORD: RECORD, LINK: quote_name(_link(table))}
        asked |= {called: quote_name(own) for own, called in columns.items()}
        cells = _read(table.source, None, asked)
        keys = cells.pop(RECORD)
        records = [f"{key} in {name}" if place else str(key) for key in keys.values.tolist()]
        link = Series.of(_texts(cells[LINK]), ColumnType.TEXT)
        if policy.person is not None:
            _check_rows(link, policy, name)
        release = Series.of([place] * len(records), ColumnType.INTEGER)
        named = Series.of(records, ColumnType.TEXT)
        self._parts.append({**cells, RELEASE: release, LINK: link, NAME: named})
        self._versions.append(Version(place, policy, columns, public))
        self._version |= dict.fromkeys(records, place)
        rows = range(1, len(records) + 1)
        self._called |= {
            record: f"{row} of {name}" if place else row
            for record, row in zip(records, rows, strict=True)
        }

    def _name_column(self, column: Column, version: str) -> str:
        """What a column is called in the stack: as it is, unless it is there and another."""
        if column.role is Role.PRIVATE:
            kept = replace(column, per_person=PerPerson.CONSTANT, kept=True)
            return self._columns.setdefault(column.name, kept).name
        if self._columns.setdefault(column.name, column) == column:
            return column.name
        called = f"{column.name} in {version}"
        self._columns[called] = replace(column, name=called)
        return called

    def _add_public(self, table: PublicTable, source: Source, behind: str) -> str:
        """Read a public table of a version; what it is called in the stack."""
        types = source.fields(table.name)
        cells = _read(source, table.name, {name: quote_name(name) for name in types})
        called = f"{table.name}{behind}"
        in_memory = ColumnsInMemory(called, cells, types)
        self._public[called] = replace(table, name=called), in_memory
        return called

    def stack(self) -> Stack:
        """All versions as one table."""
        types = {name: column.type for name, column in self._columns.items() if column.type}
        types |= {RELEASE: ColumnType.INTEGER, LINK: ColumnType.TEXT, NAME: ColumnType.TEXT}
        series = {name: self._stacked(name, type_) for name, type_ in types.items()}
        release = Column(RELEASE, type=ColumnType.INTEGER)
        policy = Policy(
            "releases",
            (release, *self._columns.values()),
            key=NAME,
            person=LINK,
            public_tables=tuple(table for table, _ in self._public.values()),
        )
        public = {name: (place, table.key) for name, (table, place) in self._public.items()}
        try:
            source = DuckDBSource(ColumnsInMemory("", series, types), key=NAME, public=public)
        except duckdb.Error:
            raise Misconfigured("the releases have numbers too long to be held together") from None
        check_exact(policy, source)
        return Stack(Table(policy, source), tuple(self._versions), self._version, self._called)

    def _stacked(self, name: str, type_: ColumnType) -> Series:
        """One column of all versions, empty in those that do not have it."""
        parts = [
            part[name] if name in part else Series.of([None] * len(part[NAME].values), type_)
            for part in self._parts
        ]
        return Series(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.missing for part in parts]),
        )


def _read(source: Source, public: str | None, asked: Mapping[str, str]) -> dict[str, Series]:
    """Columns of a table by the names they are asked for; rows in the order of the first."""
    shown = ", ".join(f"t.{text} AS c{i}" for i, text in enumerate(asked.values()))
    frame: Frame = source.read(f"SELECT {shown} FROM {source.relation(public)} AS t")
    order: NDArray[np.int64] = np.argsort(frame["c0"].values, kind="stable")
    return {
        name: Series(each.values[order], each.missing[order])
        for name, each in zip(asked, frame.values(), strict=True)
    }


def _texts(cells: Series) -> list[str | None]:
    known = zip(cells.values.tolist(), cells.missing.tolist(), strict=True)
    return [None if missing else str(value) for value, missing in known]


def _check_rows(link: Series, policy: Policy, name: str) -> None:
    """Refuse several rows of one person unless every private column is the same in them."""
    varying = [c.name for c in policy.private() if c.per_person is PerPerson.VARYING]
    people = link.values[~link.missing].tolist()
    if varying and len(set(people)) < len(people):
        raise Misconfigured(
            f"in {name} somebody has several rows, in which {varying[0]} may vary; across releases "
            f'each person needs one row, or private columns that are per_person = "constant"'
        )
