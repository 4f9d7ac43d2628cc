"""Markup that is escaped by construction: text becomes part of a page only through `tag`.

Everything written is well-formed XML as well as HTML, so a page can be checked by any parser.
"""

import html
import re
from collections.abc import Iterable

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
