"""Which people could live in a small block, from published statistics alone.

Source     Garfinkel, Abowd and Martindale, "Understanding Database Reconstruction Attacks on
           Public Data" (2018); the engine is `casemate.audit.block.model`.
Guarantee  `certain` lists people who are in every solution, each proved; nobody else is certain
           unless listed as undecided.

A CSV of what was published about a small block of people, as statistics to solve.

One row is one line of a published table. The columns before `count` say whom it is about
(`age`, and any attribute such as sex; blank for everybody), `count`, `median` and `mean` what was
published; a row with a blank `count` was suppressed, and only declares the values it names.

The solutions of a block as text for the terminal, as the object `casemate.block/1`, as a page.

Everything in it follows from published statistics alone: no protected table was opened, so there
is nothing to hide from whoever could publish or read them.
"""

import csv
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from casemate.audit.block.model import (
    Block,
    Certain,
    PeopleCell,
    Person,
    Solutions,
    Statistic,
    certain,
    solve_block,
)
from casemate.audit.time_limit import SearchLimit
from casemate.errors import Misconfigured
from casemate.report import Markup, counted, joined, page, paragraph, section, table

NAME, AGE, COUNT = "statistic", "age", "count"
PUBLISHED = ("median", "mean")
AGES = (0, 125)
PEOPLE_AT_MOST = 100
SPAN = re.compile(r"(?P<low>\d{1,9})(?:\s*(?:(?P<open>\+)|[-–]\s*(?P<high>\d{1,9})))?")
BELOW = re.compile(r"<\s*(?P<end>\d{1,9})")
NUMBER = re.compile(r"\d{1,9}(?:\.(?P<decimals>\d{1,9}))?")  # small enough for any solver
Ends = tuple[int | None, int | None]


@dataclass(frozen=True)
class PublishedBlock:
    """A block to solve, and what the values of its people are called."""

    block: Block
    aged: bool

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a person's values; without an age where nothing is about ages."""
        return (AGE, *self.block.attributes) if self.aged else tuple(self.block.attributes)


@dataclass(frozen=True)
class _BlockRow:
    """One row of the file: where it is, whom it is about, and what was published."""

    where: str
    filters: dict[str, tuple[str, ...]]
    age: Ends
    count: Ends
    median: str
    mean: str

    @property
    def exactly(self) -> int | None:
        """The count, where one number was published."""
        return self.count[0] if self.count[0] == self.count[1] else None


def read_block(path: Path, ages: tuple[int, int] = AGES) -> PublishedBlock:
    """The statistics in a file about people whose ages are in a range."""
    lines = _lines(path)
    header = _header(path, lines[0][1] if lines else [])
    rows = [_row(f"{path}, line {line}", header, cells) for line, cells in lines[1:]]
    aged = any(row.age != (None, None) or row.median or row.mean for row in rows)
    unit = Fraction(1, 10 ** max([0, *(_decimals(row.mean) for row in rows)]))
    low, high = ages if aged else (0, 0)
    statistics = tuple(_statistic(row, unit) for row in rows if row.count != (None, None))
    attributes = _attributes(path, header, rows)
    return PublishedBlock(Block(_size(path, rows), low, high, attributes, statistics), aged)


def read_ages(text: str) -> tuple[int, int]:
    """LO:HI, the least and the greatest age that is possible.

    >>> read_ages("0:125")
    (0, 125)
    """
    low, _, high = (part.strip() for part in text.partition(":"))
    if not (low.isdecimal() and high.isdecimal() and len(low + high) < 9):
        raise Misconfigured(f"--ages {text} is not LO:HI; write for example --ages 0:125")
    if int(low) > int(high):
        raise Misconfigured(f"--ages {text} is empty: the first age must not be above the second")
    return int(low), int(high)


