"""An audit as text for the terminal and as the object `casemate.audit/1`.

Without `reveal` no value, bound or total is written, and records and people are named by row
numbers (`casemate.audit.report`): a report is read by more people than the table is.

A repair for the terminal and in JSON: what can be published instead, and what is withheld.

Keys are public, so they are written out whether or not anything is revealed.

Who is meant: records and people by their keys, or by row numbers where nothing is revealed.

A key may be a name or a number that identifies somebody outside the table, and a report is read by
more people than the table is. A row number says which row of the table, to whoever has the table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from casemate.audit.result import (
    Approximate,
    Audited,
    Exposed,
    ExposedIfExact,
    Group,
    InsiderExposed,
    Proof,
    PublishedCertificate,
    RemainingInterval,
    Repaired,
    SensitiveCell,
    Verdict,
    Witnessed,
)
from casemate.published import People, Place
from casemate.query.language import Scalar
from casemate.report import number, plain


def repair_lines(repair: Repaired, most: int) -> list[str]:
    """A repair as lines to read, with so many of the rows that it withholds."""
    share = f"{len(repair.withheld)} of {repair.cells_before} rows"
    if not repair.is_safe:
        rest = f"what is left without {share} is {repair.audited.verdict} as well"
        return [f"repair: nothing was written, since {rest}"]
    where = "" if repair.file is None else f" in {repair.file}"
    lines = [f"repair: the queries{where} expose nobody, with {share} withheld"]
    rows = [each for each in repair.withheld if each.query not in repair.dropped]
    lines += [f"  {named(Place(each.query, '', each.cell))}" for each in rows[:most]]
    if len(rows) > most:
        lines.append(f"  and {len(rows) - most} more")
    if repair.dropped:
        listed = ", ".join(str(query) for query in repair.dropped)
        lines.append(f"  left out as a whole: query {listed}")
    return lines


# Names ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReportNames:
    """How one report names the records and the people of one table."""

    people: People
    reveal: bool

    def record(self, record: Scalar) -> Scalar:
        """A record's key, or its place in the order of the records, from 1."""
        return record if self.reveal else _row(self.people.place(record))

    def person(self, exposed: Exposed | ExposedIfExact) -> Scalar:
        """A person's key, or the row number of the person's first record."""
        if self.reveal:
            return exposed.person
        if exposed.total:
            return _row(self.people.first_of(exposed.person))
        place = self.people.place(exposed.record)
        return None if place is None else _row(int(self.people.first[place]))

    def whose(self, exposed: Exposed | ExposedIfExact) -> str:
        """An exposed record in words, with the person where that is somebody else's name."""
        if exposed.total:
            return f"person {self.person(exposed)}, all rows together"
        said = f"record {self.record(exposed.record)}"
        return said if self.people.keys is None else f"{said} (person {self.person(exposed)})"


def _row(place: int | None) -> int | None:
    return None if place is None else place + 1


# Audit ------------------------------------------------------------------------------------------


T = TypeVar("T")
SCHEMA = "casemate.audit/1"
HIDDEN = "•"
REASONS = {
    Proof.BOUNDS: "bounds and types",
    Proof.INTEGER: "bounds, and that numbers are whole",
    Proof.ORDER: "extremes, medians and comparisons",
}
SHOWN_IN_TEXT = 20
SENTENCES = {
    Verdict.EXPOSED: "somebody's value follows from what was published",
    Verdict.NONE_EXPOSED: "nobody's value follows from what was published",
    Verdict.INCOMPLETE: "no value was found, but not everything could be audited",
}


# Text -----------------------------------------------------------------------------------------


def as_text(audit: Audited, *, reveal: bool = False, certificates: int = SHOWN_IN_TEXT) -> str:
    """An audit as lines to read."""
    lines = [
        f"verdict: {audit.verdict} ({SENTENCES[audit.verdict]})",
        f"{audit.queries} statements, {audit.equations} numbers of rank {audit.rank}, "
        f"about {audit.records} records",
    ]
    if audit.consistent is False:
        lines.append("the published numbers contradict each other")
    lines += [*_exposed_lines(audit, reveal, certificates), *_other_lines(audit, reveal)]
    return "\n".join(lines)


def _exposed_lines(audit: Audited, reveal: bool, certificates: int) -> list[str]:
    if not audit.exposed:
        return []
    names = ReportNames(audit.people, reveal)
    lines = ["", f"exposed: {len(audit.exposed)}"]
    for each in audit.exposed[:certificates]:
        value = plain(each.value) if reveal else HIDDEN
        lines.append(f"  {names.whose(each)}: {each.column} = {value}  by {reason(each)}")
    if len(audit.exposed) > certificates:
        lines.append(f"  and {len(audit.exposed) - certificates} more")
    return lines


