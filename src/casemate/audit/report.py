"""An audit as a report: the verdict, who is exposed by what, and how much else is known.

The lists of findings are a table: which list of the audit, under which heading, and how one of them
is a row of a page and a line of text. `words` says what is hidden without `reveal`, and
`figures` draws what the page shows. The JSON object is a table of fields, at the end.
"""

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casemate.audit import figures
from casemate.audit.figures import statements_behind
from casemate.audit.result import (
    Approximate,
    Audited,
    Exposed,
    ExposedIfExact,
    Group,
    InsiderExposed,
    OpenReason,
    PublishedCertificate,
    RemainingInterval,
    Repaired,
    SensitiveCell,
    Verdict,
    Witnessed,
)
from casemate.audit.words import (
    HIDDEN,
    ReportNames,
    combination,
    how_it_follows,
    place_name,
)
from casemate.published import Place, RefusedQuery
from casemate.query.language import Scalar
from casemate.report import (
    ROWS_ON_PAGE,
    Block,
    Code,
    Facts,
    Figure,
    LazyRows,
    Listing,
    Paragraph,
    Prose,
    Report,
    Section,
    TableBlock,
    Where,
    count_of,
    number,
    plain,
)

ROWS_IN_TEXT = 20
SENTENCES = {
    Verdict.EXPOSED: "somebody's value follows from what was published",
    Verdict.NONE_EXPOSED: "nobody's value follows from what was published",
    Verdict.INCOMPLETE: "no value was found, but not everything could be audited",
}
SCOPE = (
    "The audit is about the private columns: whether somebody is in the table at all is not "
    "protected by it.",
    "It is about one snapshot of the table: the same statement before and after somebody joins "
    "gives them away.",
)


def audit_report(audit: Audited, *, reveal: bool = False) -> Report:
    """The verdict, and everything that was found."""
    names = ReportNames(audit.people, reveal)
    linked = _listed_statements(audit)
    exposure_map = Figure(lambda: figures.draw_exposure_map(audit, names))
    shrinkage = Figure(lambda: figures.draw_shrinkage(audit))
    return Report(
        "casemate audit",
        f"verdict: {audit.verdict} ({SENTENCES[audit.verdict]})",
        lambda: audit_fields(audit, names),
        _introduction(audit, reveal),
        [
            Section("map", "Who is exposed by which statement", [exposure_map]),
            Section("shrinkage", "What is left of everybody's range", [shrinkage]),
            *(_finding_section(kind, audit, names, frozenset(linked)) for kind in FINDINGS),
            Section("witness", "Second tables", _witness_blocks(audit.witness, names), label=""),
            Section(
                "repair", "What could be published instead", _repair_blocks(audit.repair), label=""
            ),
            Section("open", "Not decided", _open_blocks(audit, names), label=""),
            _refused_section(audit),
            _statements_section(audit, linked),
            Section(
                "assumptions",
                "What was taken for granted",
                [
                    Listing([(each,) for each in audit.assumptions], ""),
                    Listing(SCOPE, where=Where.PAGE),
                ],
                label="",
            ),
        ],
    )


def _introduction(audit: Audited, reveal: bool) -> list[Block]:
    numbers = [
        ("exposed values", f"{len(audit.exposed):,}"),
        ("records", f"{audit.records:,}"),
        ("statements", f"{audit.queries:,}"),
        ("published numbers", f"{audit.equations:,}"),
        ("independent ones", f"{audit.rank:,}"),
    ]
    size = (
        f"{audit.queries} statements, {audit.equations} numbers of rank {audit.rank}, "
        f"about {audit.records} records"
    )
    blocks: list[Block] = [Facts(numbers), Paragraph(size, where=Where.TEXT)]
    if audit.consistent is False:
        blocks.append(Paragraph("the published numbers contradict each other"))
    if not reveal:
        hidden = f"values are written as {HIDDEN}, and records and people as row numbers"
        blocks.append(Paragraph(hidden, remark=True, where=Where.PAGE))
    return blocks


# The lists of findings --------------------------------------------------------------------------


Linked = Container[int]
"""The statements that the page lists, to which certificates lead."""


@dataclass(frozen=True)
class FindingKind:
    """One list of an audit: its headings, its columns, and a finding as a row and as a line."""

    field: str
    anchor: str
    heading: str
    label: str
    caption: str
    header: tuple[str, ...]
    row: Callable[[Any, ReportNames, Linked], Sequence[Prose]]
    line: Callable[..., str]


