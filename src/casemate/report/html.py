"""A report as a page: one self-contained HTML file.

It loads nothing, runs nothing (its own content policy says so to the browser), follows the
reader's light or dark setting, and prints in black on white: `style.css` is the style sheet of
every page, one palette for light, for dark and for paper.
"""

from importlib.resources import files
from itertools import zip_longest

from casemate._version import VERSION
from casemate.report.model import (
    Block,
    Code,
    Facts,
    Figure,
    Link,
    Listing,
    Paragraph,
    Prose,
    Report,
    Section,
    TableBlock,
    Where,
)
from casemate.report.plots.plot import Markup, escape, join, tag
from casemate.report.text import sentence

ROWS_ON_PAGE = 500
"""The most rows of a table: beyond that nobody reads a page, and the JSON has all of them."""

CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def as_html(report: Report) -> str:
    """A report as a whole file."""
    style = (files("casemate.report") / "style.css").read_text("utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=CONTENT_POLICY),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", report.command),
        tag("style", Markup(f"\n{style}")),
    )
    header = tag(
        "header",
        tag("p", report.command, class_="kind"),
        tag("h1", _clause(report.headline)),
        *map(_block, report.introduction),
    )
    footer = tag("footer", tag("p", f"Written by casemate {VERSION}."))
    body = tag("body", tag("main", header, *map(_section, report.sections), footer))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _section(section: Section) -> Markup:
    content = Markup() if section.where is Where.TEXT else join(map(_block, section.blocks))
    return (
        tag("section", tag("h2", section.heading), content, id=section.name) if content else content
    )


def _block(block: Block) -> Markup:
    if block.where is Where.TEXT:
        return Markup()
    match block:
        case Paragraph():
            return tag("p", _clause(block.content), class_="note" if block.remark else None)
        case Listing():
            items = [tag("li", _clause(each)) for each in block.clauses[:ROWS_ON_PAGE]]
            more = _more(len(block.clauses) - ROWS_ON_PAGE)
            return join([tag("ul", *items), more]) if items else Markup()
        case Facts():
            tiles = [tag("div", tag("dt", name), tag("dd", _prose(x))) for name, x in block.pairs]
            return tag("dl", *tiles, class_="facts")
        case TableBlock():
            return _table(block)
        case Figure():
            return _figure(block)


def _clause(content: Prose) -> Markup:
    return escape(sentence(content)) if isinstance(content, str) else _prose(content)


def _prose(prose: Prose) -> Markup:
    match prose:
        case Link():
            return tag("a", prose.words, href=f"#{prose.anchor}")
        case Code():
            code = tag("code", _prose(prose.content))
            return tag("pre", code) if prose.lines else code
        case tuple():
            return join(map(_prose, prose))
    return escape(prose)


def _figure(figure: Figure) -> Markup:
    """A drawing with a caption under it; a wide one scrolls by itself."""
    drawing = figure.draw()
    if drawing is None:
        return Markup()
    scroll = tag("div", drawing.svg, class_="scroll", tabindex=0)
    return tag("figure", scroll, tag("figcaption", _prose(drawing.caption)))


def _table(table: TableBlock) -> Markup:
    """A table with its caption; the rows that it has no room for are counted below it."""
    if not table.rows and not table.even_empty:
        return Markup()
    head = tag("tr", *(tag("th", cell, scope="col") for cell in table.header))
    body = []
    for row, anchor in zip_longest(table.rows[:ROWS_ON_PAGE], table.anchors[:ROWS_ON_PAGE]):
        name, *cells = map(_prose, row)
        labelled = zip(table.header[1:], cells, strict=True)  # a narrow screen has no header
        named = [tag("td", cell, data_label=label) for label, cell in labelled]
        body.append(tag("tr", tag("th", name, scope="row"), *named, id=anchor))
    content = tag("table", tag("caption", table.caption), tag("thead", head), tag("tbody", *body))
    scroll = tag(
        "div", content, class_="scroll", tabindex=0, role="region", aria_label=table.caption
    )
    return join([scroll, _more(len(table.rows) - ROWS_ON_PAGE)])


def _more(count: int) -> Markup:
    if count <= 0:
        return Markup()
    return tag("p", f"and {count:,} more: the JSON report lists all of them.", class_="more")
