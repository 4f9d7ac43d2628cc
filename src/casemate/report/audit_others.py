"""The sections of an audit's page about everybody whose value does not follow by itself."""

from collections.abc import Sequence
from fractions import Fraction

from casemate.audit.result import Audited, Group, Interval
from casemate.published.equations import Place
from casemate.query.expression import Scalar
from casemate.report.audit import HIDDEN, named, plain, witness_lines
from casemate.report.audit_repair import repair_lines
from casemate.report.markup import Markup, tag
from casemate.report.names import Names
from casemate.report.page import ROWS_SHOWN, counted, listing, paragraph, section, table

NAMES_SHOWN = 100


def told(value: Scalar | Fraction | tuple[Scalar, ...], names: Names) -> str:
    """A private value in words, if values are revealed."""
    return plain(value) if names.reveal else HIDDEN


def tight(audit: Audited, names: Names) -> Markup:
    """Whose value is nearly known."""
    if not audit.tight:
        return Markup()
    rows = [
        (f"record {names.record(each.record)}", each.column, *_ends(each, names), _share(each))
        for each in audit.tight
    ]
    header = ("whose", "column", "at least", "at most", "of the range excluded")
    caption = f"{counted(len(rows), 'value')} known to within the share that was asked for"
    return section("tight", "Nearly known values", table(caption, header, rows))


def _ends(interval: Interval, names: Names) -> tuple[str, str]:
    return told(interval.low, names), told(interval.high, names)


def _share(interval: Interval) -> str:
    shrinkage = interval.shrinkage
    return "" if shrinkage is None else f"{100 * float(shrinkage):.1f} %"


def groups(audit: Audited, names: Names) -> Markup:
    """Of which small groups the total is known."""
    if not audit.groups:
        return Markup()
    rows = [
        (_records(each.records, names), _added_up(each), told(each.total, names))
        for each in audit.groups
    ]
    caption = f"{counted(len(rows), 'small group')} whose total follows, and none of its parts"
    return section("groups", "Small groups", table(caption, ("whose", "column", "total"), rows))


def _added_up(group: Group) -> str:
    if group.category is None:
        return group.column
    return f"how many have {group.column} = {plain(group.category)}"


def insiders(audit: Audited, names: Names) -> Markup:
    """Whose value follows for somebody who knows others' values."""
    if not audit.insider_exposed:
        return Markup()
    rows = [
        (f"record {names.record(each.record)}", each.column, _records(each.knows, names))
        for each in audit.insider_exposed
    ]
    header = ("whose", "column", "for whoever knows")
    caption = f"{counted(len(rows), 'value')} that somebody in the table can compute"
    return section("insiders", "Exposed to insiders", table(caption, header, rows))


def approximate(audit: Audited, names: Names) -> Markup:
    """Whose value somebody who knows others' values nearly learns."""
    if not audit.approximate:
        return Markup()
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
    return section("approximate", "Nearly known to insiders", table(caption, header, rows))


def sensitive_cells(audit: Audited, _: Names) -> Markup:
    """Which single cells the rules of statistical offices would withhold."""
    if not audit.sensitive_cells:
        return Markup()
    rows = [
        (named(Place(each.query, each.column, each.key)), each.column, ", ".join(each.rules))
        for each in audit.sensitive_cells
    ]
    caption = f"{counted(len(rows), 'published cell')} that a rule for single cells calls sensitive"
    return section("cells", "Sensitive cells", table(caption, ("cell", "column", "rules"), rows))


def repair(audit: Audited, _: Names) -> Markup:
    """What could be published instead, as far as nobody is exposed by it."""
    if audit.repair is None:
        return Markup()
    lines = repair_lines(audit.repair, named, ROWS_SHOWN)
    statements = tag("pre", tag("code", audit.repair.sql.strip())) if audit.repair.is_safe else ""
    heading = "What could be published instead"
    return section("repair", heading, *_sentence_and_list(lines), statements)


def witness(audit: Audited, names: Names) -> Markup:
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


def left_open(audit: Audited, names: Names) -> Markup:
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


def _records(records: Sequence[Scalar], names: Names) -> str:
    listed = ", ".join(str(names.record(record)) for record in records[:NAMES_SHOWN])
    more = len(records) - NAMES_SHOWN
    word = "record" if len(records) == 1 else "records"
    return f"{word} {listed}" + (f" and {more:,} more" if more > 0 else "")