def _finding_section(
    kind: FindingKind, audit: Audited, names: ReportNames, linked: Linked
) -> Section:
    findings = getattr(audit, kind.field)
    noun, _, rest = kind.caption.partition(" that ")
    caption = f"{count_of(len(findings), noun)} that {rest}"
    rows = LazyRows(findings, lambda finding: kind.row(finding, names, linked))
    table = TableBlock(caption, kind.header, rows, line=kind.line, rows_in_text=ROWS_IN_TEXT)
    label = f"{kind.label}: {len(findings)}"
    return Section(kind.anchor, kind.heading, [table], label=label)


def _exposed_row(each: Exposed, names: ReportNames, linked: Linked) -> Sequence[Prose]:
    value = names.value(each.value)
    return names.whose(each), each.column, value, how_it_follows(each, linked)


def _if_exact_row(each: ExposedIfExact, names: ReportNames, linked: Linked) -> Sequence[Prose]:
    value = HIDDEN if each.value is None else names.value(each.value)
    margin = "" if each.margin is None else plain(each.margin)
    by = f"query {each.by}" if each.certificate is None else combination(each.certificate, linked)
    return names.whose(each), each.column, value, margin, by


def _if_exact_line(whose: str, column: str, value: str, margin: str, by: str) -> str:
    give_or_take = f" give or take {margin}" if margin else ""
    return f"{whose}: {column} = {value}{give_or_take}  by {by}"


def _interval_row(each: RemainingInterval, names: ReportNames, _: Linked) -> Sequence[Prose]:
    ends = names.value(each.low), names.value(each.high)
    shrinkage = "" if each.shrinkage is None else f"{100 * float(each.shrinkage):.1f} %"
    return f"record {names.record(each.record)}", each.column, *ends, shrinkage


def _interval_line(whose: str, column: str, low: str, high: str, _: str = "") -> str:
    ends = HIDDEN if low == high == HIDDEN else f"{low} to {high}"
    return f"{whose}: {column} is {ends}"


def _group_row(each: Group, names: ReportNames, _: Linked) -> Sequence[Prose]:
    what = f"{each.column} adds up to"
    if each.category is not None:
        what = f"with {each.column} = {plain(each.category)} there are"
    return names.records(each.records), what, names.value(each.total)


def _insider_row(each: InsiderExposed, names: ReportNames, _: Linked) -> Sequence[Prose]:
    return f"record {names.record(each.record)}", each.column, names.records(each.knows)


def _approximate_row(each: Approximate, names: ReportNames, _: Linked) -> Sequence[Prose]:
    ends = names.value(each.low), names.value(each.high)
    knows = names.records(each.knows) if each.knows else "nothing else"
    return f"record {names.record(each.record)}", each.column, *ends, knows


def _approximate_line(whose: str, column: str, low: str, high: str, knows: str) -> str:
    return f"{_interval_line(whose, column, low, high)} to whoever knows {knows}"


def _cell_row(each: SensitiveCell, _names: ReportNames, _: Linked) -> Sequence[Prose]:
    where = place_name(Place(each.query, each.column, each.key))
    return where, each.column, " and ".join(each.rules)


FINDINGS = (
    FindingKind(
        "exposed",
        "exposed",
        "Exposed values",
        "exposed",
        "value that everybody can compute, with the proof",
        ("whose", "column", "value", "how it follows"),
        _exposed_row,
        "{}: {} = {}  by {}".format,
    ),
    FindingKind(
        "groups",
        "groups",
        "Small groups",
        "small groups whose total is known",
        "small group that has a known total, and no known part",
        ("whose", "what", "total"),
        _group_row,
        "{}: {} {}".format,
    ),
    FindingKind(
        "tight",
        "tight",
        "Nearly known values",
        "nearly known",
        "value that is known to within the share that was asked for",
        ("whose", "column", "at least", "at most", "of the range excluded"),
        _interval_row,
        _interval_line,
    ),
    FindingKind(
        "insider_exposed",
        "insiders",
        "Exposed to insiders",
        "known to insiders",
        "value that somebody in the table can compute",
        ("whose", "column", "for whoever knows"),
        _insider_row,
        "{}: {} to whoever knows {}".format,
    ),
    FindingKind(
        "approximate",
        "approximate",
        "Nearly known to insiders",
        "nearly known to insiders",
        "value that somebody in the table nearly knows",
        ("whose", "column", "at least", "at most", "for whoever knows"),
        _approximate_row,
        _approximate_line,
    ),
    FindingKind(
        "sensitive_cells",
        "cells",
        "Sensitive cells",
        "sensitive cells",
        "published cell that a rule for single cells calls sensitive",
        ("cell", "column", "rules"),
        _cell_row,
        "{}: {} by {}".format,
    ),
    FindingKind(
        "exposed_if_exact",
        "rounded",
        "Known but for rounding",
        "known but for rounding",
        "value that only rounding keeps from being known",
        ("whose", "column", "value", "give or take", "how it follows"),
        _if_exact_row,
        _if_exact_line,
    ),
)


