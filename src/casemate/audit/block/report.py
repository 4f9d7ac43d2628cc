"""The solutions of a block as text for the terminal, as the object `casemate.block/1`, as a page.

Everything in it follows from published statistics alone: no protected table was opened, so there
is nothing to hide from whoever could publish or read them.
"""

from collections.abc import Sequence
from typing import Any

from casemate.audit.block.block import BlockAudited
from casemate.audit.block.model import Person
from casemate.report import Markup, counted, joined, page, paragraph, section, table

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
