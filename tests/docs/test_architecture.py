"""docs/architecture.md, .importlinter and the package show the same house."""

import configparser
import importlib
import re

from docs.pages import ROOT, code, page, sections

STANDING, PLANNED = re.compile(r"\[\s*(\w+)\s*\]"), re.compile(r"\(\s*(\w+)\s*\)")
GROUND = {"compiled", "facade", "errors"}
Layer = tuple[frozenset[str], frozenset[str]]


def rooms() -> set[str]:
    """The packages there are, and the modules under them all."""
    package = ROOT / "src/casemate"
    return {path.parent.name for path in package.glob("*/__init__.py")} | GROUND


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


def contract() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(ROOT / ".importlinter")
    return found


def checked() -> list[Layer]:
    """The layers of the import contract, in which a room to come stands in parentheses."""
    lines = contract()["importlinter:contract:house"]["layers"].split("\n")
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


def behind_doors(room: str) -> set[str]:
    """The modules of a room, and the insides of its folders."""
    here = ROOT / "src/casemate" / room
    modules = {path.stem for path in here.glob("*.py") if path.name != "__init__.py"}
    folders = {f"{path.parent.name}.*" for path in here.glob("*/__init__.py")}
    return {f"casemate.{room}.{name}" for name in modules | folders}


def test_everything_behind_a_door_is_protected_by_the_contract() -> None:
    for room in rooms() - GROUND:
        rule = contract()[f"importlinter:contract:doors-of-{room}"]
        assert rule["type"] == "protected"
        assert set(rule["protected_modules"].split()) == behind_doors(room), room
        assert rule["allowed_importers"].split() == [f"casemate.{room}"]


def test_no_name_of_a_door_is_hidden_by_a_module_of_the_same_name() -> None:
    for path in (ROOT / "src/casemate").rglob("__init__.py"):
        door = ".".join(path.relative_to(ROOT / "src").parent.parts)
        names = set(getattr(importlib.import_module(door), "__all__", ()))
        beside = {each.stem for each in path.parent.glob("*.py")}
        folders = {each.parent.name for each in path.parent.glob("*/__init__.py")}
        assert not names & (beside | folders), door


def test_pages_import_from_doors_only() -> None:
    for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        for module in re.findall(r"from (casemate[\w.]*) import", path.read_text()):
            door = ROOT / "src" / module.replace(".", "/") / "__init__.py"
            assert door.is_file() and module.count(".") <= 2, f"{path.name} imports from {module}"


def test_doors_name_what_stands_behind_them() -> None:
    """A word in backticks is a module, a folder, a room or an exported name."""
    package = ROOT / "src/casemate"
    for door in sorted(package.rglob("__init__.py")):
        _, docstring, exports = door.read_text().split('"""', 2)
        folders = [door.parent, door.parent.parent, package]
        standing = {path.stem for folder in folders for path in folder.iterdir()}
        named = set(re.findall(r"`([a-z_]+)`", docstring))
        assert named <= standing | set(re.findall(r"\w+", exports)), door
