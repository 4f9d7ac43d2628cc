"""Why a column of numbers is text: what its other cells are, and how to declare them.

A column whose cells are numbers but for some is text, and then no sum of it can be read. The others
are told by their kind: markers of missing values, or numbers in another format. Marks and markers
are conventions and are named; any other text may be private, and is only counted. What is found is
for whoever holds the table, and not for those who ask about it.
"""

import shlex
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from casemate.table.schema import NUMBERS, CellFormat, ColumnType
from casemate.table.sources.formats import PLAIN, matches, plain_number, trim
from casemate.table.sources.source import Frame
from casemate.table.toml import toml_value

KNOWN_MARKERS = frozenset(
    (
        *("", "n", "na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "nil", "missing"),
        *("unknown", "unk", "undefined", "?", "-", "--", ".", "..", "*"),
    )
)
"""What commonly stands for a missing value, in lower case."""

LONGEST_MARKER, MOST_OTHER_MARKERS, LEAST_REPEATED = 8, 3, 5
"""Another text is a marker if it is so short, one of so few, and repeated so often."""

CURRENCY_WORDS = ("USD", "EUR", "GBP", "CHF", "JPY", "CAD", "AUD", "SEK", "NOK", "DKK", "kr", "zł")
MARKS = ((None, "."), (",", "."), (None, ","), (".", ","), (" ", "."), (" ", ","), ("'", "."))
"""Marks of thousands and of decimals, the likelier first."""

NUMBER = f"{PLAIN}(?:[eE][+-]?[0-9]+)?"
SAMPLED_TEXTS = 500

Read = Callable[[str], Frame]
"""Runs one SELECT."""


@dataclass(frozen=True)
class TextNumbers:
    """A column of numbers that is text, and the format in which more of its cells are numbers."""

    name: str
    cells: int
    not_numbers: int  # as the column is read now
    unexplained: int  # those of them that no declaration makes a number
    declared: CellFormat
    form: CellFormat

    @property
    def sentence(self) -> str:
        """Why the column is text, and what to do."""
        keys = [key for key in ("currency", "thousands", "decimal") if self._changed(key)]
        markers = self.form.markers[len(self.declared.markers) :]
        kinds = [f"{key} {toml_value(getattr(self.form, key))}" for key in keys]
        kinds += [f"marker {toml_value(each)}" for each in markers]
        said = [*keys, *(["missing_markers"] if markers else [])]
        lines = [line for line in format_lines(self.form) if line.partition(" ")[0] in said]
        options = [_option(key, getattr(self.form, key)) for key in keys]
        options += [_option("missing-marker", each) for each in markers]
        todo = [f"declare {', '.join(lines)} in the policy or say {' '.join(options)}"] * bool(said)
        if self.unexplained:
            cells = "cell that holds" if self.unexplained == 1 else "cells that hold"
            todo.append(f"correct the {self.unexplained:,} {cells} other text")
        shown = f" ({', '.join(kinds)})" if kinds else ""
        are = "is no number" if self.not_numbers == 1 else "are not numbers"
        return (
            f"{self.name} is text because {self.not_numbers:,} of {self.cells:,} cells {are}"
            f"{shown}; {', and '.join(todo)}"
        )

    def _changed(self, key: str) -> bool:
        return bool(getattr(self.form, key) != getattr(self.declared, key))


def _option(name: str, value: str) -> str:
    """An option as a shell takes it, with a value that may look like another option."""
    return f"--{name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"


def format_lines(form: CellFormat) -> list[str]:
    """A format as the lines of a policy."""
    plain, lines = CellFormat(), []
    if form.markers:
        lines.append(f"missing_markers = [{', '.join(map(toml_value, form.markers))}]")
    for key in ("thousands", "decimal", "currency"):
        if getattr(form, key) != getattr(plain, key):
            lines.append(f"{key} = {toml_value(getattr(form, key))}")
    return lines


@dataclass(frozen=True)
class TextColumn:
    """A column of text: its name, and its text, NULL where it is a marker that is declared."""

    read: Read
    relation: str
    name: str
    cell: str

    def numbers(self, declared: CellFormat) -> TextNumbers | None:
        """What keeps the column from being one of numbers, if most of its cells are."""
        currency = _currency(self._texts(declared))
        forms = [
            replace(declared, thousands=thousands, decimal=decimal, currency=each)
            for each in dict.fromkeys((declared.currency, currency))
            for thousands, decimal in MARKS
        ]
        cells, now, *counts = self._counts([declared, *forms])
        form = declared if now >= max(counts) else forms[counts.index(max(counts))]
        numbers = max(now, *counts)
        markers = _markers(self._texts(form), numbers)
        unexplained = cells - numbers - sum(markers.values())
        if not numbers or unexplained >= numbers or now == cells:
            return None
        found = replace(form, markers=(*declared.markers, *markers))
        return TextNumbers(self.name, cells, cells - now, unexplained, declared, found)

    def misfit(
        self,
        wanted: ColumnType,
        declared: CellFormat,
        counted: str = "some of its cells are something else",
        fitting: ColumnType | None = None,
    ) -> str:
        """What is said where the column is to be read as a type, and cannot.

        `fitting` is a type that all of its cells are of.
        """
        remedy = f'declare type = "{fitting or ColumnType.TEXT}", which all of them are, or none'
        found = self.numbers(declared) if wanted in NUMBERS else None
        remedy = remedy if found is None else found.sentence
        return f"the column {self.name!r} is to be read as {wanted}, and {counted}; {remedy}"

    def _counts(self, forms: Sequence[CellFormat]) -> list[int]:
        """How many cells there are, and how many are numbers in each format."""
        wanted = [f"count({self.cell}) AS n"]
        wanted += (
            f"count(*) FILTER (WHERE {self._is_number(form)}) AS n{place}"
            for place, form in enumerate(forms)
        )
        found = self.read(f"SELECT {', '.join(wanted)} FROM {self.relation} AS t")
        return [int(series.values[0]) for series in found.values()]

    def _texts(self, form: CellFormat) -> dict[str, int]:
        """The most frequent cells that are no numbers in a format, and how often each is there."""
        text = trim(self.cell)
        found = self.read(
            f"SELECT {text} AS x, count(*) AS n FROM {self.relation} AS t "
            f"WHERE NOT ({self._is_number(form)}) GROUP BY {text} ORDER BY n DESC, x "
            f"LIMIT {SAMPLED_TEXTS}"
        )
        return dict(zip(found["x"].values, map(int, found["n"].values), strict=True))

    def _is_number(self, form: CellFormat) -> str:
        return matches(trim(plain_number(self.cell, form)), NUMBER)


def _currency(texts: dict[str, int]) -> str | None:
    """The currency that most cells show."""
    found: Counter[str] = Counter()
    for text, count in texts.items():
        signs = {letter for letter in text if unicodedata.category(letter) == "Sc"}
        words = {word for word in CURRENCY_WORDS if text.startswith(word) or text.endswith(word)}
        for each in (signs or words) if any(map(str.isdigit, text)) else ():
            found[each] += count
    return max(found, key=lambda each: (found[each], each)) if found else None


def _markers(texts: dict[str, int], numbers: int) -> dict[str, int]:
    """The texts that stand for missing values, and how often each is there."""
    known = {text: count for text, count in texts.items() if text.lower() in KNOWN_MARKERS}
    other = {
        text: count
        for text, count in texts.items()
        if text not in known
        and count >= LEAST_REPEATED
        and 0 < len(text) <= LONGEST_MARKER
        and text.isprintable()
        and not any(map(str.isdigit, text))
    }
    few = len(other) <= MOST_OTHER_MARKERS and sum(other.values()) <= numbers
    return known | (other if few else {})