def reason(exposed: Exposed) -> str:
    """How an exposed value follows: a combination of statements, or bounds and types."""
    if exposed.certificate is None and exposed.proof is Proof.RANK:
        return f"many numbers together, the last of them in query {exposed.by}"
    if exposed.certificate is None:
        return REASONS[exposed.proof]
    return combination(exposed.certificate)


def named(place: Place) -> str:
    """A published number: its statement, and the cell of it."""
    if place.key is None:
        return f"query {place.query}"
    keys = ", ".join(f"{name} = {plain(value)}" for name, value in place.key)
    return f"query {place.query} [{keys}]"


def combination(certificate: PublishedCertificate, name: Callable[[Place], str] = named) -> str:
    """A certificate as arithmetic, for example: query 1 - query 2 - query 3."""
    parts = []
    for term in certificate.terms:
        sign = "-" if term.coefficient < 0 else "+"
        size = "" if abs(term.coefficient) == 1 else f"{abs(term.coefficient)} * "
        parts.append(f"{sign} {size}{name(term.place)}")
    text = " ".join(parts).removeprefix("+ ")
    return text if certificate.divisor == 1 else f"({text}) / {certificate.divisor}"


def _other_lines(audit: Audited, reveal: bool) -> list[str]:
    lines: list[str] = []
    names = ReportNames(audit.people, reveal)
    lines += _section(
        "small groups whose total is known", audit.groups, lambda each: _group_text(each, names)
    )
    lines += _section("nearly known", audit.tight, lambda each: _interval_text(each, names))
    lines += _insider_lines(audit, names)
    lines += if_exact_lines(audit, names)
    if audit.witness is not None:
        lines += ["", *witness_lines(audit.witness, names)]
    if audit.repair is not None:
        lines += ["", *repair_lines(audit.repair, SHOWN_IN_TEXT)]
    if audit.undecided:
        lines += ["", f"not decided within the limit: {len(audit.undecided)} records"]
    if audit.unchecked:
        lines += ["", f"not checked: {len(audit.unchecked)} records"]
    if audit.refused:
        lines += ["", f"not audited: {len(audit.refused)}"]
        lines += [
            f"  query {each.query} (line {each.line}): {each.reason}" for each in audit.refused
        ]
    lines += ["", *audit.assumptions] if audit.assumptions else []
    return lines


def if_exact_lines(audit: Audited, names: ReportNames) -> list[str]:
    """Those whom rounding hides, as far as it does."""

    def line(each: ExposedIfExact) -> str:
        value = plain(each.value) if names.reveal and each.value is not None else HIDDEN
        margin = "" if each.margin is None else f" give or take {plain(each.margin)}"
        by = f"query {each.by}" if each.certificate is None else combination(each.certificate)
        return f"{names.whose(each)}: {each.column} = {value}{margin}  by {by}"

    return _section("known but for rounding", audit.exposed_if_exact, line)


def _section(title: str, found: Sequence[T], line: Callable[[T], str]) -> list[str]:
    """A heading with how many there are, and a line for each of the first of them."""
    if not found:
        return []
    return ["", f"{title}: {len(found)}", *(f"  {line(each)}" for each in found[:SHOWN_IN_TEXT])]


def witness_lines(witness: Witnessed, names: ReportNames) -> list[str]:
    """How far second tables go."""
    where = "" if witness.file is None else f" in {witness.file}"
    lines = [f"second tables: {len(witness.tables)}{where}, covering {witness.covered} records"]
    for said, records in (
        ("differing by less than the protection width", witness.narrow),
        ("not covered", witness.uncovered),
    ):
        if records:
            shown = ", ".join(str(names.record(each)) for each in records[:SHOWN_IN_TEXT])
            more = len(records) - SHOWN_IN_TEXT
            lines.append(f"  {said}: {shown}" + (f" and {more} more" if more > 0 else ""))
    return lines


def _insider_lines(audit: Audited, names: ReportNames) -> list[str]:
    """What insiders learn, and the cells that look dangerous one by one."""

    def known(each: InsiderExposed | Approximate, said: str) -> str:
        whoever = _to_whoever(each.knows, names)
        return f"record {names.record(each.record)}: {each.column} {said}{whoever}"

    def sensitive(each: SensitiveCell) -> str:
        where = named(Place(each.query, each.column, each.key))
        return f"{where}: {each.column} by {' and '.join(each.rules)}"

    return [
        *_section("known to insiders", audit.insider_exposed, lambda each: known(each, "")),
        *_section(
            "nearly known to insiders",
            audit.approximate,
            lambda each: known(each, f"is {_ends(each.low, each.high, names)} "),
        ),
        *_section("sensitive cells", audit.sensitive_cells, sensitive),
    ]


def _to_whoever(knows: Sequence[Scalar], names: ReportNames) -> str:
    listed = ", ".join(str(names.record(record)) for record in knows)
    return f"to whoever knows record{'s' if len(knows) > 1 else ''} {listed}"


