"""An audit as the fields of `casemate.audit/1`: every report of it is made of these, and no other.

Without `reveal` no value, bound or total is among them, and records and people are named by row
numbers: a key may be a name or a number that identifies somebody outside the table, and a report is
read by more people than the table is. A row number says which row, to whoever has the table. Public
columns, the keys of cells and the rows that a repair withholds are written out in any case.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from casemate.audit.result import (
    Audited,
    Exposed,
    ExposedIfExact,
    Group,
    MissingValue,
    PublishedCertificate,
    Release,
    RemainingInterval,
    Repaired,
    RowsShown,
    Withheld,
    Witnessed,
)
from casemate.published import People
from casemate.query.language import Scalar
from casemate.report import LazyRows, number

SCHEMA = "casemate.audit/1"
Writer = Callable[[Any, "ReportNames"], Any]


@dataclass(frozen=True)
class Occasion:
    """Of which table an audit was made, when, and with which options, defaults left out."""

    table: str | None = None
    date: datetime | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ReportNames:
    """How one report names the records and the people of one table."""

    people: People
    reveal: bool

    def record(self, record: Scalar) -> Scalar:
        """A record's key, or its place in the order of the records, from 1."""
        return record if self.reveal else self._row(self.people.place(record))

    def person(self, exposed: Exposed | ExposedIfExact | MissingValue) -> Scalar:
        """A person's key, or the row number of the person's first record."""
        if self.reveal:
            return exposed.person
        if exposed.record is None:
            return self._row(self.people.first_of(exposed.person))
        place = self.people.place(exposed.record)
        return None if place is None else self._row(int(self.people.first[place]))

    def _row(self, place: int | None) -> Scalar:
        return None if place is None else self.people.row(place)


# How single fields are written ------------------------------------------------------------------


def _if_revealed(name: str) -> Writer:
    """A private value, written only where values are revealed."""
    return lambda each, names: number(getattr(each, name)) if names.reveal else None


def _record_names(name: str) -> Writer:
    """Records, as the report names them."""
    return lambda each, names: [number(names.record(record)) for record in getattr(each, name)]


def _records(each: Any, names: ReportNames) -> Any:
    """Records, as the report names them; of a release, how many it has."""
    return each.records if isinstance(each, Release) else _record_names("records")(each, names)


def _total(each: Exposed | Group, names: ReportNames) -> Any:
    """Of a group what it adds up to; of a value whether it is all rows of a person."""
    return _if_revealed("total")(each, names) if isinstance(each, Group) else each.total


def _shrinkage(each: RemainingInterval, names: ReportNames) -> float | None:
    """The excluded part of a range; in tenths where it would give a hidden end away."""
    if each.shrinkage is None:
        return None
    return round(float(each.shrinkage), 6) if names.reveal else int(each.shrinkage * 10) / 10


def _derivation(each: Exposed | MissingValue, _: ReportNames) -> list[dict[str, Any]]:
    certificate = each.certificate if isinstance(each, Exposed) else None
    steps = each.derivation or (() if certificate is None else certificate.steps)
    return [{"query": s.query, "cell": _cell(s.cell), "text": s.text} for s in steps]


WRITERS: Mapping[str, Writer] = {
    "record": lambda each, names: number(names.record(each.record)),
    "person": lambda each, names: number(names.person(each)),
    "records": _records,
    "log": lambda each, _: each.log or None,
    "queries": lambda each, _: {
        "from": min(each.queries, default=None),
        "to": max(each.queries, default=None),
    },
    "knows": _record_names("knows"),
    "value": _if_revealed("value"),
    "total": _total,
    "lo": _if_revealed("low"),
    "hi": _if_revealed("high"),
    "prior_lo": _if_revealed("prior_low"),
    "prior_hi": _if_revealed("prior_high"),
    "shrinkage": _shrinkage,
    "margin": lambda each, _: number(each.margin),
    "category": lambda each, _: number(each.category),
    "certificate": lambda each, _: certificate_fields(each.certificate),
    "proof": lambda each, _: each.proof.value,
    "cell": lambda each, _: _cell(each.key),
    "rules": lambda each, _: list(each.rules),
    "derivation": _derivation,
    "shows_rows": lambda each, _: isinstance(each, RowsShown),
    "described": lambda each, _: _cell(each.described),
}
"""How a field is written; any other is written as it is."""

