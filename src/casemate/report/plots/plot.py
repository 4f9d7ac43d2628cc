"""Plots as inline SVG: scales, axes, bars, points, curves, matrices of marks; nothing about verbs.

A scale says where a value stands between the two ends of an axis, and which values to name there.
Colours and fonts are classes of the page's style sheet, so a plot follows the reader's light or
dark setting and prints in black. Each drawing has a title and a description for a screen reader,
and tones differ in size or shape as well as in colour.
"""

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

# Markup -----------------------------------------------------------------------------------------
#
# Markup that is escaped by construction: text becomes part of a page only through `tag`.
#
# Everything written is well-formed XML as well as HTML, so a page can be checked by any parser.

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
WITHOUT_CONTENT = frozenset({"br", "meta"})  # HTML does not let these be closed


class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


def escape(content: object) -> Markup:
    """Anything as markup: text is escaped, markup stays as it is.

    >>> escape('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    if isinstance(content, Markup):
        return content
    return Markup(html.escape(NOT_IN_XML.sub("\ufffd", str(content))))


def join(parts: Iterable[object], separator: object = "") -> Markup:
    """Parts one after the other, each escaped unless it is markup."""
    return Markup(escape(separator).join(escape(part) for part in parts))


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """An element; an attribute that is None is left out, one that is a float is a coordinate.

    >>> tag("a", "1 < 2", href="#top", class_="mark", aria_hidden=None)
    '<a href="#top" class="mark">1 &lt; 2</a>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_coordinate(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in WITHOUT_CONTENT:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{join(content)}</{name}>")


def _coordinate(value: object) -> object:
    """A float with two decimals: a page has no finer ones."""
    return f"{round(value, 2) + 0:.10g}" if isinstance(value, float) else value


# Plots ------------------------------------------------------------------------------------------

TICK_STEPS = (1, 2, 5, 10)
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Tick:
    """A value that is named on an axis."""

    value: float
    label: str


class Scale(Protocol):
    """Maps values to the part of an axis that lies before them, from 0 to 1."""

    def share(self, value: float) -> float:
        """Where a value stands between the ends."""

    def ticks(self) -> Sequence[Tick]:
        """The values to name."""