# Second tables, repairs, and what is left open --------------------------------------------------


def _witness_blocks(witness: Witnessed | None, names: ReportNames) -> list[Block]:
    """How far second tables go that give the same answers."""
    if witness is None:
        return []
    where = "" if witness.file is None else f" in {witness.file}"
    clauses = []
    for what, records in (
        ("differing by less than the protection width", witness.narrow),
        ("not covered", witness.uncovered),
    ):
        if records:
            first = ", ".join(str(names.record(each)) for each in records[:ROWS_IN_TEXT])
            more = len(records) - ROWS_IN_TEXT
            clauses.append(f"{what}: {first}" + (f" and {more} more" if more > 0 else ""))
    covered = f"second tables: {len(witness.tables)}{where}, covering {witness.covered} records"
    return [Paragraph(covered), Listing(clauses)]


def _repair_blocks(repair: Repaired | None) -> list[Block]:
    """What could be published instead, as far as nobody is exposed by it."""
    if repair is None:
        return []
    share = f"{len(repair.withheld)} of {repair.cells_before} rows"
    if not repair.is_safe:
        rest = f"what is left without {share} is {repair.audited.verdict} as well"
        return [Paragraph(f"repair: nothing was written, since {rest}")]
    where = "" if repair.file is None else f" in {repair.file}"
    withheld = [each for each in repair.withheld if each.query not in repair.dropped]
    rows = [(place_name(Place(each.query, "", each.cell)),) for each in withheld]
    dropped = ", ".join(str(query) for query in repair.dropped)
    return [
        Paragraph(f"repair: the queries{where} expose nobody, with {share} withheld"),
        Listing(rows, rows_in_text=ROWS_IN_TEXT),
        Listing([f"left out as a whole: query {dropped}"] if dropped else []),
        Paragraph(Code(repair.sql.strip(), lines=True), where=Where.PAGE),
    ]


def _open_blocks(audit: Audited, names: ReportNames) -> list[Block]:
    """Whom the audit did not decide about, and why: in the text how many, on a page who."""
    blocks: list[Block] = []
    left_open: tuple[tuple[str, str, Sequence[Scalar]], ...] = (
        ("undecided", "not decided", audit.undecided),
        ("unchecked", "not checked", audit.unchecked),
    )
    for kind, what, records in left_open:
        if records:
            reasons = [each for each in audit.reasons if each.kind == kind]
            blocks += [
                Paragraph(f"{what}: {count_of(len(records), 'record')}", where=Where.TEXT),
                Paragraph(f"{what}: {names.records(records)}", where=Where.PAGE),
                Listing([_open_reason(each, len(records), names) for each in reasons]),
            ]
    return blocks


def _open_reason(reason: OpenReason, of: int, names: ReportNames) -> str:
    """Why some records are left open; who, where they are not all of them."""
    same = len(reason.records) == of
    return reason.reason if same else f"{names.records(reason.records)}: {reason.reason}"


# What was published -----------------------------------------------------------------------------


def _refused_section(audit: Audited) -> Section:
    rows = [
        (f"query {each.query}", _position(each), each.reason, Code(each.text.strip(), lines=True))
        for each in audit.refused
    ]
    header = ("statement", "line:column", "why", "text")
    caption = f"{count_of(len(rows), 'statement')}, or parts of one, left out of the verdict"
    table = TableBlock(caption, header, rows, line=_refused_line, rows_in_text=None)
    return Section("refused", "Not audited", [table], label=f"not audited: {len(rows)}")


def _refused_line(query: str, position: str, why: str, _: str) -> str:
    return f"{query} (line {position.partition(':')[0]}): {why}"


def _position(refused: RefusedQuery) -> str:
    return ":".join(str(each) for each in (refused.line, refused.column) if each is not None)


