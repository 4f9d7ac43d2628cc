"""An audit as one HTML page: the verdict, who is exposed by what, and how much else is known.

A section is one function of the audit and of how it names people; the page is their list. Without
`reveal` no value, bound or total is written, and records and people are row numbers.
"""

from collections import Counter
from collections.abc import Callable

from casemate.audit.result import Audited, Certificate, Exposed
from casemate.published.equations import Place
from casemate.published.publication import RefusedQuery
from casemate.report.audit import HIDDEN, SENTENCES, combination, named, plain, reason
from casemate.report.audit_figures import exposure_map, shrinkage_histogram, taking_part
from casemate.report.audit_others import (
    approximate,
    groups,
    insiders,
    left_open,
    repair,
    sensitive_cells,
    tight,
    told,
    witness,
)
from casemate.report.markup import Markup, escaped, joined, tag
from casemate.report.names import Names
from casemate.report.page import (
    ROWS_SHOWN,
    counted,
    facts,
    listing,
    page,
    paragraph,
    section,
    table,
)

SCOPE = (
    "The audit is about the private columns: whether somebody is in the table at all is not "
    "protected by it.",
    "It is about one snapshot of the table: the same statement before and after somebody joins "
    "gives them away.",
)


def as_html(audit: Audited, *, reveal: bool = False) -> str:
    """An audit as a self-contained page."""
    names = Names(audit.people, reveal)
    sentence = SENTENCES[audit.verdict]
    return page(
        "casemate audit",
        f"{sentence[:1].upper()}{sentence[1:]}.",
        _introduction(audit, names),
        [each(audit, names) for each in SECTIONS],
    )


def _introduction(audit: Audited, names: Names) -> Markup:
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


def _exposed(audit: Audited, names: Names) -> Markup:
    if not audit.exposed:
        return Markup()
    linked = frozenset(_listed_statements(audit))
    rows = [
        (names.whose(each), each.column, told(each.value, names), _how(each, linked))
        for each in audit.exposed
    ]
    header = ("whose", "column", "value", "how it follows")
    caption = f"{counted(len(rows), 'value')} that everybody can compute, with the proof"
    return section("exposed", "Exposed values", table(caption, header, rows))


def _exposed_if_exact(audit: Audited, names: Names) -> Markup:
    if not audit.exposed_if_exact:
        return Markup()
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
    return section("rounded", "Known but for rounding", table(caption, header, rows))


def _how(exposed: Exposed, linked: frozenset[int]) -> Markup:
    if exposed.certificate is None:
        return escaped(reason(exposed))
    return _sum(exposed.certificate, linked)


def _sum(certificate: Certificate, linked: frozenset[int]) -> Markup:
    """A certificate as arithmetic, in which each published number leads to its statement."""

    def link(place: Place) -> str:
        known = place.query in linked
        return (
            tag("a", named(place), href=f"#query-{place.query}") if known else escaped(named(place))
        )

    # Around the names of published numbers it writes signs, digits and brackets only.
    return tag("code", Markup(combination(certificate, link)))


# What was published ---------------------------------------------------------------------------


def _refused(audit: Audited, _: Names) -> Markup:
    if not audit.refused:
        return Markup()
    rows = [
        (f"query {each.query}", _where(each), each.reason, _sql(each.text))
        for each in audit.refused
    ]
    header = ("statement", "line:column", "why", "text")
    caption = f"{counted(len(rows), 'statement')}, or parts of one, left out of the verdict"
    return section("refused", "Not audited", table(caption, header, rows))


def _where(refused: RefusedQuery) -> str:
    return ":".join(str(each) for each in (refused.line, refused.column) if each is not None)


def _statements(audit: Audited, _: Names) -> Markup:
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


def _assumptions(audit: Audited, _: Names) -> Markup:
    sentences = [f"{sentence}." for sentence in audit.assumptions]
    return section("assumptions", "What was taken for granted", listing([*sentences, *SCOPE]))


SECTIONS: tuple[Callable[[Audited, Names], Markup], ...] = (
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
