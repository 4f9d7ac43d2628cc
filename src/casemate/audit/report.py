"""An audit as a report: the verdict, who is exposed by what, and how much else is known.

A report is made of the fields of `casemate.audit/1` alone, so that a saved object reads as it read
when it was made; `fields` says what is hidden without `reveal`. The lists of findings are a table:
which list, under which heading, and how one of them is a row of a page and a line of text. `words`
puts them into words, and `figures` draws what the page shows.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from casemate.audit import figures
from casemate.audit.fields import FIELDS, SCHEMA, Occasion, audit_fields, certificate_fields
from casemate.audit.result import Audited, Exposed, Verdict
from casemate.audit.words import (
    HIDDEN,
    Fields,
    FindingGroup,
    Words,
    group_words,
    grouped,
    plain_reason,
    records_named,
    statements_behind,
    whose,
)
from casemate.errors import Misconfigured, shown_name
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
    plain,
    words_of,
)

ROWS_IN_TEXT = 20
GROUPS_AT_THE_TOP = 5
PROOFS_IN_TEXT = 5
SENTENCES = {
    Verdict.EXPOSED: "somebody's value follows from what was published",
    Verdict.NONE_EXPOSED: "nobody's value follows from what was published",
    Verdict.INCOMPLETE: "no value was found, but not everything could be audited",
}
SHOWS_ROWS = "private values are shown row by row; whose they are was not decided for all"
ONLY_MISSING = "who has no value follows from what was published"
SCOPE = (
    "The audit is about the private columns: whether somebody is in the table at all is not "
    "protected by it."
)
SNAPSHOT = (
    "It is about one snapshot of the table: the same statement before and after somebody joins "
    "gives them away (--against audits that)."
)


NOT_AUDITED_STEP = (
    'under "not audited" each line says what to change; leave such a statement out, or take what '
    "it shows as published, until it is audited"
)

ADDED_LATER: Fields = {
    "table": None,
    "date": None,
    "options": {},
    "revealed": False,
    "statements": [],
    "across": None,
    "interrupted": False,
    "undeclared": ["bounds", "integer"],
}
"""Fields that an object of an earlier version has not."""


def audit_report(
    audit: Audited, *, reveal: bool = False, occasion: Occasion | None = None
) -> Report:
    """The verdict, and everything that was found."""
    return _report(audit_fields(audit, occasion or Occasion(), reveal=reveal))


def saved_report(saved: object) -> Report:
    """The same of an object that `--format json` printed."""
    schema = saved.get("schema") if isinstance(saved, dict) else None
    if not isinstance(saved, dict) or schema != SCHEMA:
        said = f"an object of {shown_name(schema)}" if isinstance(schema, str) else "something else"
        raise Misconfigured(f"expected an object of {SCHEMA}, and this is {said}")
    lists = {name: [_whole(e, FIELDS[name]) for e in saved.get(name, ())] for name in FIELDS}
    later = {name: each for name, each in ADDED_LATER.items() if name not in saved}
    return _report({**saved, **later, **lists})


def _whole(finding: Any, names: Sequence[str]) -> Any:
    """A finding with fields that were added to the object after it was saved."""
    if not names:
        return finding
    return {**{name: () if name == "derivation" else None for name in names}, **finding}


def reason(exposed: Exposed) -> str:
    """How an exposed value follows, in plain words."""
    certificate = certificate_fields(exposed.certificate)
    return plain_reason(
        {"certificate": certificate, "proof": exposed.proof, "by": exposed.by, "derivation": ()}
    )


def _report(fields: Fields) -> Report:
    titles = {i: each["title"] for i, each in enumerate(fields["statements"], 1) if each["title"]}
    groups, missing = grouped(fields["exposed"]), grouped(fields["missing"])
    exposed = [each for group in groups for each in group.members]
    listed = _listed_statements(len(fields["statements"]), exposed)
    words = Words(fields["revealed"], titles, frozenset(listed), _numbers_in_logs(fields))
    in_order = {**fields, "exposed": exposed}
    verdict = Verdict(fields["verdict"])
    findings = [_finding_section(kind, in_order, words) for kind in FINDINGS]
    exposure_map = Figure(lambda: figures.draw_exposure_map(exposed, words))
    shrinkage = Figure(lambda: figures.draw_shrinkage(in_order))
    return Report(
        "casemate audit",
        f"verdict: {verdict} ({_sentence(fields)})",
        lambda: {**fields, "exposed_groups": [_group_fields(each, words) for each in groups]},
        _introduction(fields, groups, missing, words),
        [
            Section("map", "Who is exposed by which statement", [exposure_map]),
            Section("shrinkage", "What is left of everybody's range", [shrinkage]),
            *findings[:2],
            Section("proofs", "How it follows", [_proofs([*groups, *missing], words)]),
            *findings[2:],
            Section("witness", "Second tables", _witness_blocks(fields["witness"]), label=""),
            Section(
                "repair",
                "What could be published instead",
                _repair_blocks(fields["repair"], words),
                label="",
            ),
            Section("open", "Not decided", _open_blocks(fields), label=""),
            _refused_section(fields["refused"], words),
            _statements_section(fields["statements"], listed, exposed, words),
            Section(
                "assumptions",
                "What was taken for granted",
                [
                    Listing([(each,) for each in fields["assumptions"]], ""),
                    Listing([SCOPE] if fields["releases"] else [SCOPE, SNAPSHOT], where=Where.PAGE),
                ],
                label="",
            ),
        ],
    )


def _sentence(fields: Fields) -> str:
    """The verdict in words."""
    verdict = Verdict(fields["verdict"])
    if verdict is Verdict.INCOMPLETE and _showing_rows(fields):
        return SHOWS_ROWS
    return ONLY_MISSING if fields["missing"] and not fields["exposed"] else SENTENCES[verdict]


def _showing_rows(fields: Fields) -> list[Fields]:
    """The statements that show private values row by row, and of which not all was decided."""
    return [each for each in fields["refused"] if each["shows_rows"]]


def _numbers_in_logs(fields: Fields) -> dict[int, str]:
    """How statements about older releases are numbered: each in its own log."""
    numbers: dict[int, str] = {}
    for each in fields["releases"]:
        first, last = each["queries"]["from"], each["queries"]["to"]
        if each["log"] is not None and first is not None:
            queries = enumerate(range(first, last + 1), start=1)
            numbers |= {query: f"{number} of {each['log']}" for number, query in queries}
    return numbers


def _group_fields(group: FindingGroup, words: Words) -> dict[str, Any]:
    return {
        "column": group.column,
        "people": group.people,
        "values": len(group.members),
        "queries": sorted({query for query, _ in group.cells}),
        "proof": group.proof.value,
        "reason": group.reason,
        "text": words_of(group_words(group, Words(numbers=words.numbers))),
    }


# What is read first -----------------------------------------------------------------------------


def _introduction(
    fields: Fields,
    groups: Sequence[FindingGroup],
    missing: Sequence[FindingGroup],
    words: Words,
) -> list[Block]:
    """Who is exposed, what of what, and what to do next: a screen, and the top of a page."""
    blocks: list[Block] = [Facts(_numbers(fields, groups, missing)), *_release_blocks(fields)]
    blocks += _who(groups, "exposed", words)
    blocks += _who(missing, "known to have no value", words)
    rows = [f"{words.statement(e['query'])}: {e['reason']}" for e in _showing_rows(fields)]
    blocks.append(Listing(rows, rows_in_text=GROUPS_AT_THE_TOP))
    blocks += [Paragraph(each) for each in _left_open(fields)]
    blocks.append(Paragraph(_size(fields), where=Where.TEXT))
    blocks += [Paragraph((each,)) for each in _occasion(fields)]
    titled = [words.statement(query) for query in words.titles]
    blocks.append(Listing(titled, rows_in_text=GROUPS_AT_THE_TOP, where=Where.TEXT))
    if fields["consistent"] is False:
        blocks.append(Paragraph("the published numbers contradict each other"))
    if not fields["revealed"]:
        hidden = f"values are written as {HIDDEN}, and records and people as row numbers"
        blocks.append(Paragraph(hidden, remark=True, where=Where.PAGE))
    return [*blocks, *_next_steps(fields)]


def _size(fields: Fields) -> str:
    """How much was audited."""
    said = [count_of(fields["queries"], "statement")]
    if fields["equations"]:
        equations = count_of(fields["equations"], "equation")
        independent = f"({fields['rank']:,} of them independent)"
        said.append(f"{equations} from sums, averages and counts {independent}")
    return f"{', '.join(said)}, about {count_of(fields['records'], 'record')}"


def _numbers(
    fields: Fields, groups: Sequence[FindingGroup], missing: Sequence[FindingGroup]
) -> Iterable[tuple[str, str]]:
    yield "people exposed", f"{_people(groups):,}"
    for name, count in (
        ("known to be missing", _people(missing)),
        ("records undecided", len(fields["undecided"])),
        ("records not checked", len(fields["unchecked"])),
    ):
        if count:
            yield name, f"{count:,}"
    yield "records", f"{fields['records']:,}"
    yield "statements", f"{fields['queries']:,}"
    if fields["equations"]:
        yield "equations from sums, averages and counts", f"{fields['equations']:,}"
        yield "independent ones", f"{fields['rank']:,}"


def _people(groups: Sequence[FindingGroup]) -> int:
    return len({person for group in groups for person in group.persons})


def _who(groups: Sequence[FindingGroup], what: str, words: Words) -> list[Block]:
    """How many people, and the first groups of them."""
    if not groups:
        return []
    people, values = _people(groups), sum(len(group.members) for group in groups)
    are = "is" if people == 1 else "are"
    several = "" if values == people else f", with {values:,} values"
    said = f"{count_of(people, 'person', 'people')} {are} {what}{several}"
    first: list[Prose] = [group_words(each, words) for each in groups[:GROUPS_AT_THE_TOP]]
    more = len(groups) - GROUPS_AT_THE_TOP
    if more > 0:
        first.append(f"and {count_of(more, 'more group')}")
    return [Paragraph(said), Listing([(each,) for each in first])]


def _left_open(fields: Fields) -> Iterable[str]:
    """How many are undecided or unchecked and why, and how much was not audited, in short."""
    for kind, what in OPEN.items():
        if fields[kind]:
            why = [each["reason"] for each in fields["reasons"] if each["kind"] == kind]
            because = f" ({'; '.join(why[:2])})" if why else ""
            yield f"{count_of(len(fields[kind]), 'record')} {what}{because}"
    if fields["refused"]:
        yield f"{count_of(len(fields['refused']), 'statement')}, or parts of one, not audited"


def _occasion(fields: Fields) -> Iterable[str]:
    """The table, when, and with which options."""
    said = [] if fields["table"] is None else [f"table {fields['table']}"]
    if fields["date"] is not None:
        said.append(f"{datetime.fromisoformat(fields['date']):%Y-%m-%d %H:%M %Z}".strip())
    options = [word for name, value in fields["options"].items() for word in _option(name, value)]
    said += [" ".join(options)] if options else []
    if said:
        yield ", ".join(said)


def _option(name: str, value: object) -> list[str]:
    if value is True:
        return [f"--{name}"]
    values = value if isinstance(value, list) else [value]
    return [f"--{name} {f'{each:g}' if isinstance(each, float) else each}" for each in values]


def _next_steps(fields: Fields) -> list[Block]:
    steps: list[Prose] = [*_against_exposure(fields), *_against_doubt(fields)]
    if not steps:
        return []
    page = "--html FILE writes this as a page to pass on"
    return [
        Paragraph("what to do next:"),
        Listing(steps),
        Listing([page], where=Where.TEXT),
    ]


def _against_exposure(fields: Fields) -> Iterable[Prose]:
    """What to do about values that follow."""
    if (fields["exposed"] or fields["missing"]) and fields["repair"] is None:
        repair = Code("--repair FILE")
        if fields["releases"]:
            without, again = Code("--against"), " and audit that file with "
            yield repair, " works on one release: write it without ", without, again, without
        else:
            yield repair, " writes the statements without the rows that expose anybody"
    if fields["exposed"] and not fields["revealed"]:
        yield Code("--reveal"), " shows the values"


def _against_doubt(fields: Fields) -> Iterable[Prose]:
    """What to do about what was not audited or decided: one step at least for each reason."""
    if fields["consistent"] is False:
        yield "correct the answers that contradict each other, or audit without answers"
    if fields["refused"]:
        yield NOT_AUDITED_STEP
    left_open = fields["undecided"] or fields["unchecked"]
    reasons = [each["reason"] for each in fields["reasons"]]
    limited = [each for each in reasons if "seconds" in each or "limit" in each]
    ended = [each for each in reasons if "interrupted" in each]
    if left_open and (limited or not reasons):
        yield Code("--seconds N"), " gives more time to what is undecided"
    if left_open and ended:
        yield "let it run to its end: what is undecided was not looked for"
    if left_open and len(limited) + len(ended) < len(reasons):
        yield _against_lack_of_knowledge(fields["undeclared"])
    doubt = fields["refused"] or left_open or fields["consistent"] is False
    if fields["verdict"] == Verdict.INCOMPLETE and not doubt:
        yield "the sentences at the end say what was taken for granted: declare what they name"


def _against_lack_of_knowledge(undeclared: Sequence[str]) -> Prose:
    """What to do about who is left open, but not for want of time."""
    options = [option for name, option in KNOWLEDGE.items() if name in undeclared]
    if not options:
        return "take who is left open for another reason as exposed"
    known = " if they are known" if len(options) > 1 else " if that is known"
    said = tuple(part for option in options for part in (" and ", Code(option)))[1:]
    return (
        "for who is left open for another reason: ",
        *said,
        known,
        ", else take them as exposed",
    )


KNOWLEDGE = {"bounds": "--bounds LO:HI", "integer": "--integer"}
"""Options that say more of private numbers, by the names in `undeclared`."""


def _release_blocks(fields: Fields) -> list[Block]:
    """Whom only several releases together expose, and who came and went between them."""
    across = fields["across"]
    if across is None:
        return []
    found = count_of(sum(across.values()), "person", "people") if any(across.values()) else "nobody"
    split = ", ".join(f"{count:,} {what}" for what, count in across.items() if count)
    moved = [
        f"against {each['file']}: {each['records']:,} records; since then {each['joined']:,} "
        f"joined and {each['left']:,} left, and {count_of(each['changed'], 'value')} changed"
        for each in fields["releases"][1:]
    ]
    said = f"exposed by the difference: {found}" + (f" ({split})" if split else "")
    return [Paragraph(said), Listing(moved)]


# The lists of findings --------------------------------------------------------------------------


@dataclass(frozen=True)
class FindingKind:
    """One list of an audit: its headings, its columns, and a finding as a row and as a line."""

    field: str
    anchor: str
    heading: str
    label: str
    caption: str
    header: tuple[str, ...]
    row: Callable[[Fields, Words], Sequence[Prose]]
    line: Callable[..., str]


def _finding_section(kind: FindingKind, fields: Fields, words: Words) -> Section:
    findings: Sequence[Fields] = fields[kind.field]
    noun, _, rest = kind.caption.partition(" that ")
    caption = f"{count_of(len(findings), noun)} that {rest}"
    rows = LazyRows(findings, lambda finding: kind.row(finding, words))
    table = TableBlock(caption, kind.header, rows, line=kind.line, rows_in_text=ROWS_IN_TEXT)
    label = f"{kind.label}: {len(findings)}"
    return Section(kind.anchor, kind.heading, [table], label=label)


def _exposed_row(each: Fields, words: Words) -> Sequence[Prose]:
    follows = words.how_it_follows(each), words.in_words(each)
    return whose(each), each["column"], words.value(each["value"]), *follows


def _missing_row(each: Fields, words: Words) -> Sequence[Prose]:
    return whose(each), each["column"], words.how_it_follows(each), words.in_words(each)


def _exposed_line(whose: str, column: str, value: str, by: str, _: str) -> str:
    return f"{whose}: {column} = {value}  by {by}"


def _missing_line(whose: str, column: str, by: str, _: str) -> str:
    return f"{whose}: {column} is missing  by {by}"


def _if_exact_row(each: Fields, words: Words) -> Sequence[Prose]:
    value = HIDDEN if each["value"] is None else words.value(each["value"])
    margin = "" if each["margin"] is None else plain(each["margin"])
    certificate = each["certificate"]
    by = words.query(each["by"]) if certificate is None else words.combination(certificate)
    return whose(each), each["column"], value, margin, by


def _if_exact_line(whose: str, column: str, value: str, margin: str, by: str) -> str:
    give_or_take = f" give or take {margin}" if margin else ""
    return f"{whose}: {column} = {value}{give_or_take}  by {by}"


def _interval_row(each: Fields, words: Words) -> Sequence[Prose]:
    ends = words.value(each["lo"]), words.value(each["hi"])
    shrinkage = "" if each["shrinkage"] is None else f"{100 * each['shrinkage']:.1f} %"
    return f"record {each['record']}", each["column"], *ends, shrinkage


def _interval_line(whose: str, column: str, low: str, high: str, _: str = "") -> str:
    ends = HIDDEN if low == high == HIDDEN else f"{low} to {high}"
    return f"{whose}: {column} is {ends}"


def _group_row(each: Fields, words: Words) -> Sequence[Prose]:
    what = f"{each['column']} adds up to"
    if each["category"] is not None:
        what = f"with {each['column']} = {plain(each['category'])} there are"
    return records_named(each["records"]), what, words.value(each["total"])


def _insider_row(each: Fields, _: Words) -> Sequence[Prose]:
    what = (
        f"{each['column']}, unless it is 0 or missing," if each["unless_zero"] else each["column"]
    )
    return f"record {each['record']}", what, records_named(each["knows"])


def _approximate_row(each: Fields, words: Words) -> Sequence[Prose]:
    ends = words.value(each["lo"]), words.value(each["hi"])
    knows = records_named(each["knows"]) if each["knows"] else "nothing else"
    return f"record {each['record']}", each["column"], *ends, knows


def _approximate_line(whose: str, column: str, low: str, high: str, knows: str) -> str:
    return f"{_interval_line(whose, column, low, high)} to whoever knows {knows}"


def _cell_row(each: Fields, words: Words) -> Sequence[Prose]:
    return words.place(each["query"], each["cell"]), each["column"], " and ".join(each["rules"])


FINDINGS = (
    FindingKind(
        "exposed",
        "exposed",
        "Exposed values",
        "exposed",
        "value that everybody can compute, with the proof",
        ("whose", "column", "value", "how it follows", "in words"),
        _exposed_row,
        _exposed_line,
    ),
    FindingKind(
        "missing",
        "missing",
        "Known to be missing",
        "known to be missing",
        "value that everybody can tell to be missing, with the proof",
        ("whose", "column", "how it follows", "in words"),
        _missing_row,
        _missing_line,
    ),
    FindingKind(
        "groups",
        "groups",
        "Small groups",
        "small groups whose total is known",
        "small group that everybody knows the total of, and no part",
        ("whose", "what", "total"),
        _group_row,
        "{}: {} {}".format,
    ),
    FindingKind(
        "tight",
        "tight",
        "Nearly known values",
        "nearly known",
        "value that everybody knows to within the share that was asked for",
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


def _proofs(groups: Sequence[FindingGroup], words: Words) -> Block:
    """The proofs that are no arithmetic, for the first groups; the page has each in its row."""
    argued = [each for each in groups if each.derivation]
    clauses: list[Prose] = []
    for group in argued[:PROOFS_IN_TEXT]:
        clauses += [group.who, *(("  ", step) for step in words.steps(group.derivation))]
    return Listing(clauses, where=Where.TEXT)


# Second tables, repairs, and what is left open --------------------------------------------------


def _witness_blocks(witness: Fields | None) -> list[Block]:
    """How far second tables go that give the same answers."""
    if witness is None:
        return []
    where = "" if witness["file"] is None else f" in {witness['file']}"
    clauses = []
    for what, records in (
        ("differing by less than the protection width", witness["narrow"]),
        ("not covered", witness["uncovered"]),
    ):
        if records:
            first = ", ".join(map(str, records[:ROWS_IN_TEXT]))
            more = len(records) - ROWS_IN_TEXT
            clauses.append(f"{what}: {first}" + (f" and {more} more" if more > 0 else ""))
    covered = f"second tables: {witness['tables']}{where}, covering {witness['covered']} records"
    return [Paragraph(covered), Listing(clauses)]


def _withheld(each: Fields, words: Words) -> str:
    """A row, a number of it, or a whole column."""
    place = words.place(each["query"], each["cell"])
    if "column" not in each:
        return place
    return f"{place}: {each['column']}" if each["cell"] else f"{place}, column {each['column']}"


def _repair_blocks(repair: Fields | None, words: Words) -> list[Block]:
    """What could be published instead, as far as nobody is exposed by it."""
    if repair is None:
        return []
    share = f"{sum('column' not in e for e in repair['withheld'])} of {repair['cells_before']} rows"
    numbers = sum("column" in each and each["cell"] is not None for each in repair["withheld"])
    share += f" and {count_of(numbers, 'single number')}" if numbers else ""
    if repair["verdict"] != Verdict.NONE_EXPOSED:
        rest = f"what is left without {share} is {repair['verdict']} as well"
        return [Paragraph(f"repair: nothing was written, since {rest}")]
    where = "" if repair["file"] is None else f" in {repair['file']}"
    withheld = [each for each in repair["withheld"] if each["query"] not in repair["dropped"]]
    rows = [(_withheld(each, words),) for each in withheld]
    dropped = ", ".join(map(str, repair["dropped"]))
    return [
        Paragraph(f"repair: the queries{where} expose nobody, with {share} withheld"),
        Listing(rows, rows_in_text=ROWS_IN_TEXT),
        Listing([f"left out as a whole: query {dropped}"] if dropped else []),
        Paragraph(Code((repair.get("sql") or "").strip(), lines=True), where=Where.PAGE),
    ]


OPEN = {"undecided": "not decided", "unchecked": "not checked"}


def _open_blocks(fields: Fields) -> list[Block]:
    """Whom the audit did not decide about and why: in the text how many, on a page who."""
    blocks: list[Block] = []
    for kind, what in OPEN.items():
        records = fields[kind]
        if not records:
            continue
        reasons = [each for each in fields["reasons"] if each["kind"] == kind]
        named = [_why(each, len(records), ROWS_ON_PAGE) for each in reasons]
        short = [_why(each, len(records), ROWS_IN_TEXT) for each in reasons]
        blocks += [
            Paragraph(f"{what}: {count_of(len(records), 'record')}", where=Where.TEXT),
            Paragraph(f"{what}: {records_named(records)}", where=Where.PAGE),
            Listing(short, rows_in_text=ROWS_IN_TEXT, where=Where.TEXT),
            Listing(named, where=Where.PAGE),
        ]
    return blocks


def _why(reason: Fields, of: int, most_named: int) -> str:
    """Why some records are left open; who, or how many, where they are not all of them."""
    records, text = reason["records"], str(reason["reason"])
    if len(records) == of:
        return text
    few = len(records) <= most_named
    return f"{records_named(records) if few else count_of(len(records), 'record')}: {text}"


# What was published -----------------------------------------------------------------------------


def _refused_section(refused: Sequence[Fields], words: Words) -> Section:
    rows = [
        (
            words.query(each["query"]),
            ":".join(str(each[part]) for part in ("line", "column") if each[part] is not None),
            each["reason"],
            Code(each["text"].strip(), lines=True),
        )
        for each in refused
    ]
    header = ("statement", "line:column", "why", "text")
    caption = f"{count_of(len(rows), 'statement')}, or parts of one, left out of the verdict"
    table = TableBlock(caption, header, rows, line=_refused_line, rows_in_text=None)
    return Section("refused", "Not audited", [table], label=f"not audited: {len(rows)}")


def _refused_line(query: str, position: str, why: str, _: str) -> str:
    return f"{query} (line {position.partition(':')[0]}): {why}"


def _statements_section(
    statements: Sequence[Fields], listed: Sequence[int], exposed: Sequence[Fields], words: Words
) -> Section:
    part = Counter(query for each in exposed for query in statements_behind(each))
    tipped = Counter(each["by"] for each in exposed)

    def row(query: int) -> Sequence[Prose]:
        text = Code(statements[query - 1]["text"], lines=True)
        return words.statement(query), text, part[query], tipped[query]

    header = ("statement", "text", "values it helps to find", "values it completes")
    caption = f"{len(listed):,} of {count_of(len(statements), 'statement')} that were read"
    anchors = [f"query-{query:d}" for query in listed]
    table = TableBlock(caption, header, LazyRows(listed, row), anchors=anchors)
    return Section("statements", "What was published", [table], where=Where.PAGE)


def _listed_statements(statements: int, exposed: Sequence[Fields]) -> list[int]:
    """The statements to list: all, or those behind the exposed values where they are too many."""
    if statements <= ROWS_ON_PAGE:
        return list(range(1, statements + 1))
    first = exposed[:ROWS_ON_PAGE]
    return sorted({query for each in first for query in statements_behind(each)})[:ROWS_ON_PAGE]