def _statements_section(audit: Audited, listed: Sequence[int]) -> Section:
    part = Counter(query for each in audit.exposed for query in statements_behind(each))
    tipped = Counter(each.by for each in audit.exposed)

    def row(query: int) -> Sequence[Prose]:
        text = Code(audit.statements[query - 1].strip(), lines=True)
        return f"query {query}", text, part[query], tipped[query]

    header = ("statement", "text", "values it helps to find", "values it tipped")
    caption = f"{len(listed):,} of {count_of(len(audit.statements), 'statement')} that were read"
    anchors = [f"query-{query}" for query in listed]
    table = TableBlock(caption, header, LazyRows(listed, row), anchors=anchors)
    return Section("statements", "What was published", [table], where=Where.PAGE)


def _listed_statements(audit: Audited) -> list[int]:
    """The statements to list: all, or those behind the exposed values where they are too many."""
    queries = range(1, len(audit.statements) + 1)
    if len(queries) <= ROWS_ON_PAGE:
        return list(queries)
    exposed = audit.exposed[:ROWS_ON_PAGE]
    return sorted({query for each in exposed for query in statements_behind(each)})[:ROWS_ON_PAGE]


# The object of an audit -------------------------------------------------------------------------
#
# An audit as the fields of `casemate.audit/1`; without `reveal` no private value is among them.

SCHEMA = "casemate.audit/1"
Writer = Callable[[Any, ReportNames], Any]


def _if_revealed(name: str) -> Writer:
    """A private value, written only where values are revealed."""
    return lambda each, names: number(getattr(each, name)) if names.reveal else None


def _record_names(name: str) -> Writer:
    """Records, as the report names them."""
    return lambda each, names: [number(names.record(record)) for record in getattr(each, name)]


def _total(each: Exposed | Group, names: ReportNames) -> Any:
    """Of a group what it adds up to; of a value whether it is all rows of a person."""
    return _if_revealed("total")(each, names) if isinstance(each, Group) else each.total


def _shrinkage(each: RemainingInterval, _: ReportNames) -> float | None:
    return None if each.shrinkage is None else round(float(each.shrinkage), 6)


WRITERS: Mapping[str, Writer] = {
    "record": lambda each, names: number(names.record(each.record)),
    "person": lambda each, names: number(names.person(each)),
    "records": _record_names("records"),
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
    "certificate": lambda each, _: _certificate(each.certificate),
    "proof": lambda each, _: each.proof.value,
    "cell": lambda each, _: _cell(each.key),
    "rules": lambda each, _: list(each.rules),
    "derivation": lambda each, _: [
        {"query": step.query, "cell": _cell(step.cell), "text": step.text}
        for step in each.derivation
    ],
}
"""How a field is written; any other is written as it is."""

INTERVAL = ("record", "column", "lo", "hi", "prior_lo", "prior_hi", "shrinkage")
FIELDS: Mapping[str, tuple[str, ...]] = {
    "exposed": (
        "record",
        "person",
        "column",
        "value",
        "certificate",
        "by",
        "proof",
        "total",
        "derivation",
    ),
    "missing": ("record", "person", "column", "by", "derivation"),
    "tight": INTERVAL,
    "groups": ("records", "column", "category", "total"),
    "insider_exposed": ("record", "column", "knows"),
    "approximate": ("record", "column", "knows", "lo", "hi"),
    "sensitive_cells": ("query", "column", "cell", "rules"),
    "exposed_if_exact": ("record", "person", "column", "value", "margin", "certificate", "by"),
    "undecided": (),
    "unchecked": (),
    "reasons": ("kind", "records", "reason"),
    "refused": ("query", "line", "column", "text", "reason"),
    "bounds": INTERVAL,
}
"""The lists of an audit, and the fields of what is in them; none where that is a record."""


def audit_fields(audit: Audited, names: ReportNames) -> dict[str, Any]:
    """An audit as the fields of the JSON object."""
    return {
        "schema": SCHEMA,
        "verdict": audit.verdict.value,
        "records": audit.records,
        "queries": audit.queries,
        "equations": audit.equations,
        "rank": audit.rank,
        "consistent": audit.consistent,
        **{
            name: [_finding_fields(each, fields, names) for each in getattr(audit, name)]
            for name, fields in FIELDS.items()
        },
        "witness": _witness(audit.witness, names),
        "repair": _repair(audit.repair),
        "assumptions": list(audit.assumptions),
        "seconds": round(audit.seconds, 3),
    }


def _finding_fields(each: Any, fields: Sequence[str], names: ReportNames) -> Any:
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
        "narrow": _record_names("narrow")(witness, names),
        "uncovered": _record_names("uncovered")(witness, names),
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
