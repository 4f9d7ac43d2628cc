"""The audit of a small block, and its report as text, JSON and a page.

Everything follows from published statistics: no protected table was opened, so there is nothing to
hide from whoever could publish or read them.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casemate.audit.small_block.model import (
    DEFAULT_AGES,
    Certain,
    Person,
    PublishedBlock,
    Solutions,
    certain,
    read_block,
    solve_block,
)
from casemate.audit.time_limit import SearchLimit
from casemate.report import Block, Paragraph, Report, Section, TableBlock, count_of

SCHEMA = "casemate.block/1"
MAX_SOLUTIONS = 1000
SEARCH_SECONDS = 60.0


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
    ages: tuple[int, int] = DEFAULT_AGES,
    most: int = MAX_SOLUTIONS,
    seconds: float = SEARCH_SECONDS,
) -> BlockAudited:
    """Enumerate up to `most` solutions of a file, and say who is in every one."""
    start, begun = time.process_time(), time.monotonic()
    published = read_block(path, ages)
    found = solve_block(published.block, SearchLimit(seconds), most)
    remaining = max(seconds - (time.monotonic() - begun), 1e-3)
    shared = _in_every_solution(published, found, SearchLimit(remaining))
    return BlockAudited(
        published.block.size,
        published.fields,
        tuple(_people(published, table) for table in found.tables),
        found.complete,
        _people(published, shared.people),
        _people(published, shared.undecided),
        time.process_time() - start,
    )


def _in_every_solution(published: PublishedBlock, found: Solutions, limit: SearchLimit) -> Certain:
    """Who is in every solution: seen from all of them, or decided without them."""
    if found.complete:
        return Certain(found.common, ())
    return certain(published.block, limit, found.common if found.tables else None)


def _people(published: PublishedBlock, people: tuple[Person, ...]) -> tuple[Person, ...]:
    return people if published.aged else tuple(person[1:] for person in people)


# Its report --------------------------------------------------------------------------------------


def block_report(found: BlockAudited) -> Report:
    """Who lives there in every solution, and the solutions."""
    certain = _people_blocks("certain, in every solution", found.certain, found)
    undecided = _people_blocks("not decided within the limit", found.undecided, found)
    solutions = [
        (f"{place}", *(" ".join(map(str, person)) for person in people))
        for place, people in enumerate(found.tables, start=1)
    ]
    header = ("solution", *(f"person {place + 1}" for place in range(found.people)))
    caption = f"Each person as {', '.join(found.fields)}"
    line = ("{}. " + "; ".join(["{}"] * found.people)).format
    return Report(
        "casemate audit block",
        f"{found.people} people, {_number_of_solutions(found)}",
        lambda: _fields(found),
        _meaning(found),
        [
            Section("certain", "In every solution", certain, label=""),
            Section(
                "undecided",
                "Not decided within the limit",
                undecided if found.undecided else [],
                label="",
            ),
            Section(
                "solutions",
                "Solutions",
                [TableBlock(caption, header, solutions, line=line)],
                label=f"solutions, each person as {' '.join(found.fields)}:",
            ),
        ],
    )


def _number_of_solutions(found: BlockAudited) -> str:
    solutions = count_of(len(found.tables), "solution")
    return solutions if found.complete else f"at least {solutions}: not all were enumerated"


def _meaning(found: BlockAudited) -> list[Paragraph]:
    if not found.tables and found.complete:
        return [Paragraph("nobody could live there: the statistics contradict each other")]
    if not found.tables:
        return [Paragraph("no solution was found within the limit, and none was ruled out")]
    if len(found.certain) == found.people:
        return [Paragraph("the statistics give away everybody")]
    return []


def _people_blocks(which: str, people: Sequence[Person], found: BlockAudited) -> list[Block]:
    def line(_: str, *values: str) -> str:
        return ", ".join(f"{name} {x}" for name, x in zip(found.fields, values, strict=True))

    rows = [(f"{place}", *person) for place, person in enumerate(people, start=1)]
    caption = f"{len(people)} of {count_of(found.people, 'inhabitant')}"
    header = ("person", *found.fields)
    return [
        Paragraph(f"{which}: {len(people)}"),
        TableBlock(caption, header, rows, line=line, rows_in_text=None),
    ]


def _fields(found: BlockAudited) -> dict[str, Any]:
    """The solutions as the fields of the JSON object."""
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