def _group_text(group: Group, names: ReportNames) -> str:
    total = plain(group.total) if names.reveal else HIDDEN
    listed = ", ".join(str(names.record(record)) for record in group.records)
    if group.category is not None:
        return f"records {listed}: {total} of them have {group.column} = {plain(group.category)}"
    return f"records {listed}: {group.column} adds up to {total}"


def _interval_text(interval: RemainingInterval, names: ReportNames) -> str:
    ends = _ends(interval.low, interval.high, names)
    return f"record {names.record(interval.record)}: {interval.column} is {ends}"


def _ends(low: Fraction | None, high: Fraction | None, names: ReportNames) -> str:
    return f"{plain(low)} to {plain(high)}" if names.reveal else HIDDEN


# JSON -----------------------------------------------------------------------------------------


Writer = Callable[[Any, ReportNames], Any]


def _told(name: str) -> Writer:
    """A private value, written only where values are revealed."""
    return lambda each, names: number(getattr(each, name)) if names.reveal else None


def _named(name: str) -> Writer:
    """Records, as the report names them."""
    return lambda each, names: [number(names.record(record)) for record in getattr(each, name)]


def _total(each: Exposed | Group, names: ReportNames) -> Any:
    """Of a group what it adds up to; of a value whether it is all rows of a person."""
    return _told("total")(each, names) if isinstance(each, Group) else each.total


def _shrinkage(each: RemainingInterval, _: ReportNames) -> float | None:
    return None if each.shrinkage is None else round(float(each.shrinkage), 6)


WRITERS: Mapping[str, Writer] = {
    "record": lambda each, names: number(names.record(each.record)),
    "person": lambda each, names: number(names.person(each)),
    "records": _named("records"),
    "knows": _named("knows"),
    "value": _told("value"),
    "total": _total,
    "lo": _told("low"),
    "hi": _told("high"),
    "prior_lo": _told("prior_low"),
    "prior_hi": _told("prior_high"),
    "shrinkage": _shrinkage,
    "margin": lambda each, _: number(each.margin),
    "category": lambda each, _: number(each.category),
    "certificate": lambda each, _: _certificate(each.certificate),
    "proof": lambda each, _: each.proof.value,
    "cell": lambda each, _: _cell(each.key),
    "rules": lambda each, _: list(each.rules),
}
"""How a field is written; any other is written as it is."""

INTERVAL = ("record", "column", "lo", "hi", "prior_lo", "prior_hi", "shrinkage")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "exposed": ("record", "person", "column", "value", "certificate", "by", "proof", "total"),
    "tight": INTERVAL,
    "groups": ("records", "column", "category", "total"),
    "insider_exposed": ("record", "column", "knows"),
    "approximate": ("record", "column", "knows", "lo", "hi"),
    "sensitive_cells": ("query", "column", "cell", "rules"),
    "exposed_if_exact": ("record", "person", "column", "value", "margin", "certificate", "by"),
    "undecided": (),
    "unchecked": (),
    "refused": ("query", "line", "column", "text", "reason"),
    "bounds": INTERVAL,
}
"""The lists of an audit, and the fields of what is in them; none where that is a record."""


def as_json(audit: Audited, *, reveal: bool = False) -> dict[str, Any]:
    """An audit as the object that `--format json` prints."""
    names = ReportNames(audit.people, reveal)
    return {
        "schema": SCHEMA,
        "verdict": audit.verdict.value,
        "records": audit.records,
        "queries": audit.queries,
        "equations": audit.equations,
        "rank": audit.rank,
        "consistent": audit.consistent,
        **{
            name: [_written(each, fields, names) for each in getattr(audit, name)]
            for name, fields in FIELDS.items()
        },
        "witness": _witness(audit.witness, names),
        "repair": _repair(audit.repair),
        "assumptions": list(audit.assumptions),
        "seconds": round(audit.seconds, 3),
    }


def _written(each: Any, fields: Sequence[str], names: ReportNames) -> Any:
    if not fields:
        return number(names.record(each))
    return {
        name: WRITERS[name](each, names) if name in WRITERS else getattr(each, name)
        for name in fields
    }


def _certificate(certificate: PublishedCertificate | None) -> dict[str, Any] | None:
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
        "narrow": _named("narrow")(witness, names),
        "uncovered": _named("uncovered")(witness, names),
    }


def _cell(key: Sequence[tuple[str, Scalar]] | None) -> dict[str, Any] | None:
    return None if key is None else {name: number(value) for name, value in key}


def _repair(repair: Repaired | None) -> dict[str, Any] | None:
    if repair is None:
        return None
    return {
        "file": None if repair.file is None else str(repair.file),
        "withheld": [{"query": each.query, "cell": _cell(each.cell)} for each in repair.withheld],
        "dropped": list(repair.dropped),
        "verdict": repair.audited.verdict.value,
        "cells_before": repair.cells_before,
        "cells_after": repair.cells_after,
    }
