"""An audit as one HTML page: the verdict, who is exposed by what, and how much else is known.

A section is one function of the audit and of how it names people; the page is their list. Without
`reveal` no value, bound or total is written, and records and people are row numbers.

The sections of an audit's page about everybody whose value does not follow by itself.

The two figures of an audit: who is exposed by which statement, and how much ranges shrank.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from casemate.audit.report import (
    HIDDEN,
    SENTENCES,
    ReportNames,
    combination,
    named,
    reason,
    repair_lines,
    witness_lines,
)
from casemate.audit.result import Audited, Exposed, Group, PublishedCertificate, RemainingInterval
from casemate.published import Place, RefusedQuery
from casemate.query.language import Scalar
from casemate.report import (
    ROWS_SHOWN,
    Bands,
    Bar,
    LinearScale,
    Mark,
    Markup,
    Matrix,
    Plot,
    Tone,
    counted,
    escaped,
    facts,
    figure,
    joined,
    listing,
    page,
    paragraph,
    plain,
    section,
    table,
    tag,
)

NAMES_SHOWN = 100


def told(value: Scalar | Fraction | tuple[Scalar, ...], names: ReportNames) -> str:
    """A private value in words, if values are revealed."""
    return plain(value) if names.reveal else HIDDEN


def _table_section(
    place: str, heading: str, caption: str, header: Sequence[str], rows: Sequence[Sequence[object]]
) -> Markup:
    """A section of one table, or nothing where it has no rows."""
    return section(place, heading, table(caption, header, rows)) if rows else Markup()


def tight(audit: Audited, names: ReportNames) -> Markup:
    """Whose value is nearly known."""
    rows = [
        (f"record {names.record(each.record)}", each.column, *_ends(each, names), _share(each))
        for each in audit.tight
    ]
    header = ("whose", "column", "at least", "at most", "of the range excluded")
    caption = f"{counted(len(rows), 'value')} known to within the share that was asked for"
    return _table_section("tight", "Nearly known values", caption, header, rows)


def _ends(interval: RemainingInterval, names: ReportNames) -> tuple[str, str]:
    return told(interval.low, names), told(interval.high, names)


def _share(interval: RemainingInterval) -> str:
    shrinkage = interval.shrinkage
    return "" if shrinkage is None else f"{100 * float(shrinkage):.1f} %"


def groups(audit: Audited, names: ReportNames) -> Markup:
    """Of which small groups the total is known."""
    rows = [
        (_records(each.records, names), _added_up(each), told(each.total, names))
        for each in audit.groups
    ]
    caption = f"{counted(len(rows), 'small group')} whose total follows, and none of its parts"
    return _table_section("groups", "Small groups", caption, ("whose", "column", "total"), rows)


def _added_up(group: Group) -> str:
    if group.category is None:
        return group.column
    return f"how many have {group.column} = {plain(group.category)}"


def insiders(audit: Audited, names: ReportNames) -> Markup:
    """Whose value follows for somebody who knows others' values."""
    rows = [
        (f"record {names.record(each.record)}", each.column, _records(each.knows, names))
        for each in audit.insider_exposed
    ]
    header = ("whose", "column", "for whoever knows")
    caption = f"{counted(len(rows), 'value')} that somebody in the table can compute"
    return _table_section("insiders", "Exposed to insiders", caption, header, rows)


def approximate(audit: Audited, names: ReportNames) -> Markup:
    """Whose value somebody who knows others' values nearly learns."""
    rows = [
        (
            f"record {names.record(each.record)}",
            each.column,
            _records(each.knows, names) if each.knows else "nothing else",
            told(each.low, names),
            told(each.high, names),
        )
        for each in audit.approximate
    ]
    header = ("whose", "column", "for whoever knows", "at least", "at most")
    caption = f"{counted(len(rows), 'value')} that somebody in the table nearly knows"
    return _table_section("approximate", "Nearly known to insiders", caption, header, rows)