INTERVAL = ("record", "column", "lo", "hi", "prior_lo", "prior_hi", "shrinkage")
EXPOSED = ("record", "person", "column", "value", "certificate", "by", "proof", "total")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "exposed": (*EXPOSED, "derivation", "described", "across"),
    "missing": ("record", "person", "column", "by", "derivation", "described", "across"),
    "tight": INTERVAL,
    "groups": ("records", "column", "category", "total"),
    "insider_exposed": ("record", "column", "knows", "unless_zero"),
    "approximate": ("record", "column", "knows", "lo", "hi"),
    "sensitive_cells": ("query", "column", "cell", "rules"),
    "exposed_if_exact": ("record", "person", "column", "value", "margin", "certificate", "by"),
    "undecided": (),
    "unchecked": (),
    "reasons": ("kind", "records", "reason"),
    "refused": ("query", "line", "column", "text", "reason", "shows_rows"),
    "bounds": INTERVAL,
    "releases": ("file", "log", "queries", "records", "joined", "left", "changed"),
}
"""The lists of an audit, and the fields of what is in them; none where that is a record."""


# The object -------------------------------------------------------------------------------------


def audit_fields(audit: Audited, occasion: Occasion, *, reveal: bool) -> dict[str, Any]:
    """An audit as the fields of the JSON object; long lists are made where they are read."""
    names, date = ReportNames(audit.people, reveal), occasion.date
    return {
        "schema": SCHEMA,
        "verdict": audit.verdict.value,
        "table": occasion.table,
        "date": None if date is None else date.isoformat(timespec="seconds"),
        "options": dict(occasion.options),
        "revealed": reveal,
        "records": audit.records,
        "queries": audit.queries,
        "equations": audit.equations,
        "rank": audit.rank,
        "consistent": audit.consistent,
        "exposed_groups": [],  # made of `exposed`, with the report
        **{name: _list_fields(audit, name, names) for name in FIELDS},
        "across": None if audit.across is None else asdict(audit.across),
        "witness": _witness(audit.witness, names),
        "repair": _repair(audit.repair),
        "statements": _statements(audit),
        "assumptions": list(audit.assumptions),
        "interrupted": audit.interrupted,
        "undeclared": list(audit.undeclared),
        "seconds": round(audit.seconds, 3),
    }


def _list_fields(audit: Audited, name: str, names: ReportNames) -> Sequence[Any]:
    fields = FIELDS[name]
    if not fields:
        return LazyRows(getattr(audit, name), lambda each: number(names.record(each)))
    return LazyRows(getattr(audit, name), lambda each: _finding_fields(each, fields, names))


def _finding_fields(each: Any, fields: Sequence[str], names: ReportNames) -> dict[str, Any]:
    return {
        name: WRITERS[name](each, names) if name in WRITERS else getattr(each, name)
        for name in fields
    }


def _statements(audit: Audited) -> Sequence[Any]:
    titles = dict(enumerate(audit.titles))
    return LazyRows(
        range(len(audit.statements)),
        lambda place: {"title": titles.get(place), "text": audit.statements[place].strip()},
    )


def certificate_fields(certificate: PublishedCertificate | None) -> dict[str, Any] | None:
    """Published numbers that add up to a value."""
    if certificate is None:
        return None
    return {
        "terms": [
            {
                "query": term.place.query,
                "cell": _cell(term.place.key),
                "coefficient": term.coefficient,
            }
            for term in certificate.terms
        ],
        "divisor": certificate.divisor,
    }


def _witness(witness: Witnessed | None, names: ReportNames) -> dict[str, Any] | None:
    if witness is None:
        return None
    return {
        "file": None if witness.file is None else str(witness.file),
        "tables": len(witness.tables),
        "covered": witness.covered,
        "narrow": _record_names("narrow")(witness, names),
        "uncovered": _record_names("uncovered")(witness, names),
    }


def _cell(key: Sequence[tuple[str, Scalar | Fraction]] | None) -> dict[str, Any] | None:
    return None if key is None else {name: number(value) for name, value in key}


def _withheld(each: Withheld) -> dict[str, Any]:
    """A row; or, in all rows of a statement, a column."""
    column = {} if each.column is None else {"column": each.column}
    return {"query": each.query, "cell": _cell(each.cell), **column}


def _repair(repair: Repaired | None) -> dict[str, Any] | None:
    if repair is None:
        return None
    return {
        "file": None if repair.file is None else str(repair.file),
        "withheld": [_withheld(each) for each in repair.withheld],
        "dropped": list(repair.dropped),
        "verdict": repair.audited.verdict.value,
        "cells_before": repair.cells_before,
        "cells_after": repair.cells_after,
        "sql": repair.sql if repair.is_safe else None,
    }
