"""A page: one self-contained HTML file with sections, tables and one style sheet.

It loads nothing, runs nothing (its own content policy says so to the browser), follows the
reader's light or dark setting, and prints in black on white.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from casemate._version import VERSION
from casemate.report.markup import Markup, joined, tag
from casemate.report.style import STYLE

ROWS_SHOWN = 500
"""The most rows of a table: beyond that nobody reads a page, and the JSON has all of them."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(title: str, headline: object, introduction: object, sections: Iterable[object]) -> str:
    """The whole file."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(STYLE)),
    )
    top = tag("header", tag("p", title, class_="kind"), tag("h1", headline), introduction)
    foot = tag("footer", tag("p", f"Written by casemate {VERSION}."))
    body = tag("body", tag("main", top, *sections, foot))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def section(name: str, heading: str, *content: object) -> Markup:
    """A section of the page, to which `#name` leads."""
    return tag("section", tag("h2", heading), *content, id=name)


def counted(number: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "value"), counted(1331, "value")
    ('1 value', '1,331 values')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def paragraph(*content: object, kind: str | None = None) -> Markup:
    """A paragraph."""
    return tag("p", *content, class_=kind)


def figure(drawing: Markup, *caption: object) -> Markup:
    """A drawing with a caption under it; a wide one scrolls by itself."""
    scrolled = tag("div", drawing, class_="scroll", tabindex=0)
    return tag("figure", scrolled, tag("figcaption", *caption))


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """A few numbers that say how large the matter is."""
    tiles = [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs]
    return tag("dl", *tiles, class_="facts")


def listing(items: Sequence[object]) -> Markup:
    """A list of short things."""
    return tag("ul", *(tag("li", item) for item in items))


def table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    most: int = ROWS_SHOWN,
    identities: Sequence[str] = (),
) -> Markup:
    """A table with its caption, whose rows begin with their names; the rest is counted below it.

    `identities` are where links to the rows lead.
    """
    head = tag("tr", *(tag("th", cell, scope="col") for cell in header))
    body = [_row(*each) for each in zip_longest(rows[:most], identities[:most])]
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    scrolled = tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)
    return joined([scrolled, _more(len(rows) - most)])


def _row(cells: Sequence[object], identity: str | None) -> Markup:
    first, *others = cells
    return tag(
        "tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in others), id=identity
    )


def _more(number: int) -> Markup:
    if number <= 0:
        return Markup()
    return paragraph(f"and {number:,} more: the JSON report lists all of them.", kind="more")