def sensitive_cells(audit: Audited, _: ReportNames) -> Markup:
    """Which single cells the rules of statistical offices would withhold."""
    rows = [
        (named(Place(each.query, each.column, each.key)), each.column, ", ".join(each.rules))
        for each in audit.sensitive_cells
    ]
    caption = f"{counted(len(rows), 'published cell')} that a rule for single cells calls sensitive"
    return _table_section("cells", "Sensitive cells", caption, ("cell", "column", "rules"), rows)


def repair(audit: Audited, _: ReportNames) -> Markup:
    """What could be published instead, as far as nobody is exposed by it."""
    if audit.repair is None:
        return Markup()
    lines = repair_lines(audit.repair, ROWS_SHOWN)
    statements = tag("pre", tag("code", audit.repair.sql.strip())) if audit.repair.is_safe else ""
    heading = "What could be published instead"
    return section("repair", heading, *_sentence_and_list(lines), statements)


def witness(audit: Audited, names: ReportNames) -> Markup:
    """How far second tables go that give the same answers."""
    if audit.witness is None:
        return Markup()
    lines = witness_lines(audit.witness, names)
    return section("witness", "Second tables", *_sentence_and_list(lines))


def _sentence_and_list(lines: Sequence[str]) -> list[Markup]:
    """What the text says in a line, and in the lines under it."""
    first, *others = lines
    sentence = paragraph(f"{first[:1].upper()}{first[1:]}.")
    return [sentence, listing([line.strip() for line in others])] if others else [sentence]


def left_open(audit: Audited, names: ReportNames) -> Markup:
    """Whom the audit did not decide about."""
    content = [
        paragraph(f"{what}: {_records(records, names)}.")
        for what, records in (
            ("Not decided within the limit", audit.undecided),
            ("Not checked", audit.unchecked),
        )
        if records
    ]
    return section("open", "Not decided", *content) if content else Markup()


def _records(records: Sequence[Scalar], names: ReportNames) -> str:
    listed = ", ".join(str(names.record(record)) for record in records[:NAMES_SHOWN])
    more = len(records) - NAMES_SHOWN
    word = "record" if len(records) == 1 else "records"
    return f"{word} {listed}" + (f" and {more:,} more" if more > 0 else "")


# Audit figures ----------------------------------------------------------------------------------


MOST_ROWS, MOST_COLUMNS = 40, 36
BINS = 10


def taking_part(exposed: Exposed) -> frozenset[int]:
    """The statements that a value follows from, as far as they are known one by one."""
    terms = exposed.certificate.terms if exposed.certificate else ()
    tipping = () if exposed.by is None else (exposed.by,)
    return frozenset({term.place.query for term in terms}.union(tipping))


def exposure_map(audit: Audited, names: ReportNames) -> Markup:
    """Which statements take part in which exposure, as a matrix of dots."""
    traced = [each for each in audit.exposed if taking_part(each)]
    if not traced:
        return Markup()
    shown = traced[:MOST_ROWS]
    used = Counter(number for each in shown for number in taking_part(each))
    tipped = Counter(each.by for each in shown)
    ranked = sorted(used, key=lambda number: (-tipped[number], -used[number], number))
    columns = sorted(ranked[:MOST_COLUMNS])
    matrix = Matrix(
        tuple(_row_name(each, names, audit) for each in shown),
        tuple(f"query {number}" for number in columns),
    )
    marks = [
        _mark(row, column, each, number, names)
        for row, each in enumerate(shown)
        for column, number in enumerate(columns)
        if number in taking_part(each)
    ]
    drawn = matrix.drawn(
        "map",
        "Who is exposed by which statement",
        f"{len(shown)} exposed values in rows and {len(columns)} statements in columns; a dot "
        f"where the statement takes part, a large one where it was the last that was needed.",
        marks,
    )
    left = (len(audit.exposed) - len(shown), len(used) - len(columns))
    return section("map", "Who is exposed by which statement", figure(drawn, *_map_caption(*left)))


def _row_name(exposed: Exposed, names: ReportNames, audit: Audited) -> str:
    several = len({each.column for each in audit.exposed}) > 1
    return names.whose(exposed) + (f", {exposed.column}" if several else "")


