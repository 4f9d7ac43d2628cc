"""docs/architecture.md, .importlinter and the package show the same house."""

import configparser
import re

from docs.pages import ROOT, code, page, sections

STANDING, PLANNED = re.compile(r"\[\s*(\w+)\s*\]"), re.compile(r"\(\s*(\w+)\s*\)")
Layer = tuple[frozenset[str], frozenset[str]]


def rooms() -> set[str]:
    """The packages there are, and the module of errors under them all."""
    package = ROOT / "src/casemate"
    return {path.parent.name for path in package.glob("*/__init__.py")} | {"errors"}


def layer(standing: list[str], planned: list[str]) -> Layer:
    return frozenset(standing), frozenset(planned)


def drawn() -> list[Layer]:
    """The layers of the picture from top to bottom: [ rooms ] and ( rooms to come )."""
    block = re.search(
        r"^```\n(.*?)^```$", sections(page("architecture"))["The picture"], re.M | re.S
    )
    assert block is not None
    lines = [layer(STANDING.findall(line), PLANNED.findall(line)) for line in block[1].splitlines()]
    return [line for line in lines if any(line)]


def checked() -> list[Layer]:
    """The layers of the import contract, in which a room to come stands in parentheses."""
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    lines = contract["importlinter:contract:house"]["layers"].split("\n")
    names = [[name.strip() for name in line.split("|")] for line in lines if line.strip()]
    return [
        layer(
            [name for name in line if not name.startswith("(")],
            [name.strip("()") for name in line if name.startswith("(")],
        )
        for line in names
    ]


def test_the_picture_is_the_contract() -> None:
    assert drawn() == checked()


def test_the_picture_shows_the_rooms_there_are() -> None:
    assert {name for standing, _ in drawn() for name in standing} == rooms()


def test_every_room_is_described() -> None:
    described = code(sections(page("architecture"))["The rooms"])
    assert rooms() <= described
