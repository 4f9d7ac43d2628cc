import ast
import importlib
import inspect
from pathlib import Path

import pytest

import casemate

PACKAGE = Path(casemate.__file__).parent


def imported_for_type_checkers() -> dict[str, str]:
    """Name and module of every import that only a type checker sees."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: str(line.module)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }


@pytest.mark.parametrize("name", casemate.__all__)
def test_every_public_name_resolves_to_the_thing_in_its_room(name: str) -> None:
    thing = getattr(casemate, name)
    room = importlib.import_module(imported_for_type_checkers()[name])
    assert thing is getattr(room, name)
    assert inspect.getdoc(thing), f"{name} is public and has no docstring"


def test_what_a_type_checker_sees_is_the_public_list() -> None:
    assert sorted(imported_for_type_checkers()) == sorted(casemate.__all__)


def test_the_public_list_is_sorted_and_names_each_thing_once() -> None:
    assert casemate.__all__ == sorted(set(casemate.__all__))


def test_dir_shows_the_public_list_and_the_version() -> None:
    assert set(dir(casemate)) == {*casemate.__all__, "__version__"}


def test_a_star_import_brings_the_public_list_and_nothing_else() -> None:
    scope: dict[str, object] = {}
    exec("from casemate import *", scope)
    assert set(scope) - {"__builtins__"} == set(casemate.__all__)


def test_every_error_is_public() -> None:
    from casemate import errors

    raised = {name for name, thing in vars(errors).items() if inspect.isclass(thing)}
    assert {name for name in raised if issubclass(getattr(errors, name), Exception)} <= set(
        casemate.__all__
    )


def test_no_public_name_is_the_name_of_a_room() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert "table" in rooms and not rooms & set(casemate.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'casemate' has no attribute 'Tabel'"):
        casemate.Tabel  # type: ignore[attr-defined]  # the point of the test