def _mark(row: int, column: int, exposed: Exposed, number: int, names: ReportNames) -> Mark:
    tipped = number == exposed.by
    says = f"{names.whose(exposed)}: query {number} " + ("tipped it" if tipped else "takes part")
    return Mark(row, column, Tone.STRONG if tipped else Tone.SOFT, says)


def _map_caption(more_values: int, more_statements: int) -> list[object]:
    caption: list[object] = [
        "A small dot: the statement takes part in the combination that gives the value. "
        "A large dot: it was the last one that was needed."
    ]
    if more_values:
        link = tag("a", "the table of exposed values", href="#exposed")
        caption += [f" And {more_values:,} more in ", link, "."]
    if more_statements:
        link = tag("a", "the table of statements", href="#statements")
        caption += [f" {more_statements:,} more statements take part: see ", link, "."]
    return caption


def shrinkage_histogram(audit: Audited, _: ReportNames) -> Markup:
    """How many private numbers lost how much of their range, the exposed ones last."""
    exposed = {(each.record, each.column) for each in audit.exposed}
    left = [each for each in audit.bounds if (each.record, each.column) not in exposed]
    shares = [each.shrinkage for each in left]
    measured = [share for share in shares if share is not None]
    if not measured:
        return Markup()
    counts = Counter(min(int(share * BINS), BINS - 1) for share in measured)
    heights = [counts[place] for place in range(BINS)]
    bars = [
        Bar(place, height, f"{height:,}" if height else "") for place, height in enumerate(heights)
    ]
    bars.append(Bar(BINS, len(audit.exposed), f"{len(audit.exposed):,}", Tone.STRONG))
    labels = (*(f"{10 * place}–{10 * place + 10}" for place in range(BINS)), "exposed")
    plot = Plot(Bands(labels), LinearScale.over([*heights, len(audit.exposed)]))
    drawn = plot.drawn(
        "shrinkage",
        "How much of each private number's range is excluded",
        f"A histogram of {len(measured)} numbers in ten bins from 0 to 100 per cent, and the "
        f"{len(audit.exposed)} exposed values beside them.",
        plot.axes("per cent of the range that is excluded by what was published", "values"),
        plot.bars(bars),
    )
    caption = "How much less is possible for each value than before anything was published."
    if unmeasured := len(shares) - len(measured):
        caption += f" {unmeasured:,} without bounds on both sides are not in it."
    return section("shrinkage", "What is left of everybody's range", figure(drawn, caption))


# Audit html -------------------------------------------------------------------------------------


SCOPE = (
    "The audit is about the private columns: whether somebody is in the table at all is not "
    "protected by it.",
    "It is about one snapshot of the table: the same statement before and after somebody joins "
    "gives them away.",
)


def as_html(audit: Audited, *, reveal: bool = False) -> str:
    """An audit as a self-contained page."""
    names = ReportNames(audit.people, reveal)
    sentence = SENTENCES[audit.verdict]
    return page(
        "casemate audit",
        f"{sentence[:1].upper()}{sentence[1:]}.",
        _introduction(audit, names),
        [each(audit, names) for each in SECTIONS],
    )


def _introduction(audit: Audited, names: ReportNames) -> Markup:
    numbers = facts(
        [
            ("exposed values", f"{len(audit.exposed):,}"),
            ("records", f"{audit.records:,}"),
            ("statements", f"{audit.queries:,}"),
            ("published numbers", f"{audit.equations:,}"),
            ("independent ones", f"{audit.rank:,}"),
        ]
    )
    notes = []
    if audit.consistent is False:
        notes.append(paragraph("The published numbers contradict each other."))
    if not names.reveal:
        hidden = f"Values are written as {HIDDEN}, and records and people as row numbers."
        notes.append(paragraph(hidden, kind="note"))
    return joined([numbers, *notes])


# Exposed values -------------------------------------------------------------------------------