# The file as cells ----------------------------------------------------------------------------


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """The lines that are not blank, each with its number."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            found = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise Misconfigured(f"{path} cannot be read; expected a CSV with a column count") from None
    return [(line, cells) for line, cells in found if any(cells)]


def _header(path: Path, names: Sequence[str]) -> list[str]:
    """The names of the columns, checked; those casemate knows in small letters."""
    known = (NAME, AGE, COUNT, *PUBLISHED)
    header = [name.lower() if name.lower() in known else name for name in names]
    if COUNT not in header:
        raise Misconfigured(f"{path} has no column count; its first line must name the columns")
    if len(set(header)) < len(header) or "" in header:
        raise Misconfigured(f"{path} must give each column a name of its own in its first line")
    place = header.index(COUNT)
    for name in header[place + 1 :]:
        if name not in PUBLISHED:
            raise Misconfigured(
                f"{path} has an unknown column {name} after count; expected median or mean there, "
                f"and whom a row is about before count"
            )
    early = next((name for name in PUBLISHED if name in header[:place]), None)
    if early is not None:
        raise Misconfigured(f"{path} has the column {early} before count; put it after count")
    return header


def _row(where: str, header: Sequence[str], cells: Sequence[str]) -> _BlockRow:
    if len(cells) != len(header):
        raise Misconfigured(f"{where} has {len(cells)} cells; expected {len(header)}")
    named = dict(zip(header, cells, strict=True))
    row = _BlockRow(
        where,
        {name: values for name in _filters(header) if (values := _alternatives(named[name]))},
        _span(named.get(AGE, ""), where, "age", "40, 18-64, 18+ or <18"),
        _span(named[COUNT], where, "count", "7, or 0-2 or <3 for one that was withheld"),
        named.get("median", ""),
        named.get("mean", ""),
    )
    if (row.median or row.mean) and not row.exactly:
        raise Misconfigured(f"{where} has a median or a mean without a count of at least 1")
    for name in PUBLISHED:
        if not NUMBER.fullmatch(named.get(name) or "0"):
            raise Misconfigured(f"{where}: the {name} is not a number; write for example 33.5")
    return row


def _filters(header: Sequence[str]) -> list[str]:
    """The columns that are attributes: any before `count` that has no other meaning."""
    return [name for name in header[: header.index(COUNT)] if name not in (NAME, AGE)]


def _alternatives(text: str) -> tuple[str, ...]:
    """The values a filter allows: `B`, or `B | W` for either."""
    return tuple(dict.fromkeys(part for each in text.split("|") if (part := each.strip())))


def _span(text: str, where: str, what: str, examples: str) -> Ends:
    """The ends of a range of whole numbers, both None where nothing is written."""
    if not text:
        return None, None
    below, span = BELOW.fullmatch(text), SPAN.fullmatch(text)
    if below is None and span is None:
        raise Misconfigured(f"{where}: the {what} is not a number; write for example {examples}")
    low = int(span["low"]) if span else 0
    high = int(below["end"]) - 1 if below else int(span["high"] or low) if span else low
    if high < low:
        raise Misconfigured(f"{where}: the {what} ends before it begins; write the lesser first")
    return low, None if span and span["open"] else high


def _decimals(text: str) -> int:
    found = NUMBER.fullmatch(text)
    return len(found["decimals"] or "") if found else 0


# The file as statistics -----------------------------------------------------------------------


def _statistic(row: _BlockRow, unit: Fraction) -> Statistic:
    """A row as a statistic; a mean is within half a unit of its column's last decimal."""
    low, high = row.count
    exactly = row.exactly
    return Statistic(
        PeopleCell(row.filters, *row.age),
        (low or 0, PEOPLE_AT_MOST if high is None else high) if exactly is None else exactly,
        Fraction(row.median) if row.median else None,
        Fraction(row.mean) if row.mean else None,
        unit / 2,
    )


def _size(path: Path, rows: Sequence[_BlockRow]) -> int:
    """How many people there are: the count of a row that is about everybody."""
    everybody = [row for row in rows if not row.filters and row.age == (None, None)]
    sizes = [row.exactly for row in everybody if row.exactly is not None]
    if not sizes or not sizes[0]:
        raise Misconfigured(
            f"{path} does not say how many people there are; add a row with only a count"
        )
    if sizes[0] > PEOPLE_AT_MOST:
        raise Misconfigured(
            f"{path} is about {sizes[0]} people; a block of at most {PEOPLE_AT_MOST} can be solved"
        )
    return sizes[0]


def _attributes(
    path: Path, header: Sequence[str], rows: Sequence[_BlockRow]
) -> dict[str, tuple[str, ...]]:
    """The values of every attribute: all that the file names."""
    found = {}
    for name in _filters(header):
        values = dict.fromkeys(value for row in rows for value in row.filters.get(name, ()))
        if len(values) < 2:
            raise Misconfigured(
                f"{path}: the column {name} names fewer than two values; give each value that is "
                f"possible a row, with a blank count where nothing was published"
            )
        found[name] = tuple(values)
    return found


# Block ------------------------------------------------------------------------------------------


LISTED = 1000
PATIENCE = 60.0


@dataclass(frozen=True)
class BlockAudited:
    """What the statistics of a block leave open.

    `tables` are solutions, all there are if `complete`; a person's values are named by `fields`.
    Whoever is `undecided` is in all tables found, and may be in all there are.
    """

    people: int
    fields: tuple[str, ...]
    tables: tuple[tuple[Person, ...], ...]
    complete: bool
    certain: tuple[Person, ...]
    undecided: tuple[Person, ...]
    seconds: float


