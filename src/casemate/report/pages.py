"""A page: one self-contained HTML file with sections, tables and one style sheet.

It loads nothing, runs nothing (its own content policy says so to the browser), follows the
reader's light or dark setting, and prints in black on white.

Markup that is escaped by construction: text becomes part of a page only through `tag`.

Everything written is well-formed XML as well as HTML, so a page can be checked by any parser.

The style sheet of every page: one palette, for light, for dark and for paper.
"""

import html
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from casemate._version import VERSION

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
WITHOUT_CONTENT = frozenset({"br", "meta"})  # HTML does not let these be closed


class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


def escaped(content: object) -> Markup:
    """Anything as markup: text is escaped, markup stays as it is.

    >>> escaped('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    if isinstance(content, Markup):
        return content
    return Markup(html.escape(NOT_IN_XML.sub("\ufffd", str(content))))


def joined(parts: Iterable[object], separator: object = "") -> Markup:
    """Parts one after the other, each escaped unless it is markup."""
    return Markup(escaped(separator).join(escaped(part) for part in parts))


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """An element; an attribute that is None is left out, one that is a float is a coordinate.

    >>> tag("a", "1 < 2", href="#top", class_="mark", aria_hidden=None)
    '<a href="#top" class="mark">1 &lt; 2</a>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(_coordinate(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in WITHOUT_CONTENT:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def _coordinate(value: object) -> object:
    """A float with two decimals: a page has no finer ones."""
    return f"{round(value, 2) + 0:.10g}" if isinstance(value, float) else value


# Style ------------------------------------------------------------------------------------------


STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfc; --ink: #1d2530; --muted: #586473; --line: #e4e7ea; --wash: #f3f5f6;
  --plain: #2e6f9e; --soft: #9cc3de; --strong: #c2410c; --other: #6b7a3a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181d; --ink: #e7eaee; --muted: #9aa5b1; --line: #2b323a; --wash: #1c2228;
    --plain: #74b3dd; --soft: #4f86ab; --strong: #ff9666; --other: #b4c46c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
.kind { margin: 0; color: var(--muted); font-size: 0.85rem; letter-spacing: 0.04em; }
h1 {
  margin: 0.25rem 0 0.75rem; font-size: 1.75rem; line-height: 1.25; font-weight: 650;
  text-wrap: balance;
}
h2 { margin: 0 0 0.5rem; font-size: 1.15rem; font-weight: 650; }
section { margin-top: 2.75rem; }
p { margin: 0.5rem 0; max-width: 46rem; }
a { color: var(--plain); text-decoration-thickness: 0.06em; text-underline-offset: 0.15em; }
.note, .more, figcaption, footer { color: var(--muted); font-size: 0.9rem; }
.facts { display: flex; flex-wrap: wrap; gap: 0.5rem 2.25rem; margin: 1.25rem 0 0; }
.facts div { display: flex; flex-direction: column-reverse; }
.facts dt { color: var(--muted); font-size: 0.85rem; }
.facts dd { margin: 0; font-size: 1.35rem; font-weight: 600; line-height: 1.3; }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 2px solid var(--plain); outline-offset: 3px; }
figure { margin: 1rem 0 0; }
figcaption { max-width: 46rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
caption { text-align: left; color: var(--muted); padding-bottom: 0.35rem; }
th, td {
  text-align: left; vertical-align: top; padding: 0.4rem 1rem 0.4rem 0;
  border-top: 1px solid var(--line);
}
thead th { border-top: 0; color: var(--muted); font-weight: 500; }
tbody th { font-weight: 600; white-space: nowrap; }
tr:target { background: var(--wash); }
code {
  font: 0.92em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  overflow-wrap: anywhere;
}
pre { margin: 0; white-space: pre-wrap; }
td > code, td > pre { display: block; min-width: 16rem; }
ul { padding-left: 1.2rem; margin: 0.5rem 0; }
svg { display: block; }
svg text { fill: var(--muted); font-size: 12px; }
svg text.value { fill: var(--ink); }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .axis { stroke: var(--muted); stroke-width: 1; }
svg .soft { fill: var(--soft); }
svg .plain { fill: var(--plain); }
svg .strong { fill: var(--strong); }
svg .other { fill: var(--other); }
svg .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .curve.soft { stroke: var(--soft); }
svg .curve.plain { stroke: var(--plain); }
svg .curve.strong { stroke: var(--strong); }
svg .curve.other { stroke: var(--other); }
footer { margin-top: 3rem; border-top: 1px solid var(--line); }
@media print {
  :root {
    color-scheme: light;
    --paper: #fff; --ink: #000; --muted: #444; --line: #ccc; --wash: #fff;
    --plain: #2e6f9e; --soft: #9cc3de; --strong: #c2410c; --other: #6b7a3a;
  }
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; }
  svg { max-width: 100%; height: auto; }
  a { color: inherit; text-decoration: none; }
  figure, tr, h2 { break-inside: avoid; }
  h2, caption { break-after: avoid; }
}
"""


# Page -------------------------------------------------------------------------------------------


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
