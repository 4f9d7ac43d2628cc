"""One report of a result: what it says, in whatever form it is printed.

A report has a headline, an introduction and sections; both are made of blocks: paragraphs, lists,
facts, tables and figures. `text` writes it for a terminal, `page` as HTML, and its `fields` are the
JSON object, whose names are a contract. A clause is written once ("labels without noise"): the text
has it as a line, the page as a sentence. What a page has room for and a terminal has not, or the
other way round, says so by `where`; a block without content is left out, with its section if
nothing else is in it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, overload

from casemate.report.plots.plot import Markup

T = TypeVar("T")
Row_co = TypeVar("Row_co", covariant=True)


class Where(Enum):
    """In which forms something is shown; JSON has its own fields."""

    BOTH = "both"
    TEXT = "text"
    PAGE = "page"


@dataclass(frozen=True)
class Link:
    """Words that lead to an anchor of the same page."""

    words: str
    anchor: str


@dataclass(frozen=True)
class Code:
    """SQL or arithmetic; `lines` keeps the ends of its lines."""

    content: "Prose"
    lines: bool = False


Prose = str | int | Link | Code | tuple["Prose", ...]
"""What stands in a paragraph or a cell; a tuple is its parts, one after the other."""


def words_of(prose: Prose) -> str:
    """Prose as plain text."""
    match prose:
        case Link():
            return prose.words
        case Code():
            return words_of(prose.content)
        case tuple():
            return "".join(map(words_of, prose))
    return str(prose)


@dataclass(frozen=True)
class Paragraph:
    """A clause: a line of text, a sentence on a page; a `remark` stands back there."""

    content: Prose
    remark: bool = False
    where: Where = Where.BOTH


@dataclass(frozen=True)
class Listing:
    """Some clauses, each with a mark before it in the text."""

    clauses: Sequence[Prose]
    mark: str = "  "
    rows_in_text: int | None = None
    where: Where = Where.BOTH


@dataclass(frozen=True)
class Facts:
    """A few numbers that say how large the matter is."""

    pairs: Iterable[tuple[str, Prose]]
    where: Where = Where.PAGE


class LazyRows(Sequence[Row_co], Generic[T, Row_co]):
    """The rows of some items, each made when it is shown: there may be very many."""

    def __init__(self, items: Sequence[T], row: Callable[[T], Row_co]) -> None:
        self._items, self._row = items, row

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> Row_co: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Row_co]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self._row(item) for item in self._items[place]]
        return self._row(self._items[place])


ROWS_IN_TEXT = 20
"""The most rows of a table in the text; the page has more, and the JSON all of them."""


@dataclass(frozen=True)
class TableBlock:
    """Rows under a header; on a page with a caption, and the first cell of a row is its name.

    In the text a row is a `line` made of its cells, or stands in columns, of which those that
    are `numeric` are aligned to the right. Links lead to the rows by their `anchors`.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Prose]]
    line: Callable[..., str] | None = None
    numeric: Sequence[int] = ()
    rows_in_text: int | None = ROWS_IN_TEXT
    anchors: Sequence[str] = ()
    even_empty: bool = False
    where: Where = Where.BOTH


@dataclass(frozen=True)
class Drawing:
    """A drawing and its caption."""

    svg: Markup
    caption: Prose


@dataclass(frozen=True)
class Figure:
    """What only pages draw, when they are made; None where there is nothing to draw."""

    draw: Callable[[], Drawing | None]
    where: Where = Where.PAGE


Block = Paragraph | Listing | Facts | TableBlock | Figure


@dataclass(frozen=True)
class Section:
    """Blocks under a heading; on a page `#name` leads there, in the text `label` heads them.

    Without a label the text has the heading; with an empty one the blocks alone.
    """

    name: str
    heading: str
    blocks: Sequence[Block]
    label: str | None = None
    where: Where = Where.BOTH


@dataclass(frozen=True)
class Report:
    """A result to be printed: `command` made it, the headline is the result in one clause."""

    command: str
    headline: Prose
    fields: Callable[[], Mapping[str, Any]]
    introduction: Sequence[Block] = ()
    sections: Sequence[Section] = ()
    headline_where: Where = Where.BOTH


def as_json(report: Report) -> dict[str, Any]:
    """A report as the object that `--format json` prints."""
    fields = report.fields().items()
    return {name: list(value) if isinstance(value, LazyRows) else value for name, value in fields}