@dataclass(frozen=True)
class LinearScale:
    """Equal differences take equal room."""

    low: float
    high: float
    at_most: int = 5

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"a linear scale needs low < high, not {self.low} and {self.high}")

    @classmethod
    def over(cls, values: Iterable[float]) -> "LinearScale":
        """From 0 to the round number after the largest of some values.

        >>> LinearScale.over([3, 17])
        LinearScale(low=0.0, high=20.0, at_most=5)
        """
        most = max([0.0, *values]) or 1.0
        step = _step(most / 5)
        return cls(0.0, math.ceil(most / step) * step)

    def share(self, value: float) -> float:
        """Where a value stands between the ends."""
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> Sequence[Tick]:
        """Round numbers, at most so many and the two ends' worth."""
        step = _step((self.high - self.low) / self.at_most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [Tick(i * step, f"{round(i * step, 9):,.10g}") for i in range(first, last + 1)]


@dataclass(frozen=True)
class Logarithmic:
    """Equal ratios take equal room."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            raise ValueError(
                f"a logarithmic scale needs 0 < low < high, not {self.low} and {self.high}"
            )

    def share(self, value: float) -> float:
        """Where a value stands between the ends."""
        return math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> Sequence[Tick]:
        """Powers of ten, or of less where there are too few of them."""
        first = math.floor(math.log10(self.low) + 1e-9)
        last = math.ceil(math.log10(self.high) - 1e-9)
        every = max(1, math.ceil((last - first) / 6))
        powers = [(power, 1) for power in range(first, last + 1, every)]
        if last - first < 3:
            powers = [(power, step) for power in range(first, last) for step in TICK_STEPS[:-1]]
            powers.append((last, 1))
        ticks = [Tick(step * 10.0**power, _power(power, step)) for power, step in powers]
        return [tick for tick in ticks if -1e-9 <= self.share(tick.value) <= 1 + 1e-9]


@dataclass(frozen=True)
class Bands:
    """Some names in order, each with a band of the same width; a value is a name's position."""

    labels: tuple[str, ...]

    def share(self, value: float) -> float:
        """The middle of a band."""
        return (value + 0.5) / max(1, len(self.labels))

    def ticks(self) -> Sequence[Tick]:
        """Every name, in the middle of its band."""
        return [Tick(place, label) for place, label in enumerate(self.labels)]


def _step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... times a power of ten that is not below."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in TICK_STEPS if step * power >= least * (1 - 1e-9))


def _power(power: int, step: int) -> str:
    if -3 <= power <= 4:
        return f"{step * 10.0**power:,.10g}"
    times = "" if step == 1 else f"{step}·"
    return f"{times}10{str(power).translate(SUPERSCRIPT)}"


# Plots ------------------------------------------------------------------------------------------


LETTER_WIDTH = 6.7
"""The width of a small letter or digit, in units of the drawing."""


class Tone(StrEnum):
    """How much a mark stands out; the style sheet has a class for each."""

    SOFT = "soft"
    PLAIN = "plain"
    STRONG = "strong"
    OTHER = "other"


@dataclass(frozen=True)
class Margins:
    """The room around a plot's area, for its labels."""

    top: float = 36
    right: float = 12
    bottom: float = 46
    left: float = 58


@dataclass(frozen=True)
class Bar:
    """A bar at a position of a banded axis; its label stands on top of it."""

    position: float
    height: float
    label: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Plot:
    """An area with a scale along each of two sides, in which marks are drawn."""

    x: Scale
    y: Scale
    width: float = 720
    height: float = 270
    margins: Margins = Margins()

    def across(self, value: float) -> float:
        """How far from the left a value of x is drawn."""
        room = self.width - self.margins.left - self.margins.right
        return self.margins.left + room * self.x.share(value)

    def down(self, value: float) -> float:
        """How far from the top a value of y is drawn."""
        return self._bottom - (self._bottom - self.margins.top) * self.y.share(value)

    @property
    def _bottom(self) -> float:
        return self.height - self.margins.bottom

    @property
    def _right(self) -> float:
        return self.width - self.margins.right

    def axes(self, x_label: str, y_label: str) -> Markup:
        """Both axes with their names, and a gentle line across for every named value of y."""
        return tag(
            "g",
            *(self._line_across(tick) for tick in self.y.ticks()),
            *(self._name_below(tick) for tick in self.x.ticks()),
            _line(self.margins.left, self._bottom, self._right, self._bottom, "axis"),
            _text(x_label, (self.margins.left + self._right) / 2, self.height - 6, "middle"),
            _text(y_label, self.margins.left, 11, "start"),
            class_="axes",
        )

    def _line_across(self, tick: Tick) -> Markup:
        y = self.down(tick.value)
        line = _line(self.margins.left, y, self._right, y, "grid")
        return join([line, _text(tick.label, self.margins.left - 8, y + 4, "end")])

    def _name_below(self, tick: Tick) -> Markup:
        return _text(tick.label, self.across(tick.value), self._bottom + 17, "middle")

    def bars(self, bars: Sequence[Bar], fill: float = 0.82) -> Markup:
        """Bars from the lower axis, each as wide as this part of its band."""
        width = fill * (self.across(1) - self.across(0))
        return tag("g", *(self._bar(bar, width) for bar in bars), class_="bars")

    def _bar(self, bar: Bar, width: float) -> Markup:
        middle = self.across(bar.position)
        # Whatever is not nothing can be seen.
        top = min(self.down(bar.height), self._bottom - (1.5 if bar.height else 0))
        return tag(
            "g",
            tag(
                "rect",
                x=middle - width / 2,
                y=top,
                width=width,
                height=self._bottom - top,
                class_=bar.tone,
            ),
            _text(bar.label, middle, top - 5, "middle", "value"),
        )

    def points(self, points: Iterable[tuple[float, float]], tone: Tone = Tone.PLAIN) -> Markup:
        """A dot for each pair of values."""
        dots = [_dot(self.across(x), self.down(y), 3, tone) for x, y in points]
        return tag("g", join(dots), class_="points")

    def curve(self, points: Iterable[tuple[float, float]], tone: Tone = Tone.PLAIN) -> Markup:
        """A line through pairs of values, in their order."""
        places = " ".join(f"{self.across(x):.1f},{self.down(y):.1f}" for x, y in points)
        return tag("polyline", points=places, class_=f"curve {tone}")

    def draw(self, name: str, title: str, description: str, *marks: Markup) -> Markup:
        """The plot with its marks; `name` is unique on its page."""
        return svg(name, title, description, self.width, self.height, *marks)


@dataclass(frozen=True)
class Mark:
    """A mark in a matrix, with what it says when it is pointed at."""

    row: int
    column: int
    tone: Tone
    says: str


@dataclass(frozen=True)
class Matrix:
    """Rows and columns with names, and room for a mark where two of them meet."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cell: float = 18
    letters: int = 28

    @property
    def _left(self) -> float:
        return 14 + LETTER_WIDTH * max(
            (min(len(name), self.letters) for name in self.rows), default=0
        )

    @property
    def _top(self) -> float:
        return 14 + LETTER_WIDTH * max((len(name) for name in self.columns), default=0)

    def draw(self, name: str, title: str, description: str, marks: Iterable[Mark]) -> Markup:
        """The matrix with its marks; `name` is unique on its page."""
        right = self._left + self.cell * len(self.columns)
        bottom = self._top + self.cell * len(self.rows)
        lines = [
            *(_line(self._left, y, right, y, "grid") for y in self._middles(self._top, self.rows)),
            *(
                _line(x, self._top, x, bottom, "grid")
                for x in self._middles(self._left, self.columns)
            ),
        ]
        content = [*lines, *self._names(), *(self._mark(mark) for mark in marks)]
        return svg(name, title, description, right + 8, bottom + 4, *content)

    def _middles(self, start: float, names: Sequence[str]) -> list[float]:
        return [start + self.cell * (place + 0.5) for place in range(len(names))]

    def _names(self) -> list[Markup]:
        rows = zip(self.rows, self._middles(self._top, self.rows), strict=True)
        columns = zip(self.columns, self._middles(self._left, self.columns), strict=True)
        return [
            *(_text(_short(name, self.letters), self._left - 8, y + 4, "end") for name, y in rows),
            *(_upright(name, x + 4, self._top - 6) for name, x in columns),
        ]

    def _mark(self, mark: Mark) -> Markup:
        x = self._middles(self._left, self.columns)[mark.column]
        y = self._middles(self._top, self.rows)[mark.row]
        strong = mark.tone is Tone.STRONG
        return _dot(x, y, 6 if strong else 4, mark.tone, mark.says)


def svg(
    name: str, title: str, description: str, width: float, height: float, *content: Markup
) -> Markup:
    """A drawing that a screen reader can read out; it shrinks with the page and never grows."""
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", description, id=f"{name}-description"),
        *content,
        role="img",
        aria_labelledby=f"{name}-title {name}-description",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=round(width),
        height=round(height),
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def _text(content: str, x: float, y: float, anchor: str, kind: str | None = None) -> Markup:
    return tag("text", content, x=x, y=y, text_anchor=anchor, class_=kind)


def _upright(content: str, x: float, y: float) -> Markup:
    """Text that reads upwards, so that many columns find room."""
    rotation = f"translate({x:.1f} {y:.1f}) rotate(-90)"
    return tag("text", content, transform=rotation, text_anchor="start")


def _dot(x: float, y: float, radius: float, tone: Tone, says: str = "") -> Markup:
    title = [tag("title", says)] if says else []
    return tag("circle", *title, cx=x, cy=y, r=float(radius), class_=tone)


def _short(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