def _exposed(audit: Audited, names: ReportNames) -> Markup:
    linked = frozenset(_listed_statements(audit))
    rows = [
        (names.whose(each), each.column, told(each.value, names), _how(each, linked))
        for each in audit.exposed
    ]
    header = ("whose", "column", "value", "how it follows")
    caption = f"{counted(len(rows), 'value')} that everybody can compute, with the proof"
    return _table_section("exposed", "Exposed values", caption, header, rows)


def _exposed_if_exact(audit: Audited, names: ReportNames) -> Markup:
    linked = frozenset(_listed_statements(audit))
    rows = [
        (
            names.whose(each),
            each.column,
            told(each.value, names),
            "" if each.margin is None else plain(each.margin),
            f"query {each.by}" if each.certificate is None else _sum(each.certificate, linked),
        )
        for each in audit.exposed_if_exact
    ]
    header = ("whose", "column", "value", "give or take", "how it follows")
    caption = f"{counted(len(rows), 'value')} that only rounding keeps from being known"
    return _table_section("rounded", "Known but for rounding", caption, header, rows)


def _how(exposed: Exposed, linked: frozenset[int]) -> Markup:
    if exposed.certificate is None:
        return escaped(reason(exposed))
    return _sum(exposed.certificate, linked)


def _sum(certificate: PublishedCertificate, linked: frozenset[int]) -> Markup:
    """A certificate as arithmetic, in which each published number leads to its statement."""

    def link(place: Place) -> str:
        known = place.query in linked
        return (
            tag("a", named(place), href=f"#query-{place.query}") if known else escaped(named(place))
        )

    # Around the names of published numbers it writes signs, digits and brackets only.
    return tag("code", Markup(combination(certificate, link)))


# What was published ---------------------------------------------------------------------------


def _refused(audit: Audited, _: ReportNames) -> Markup:
    rows = [
        (f"query {each.query}", _where(each), each.reason, _sql(each.text))
        for each in audit.refused
    ]
    header = ("statement", "line:column", "why", "text")
    caption = f"{counted(len(rows), 'statement')}, or parts of one, left out of the verdict"
    return _table_section("refused", "Not audited", caption, header, rows)


def _where(refused: RefusedQuery) -> str:
    return ":".join(str(each) for each in (refused.line, refused.column) if each is not None)


def _statements(audit: Audited, _: ReportNames) -> Markup:
    listed = _listed_statements(audit)
    if not listed:
        return Markup()
    part = Counter(number for each in audit.exposed for number in taking_part(each))
    tipped = Counter(each.by for each in audit.exposed)
    rows = [
        (f"query {number}", _sql(audit.statements[number - 1]), part[number], tipped[number])
        for number in listed
    ]
    header = ("statement", "text", "values it helps to find", "values it tipped")
    caption = f"{len(rows):,} of {counted(len(audit.statements), 'statement')} that were read"
    whole = table(caption, header, rows, identities=[f"query-{number}" for number in listed])
    return section("statements", "What was published", whole)


def _listed_statements(audit: Audited) -> list[int]:
    """The statements to list: all, or those behind the exposed values where they are too many."""
    numbers = range(1, len(audit.statements) + 1)
    if len(numbers) <= ROWS_SHOWN:
        return list(numbers)
    behind = sorted({n for each in audit.exposed[:ROWS_SHOWN] for n in taking_part(each)})
    return behind[:ROWS_SHOWN]


def _sql(text: str) -> Markup:
    return tag("pre", tag("code", text.strip()))


def _assumptions(audit: Audited, _: ReportNames) -> Markup:
    sentences = [f"{sentence}." for sentence in audit.assumptions]
    return section("assumptions", "What was taken for granted", listing([*sentences, *SCOPE]))


SECTIONS: tuple[Callable[[Audited, ReportNames], Markup], ...] = (
    exposure_map,
    shrinkage_histogram,
    _exposed,
    _exposed_if_exact,
    tight,
    groups,
    insiders,
    approximate,
    sensitive_cells,
    repair,
    witness,
    left_open,
    _refused,
    _statements,
    _assumptions,
)