def audit_block(
    path: Path,
    ages: tuple[int, int] = AGES,
    most: int = LISTED,
    seconds: float = PATIENCE,
) -> BlockAudited:
    """Enumerate up to `most` solutions of a file, and say who is in every one."""
    start, begun = time.process_time(), time.monotonic()
    published = read_block(path, ages)
    found = solve_block(published.block, SearchLimit(seconds), most)
    left = max(seconds - (time.monotonic() - begun), 1e-3)
    shared = _certain(published, found, SearchLimit(left))
    return BlockAudited(
        published.block.size,
        published.fields,
        tuple(_people(published, table) for table in found.tables),
        found.complete,
        _people(published, shared.people),
        _people(published, shared.undecided),
        time.process_time() - start,
    )


def _certain(published: PublishedBlock, found: Solutions, limit: SearchLimit) -> Certain:
    """Who is in every solution: seen from all of them, or decided without them."""
    if found.complete:
        return Certain(found.common, ())
    return certain(published.block, limit, found.common if found.tables else None)


def _people(published: PublishedBlock, people: tuple[Person, ...]) -> tuple[Person, ...]:
    return people if published.aged else tuple(person[1:] for person in people)


# Report -----------------------------------------------------------------------------------------


SCHEMA = "casemate.block/1"
SHOWN_IN_TEXT = 20


def as_text(found: BlockAudited) -> str:
    """The solutions as lines to read."""
    lines = [f"{found.people} people, {_number(found)}", *_meaning(found)]
    lines += _listed(f"certain, in every solution: {len(found.certain)}", found.certain, found)
    if found.undecided:
        told = f"not decided within the limit: {len(found.undecided)}"
        lines += _listed(told, found.undecided, found)
    if found.tables:
        lines += ["", f"solutions, each person as {' '.join(found.fields)}:"]
    for number, people in enumerate(found.tables[:SHOWN_IN_TEXT], start=1):
        lines.append(f"  {number}. " + "; ".join(_person(each) for each in people))
    if len(found.tables) > SHOWN_IN_TEXT:
        lines.append(f"  and {len(found.tables) - SHOWN_IN_TEXT} more, all of them in the JSON")
    return "\n".join(lines)


def _number(found: BlockAudited) -> str:
    solutions = counted(len(found.tables), "solution")
    return solutions if found.complete else f"at least {solutions}: not all were enumerated"


def _meaning(found: BlockAudited) -> list[str]:
    if not found.tables and found.complete:
        return ["nobody could live there: the statistics contradict each other"]
    if not found.tables:
        return ["no solution was found within the limit, and none was ruled out"]
    if len(found.certain) == found.people:
        return ["the statistics give away everybody"]
    return []


def _listed(told: str, people: Sequence[Person], found: BlockAudited) -> list[str]:
    described = [
        ", ".join(f"{name} {value}" for name, value in zip(found.fields, person, strict=True))
        for person in people
    ]
    return ["", told, *(f"  {each}" for each in described)]


def _person(person: Person) -> str:
    return " ".join(str(value) for value in person)


def as_json(found: BlockAudited) -> dict[str, Any]:
    """The solutions as the object that `--format json` prints."""
    return {
        "schema": SCHEMA,
        "solutions": len(found.tables),
        "complete": found.complete,
        "people": found.people,
        "certain": _objects(found, found.certain),
        "undecided": _objects(found, found.undecided),
        "tables": [_objects(found, table) for table in found.tables],
        "seconds": round(found.seconds, 3),
    }


def _objects(found: BlockAudited, people: Sequence[Person]) -> list[dict[str, Any]]:
    return [dict(zip(found.fields, person, strict=True)) for person in people]


def as_html(found: BlockAudited) -> str:
    """The solutions as a self-contained page."""
    told = [f"{sentence[:1].upper()}{sentence[1:]}." for sentence in _meaning(found)]
    solutions = [
        (f"{number}", *(_person(each) for each in people))
        for number, people in enumerate(found.tables, start=1)
    ]
    header = ("solution", *(f"person {place + 1}" for place in range(found.people)))
    caption = f"Each person as {', '.join(found.fields)}"
    sections = [
        _people_section("certain", "In every solution", found.certain, found),
        _people_section("undecided", "Not decided within the limit", found.undecided, found),
        section("solutions", "Solutions", table(caption, header, solutions)) if solutions else "",
    ]
    headline = f"{counted(found.people, 'inhabitant')}, {_number(found)}"
    return page(
        "casemate audit block", headline, joined(paragraph(each) for each in told), sections
    )


def _people_section(
    name: str, heading: str, people: Sequence[Person], found: BlockAudited
) -> Markup:
    if not people:
        return Markup()
    rows = [(f"{place}", *person) for place, person in enumerate(people, start=1)]
    caption = f"{len(people)} of {counted(found.people, 'inhabitant')}"
    return section(name, heading, table(caption, ("person", *found.fields), rows))
