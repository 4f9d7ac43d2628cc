"""docs/notation.md is the glossary: every public name once, and only names that exist."""

import inspect
from pkgutil import resolve_name

import pytest
from docs.pages import page, rows

import casemate

ROWS = rows(page("notation"))
NAMES = [row[0].strip("`") for row in ROWS]


def thing(name: str) -> object:
    """What a dotted name leads to from casemate; None where it leads nowhere."""
    try:
        return resolve_name(f"casemate.{name}")
    except (ImportError, AttributeError):
        return None


def found(name: str) -> bool:
    """Whether a dotted name leads to a thing, or to a parameter of one."""
    owner, _, last = name.rpartition(".")
    holder = thing(owner) if owner else None
    return thing(name) is not None or (
        callable(holder) and last in inspect.signature(holder).parameters
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_name_with_a_symbol_exists(name: str) -> None:
    assert found(name)


def test_a_name_that_does_not_exist_is_noticed() -> None:
    assert not found("privacy.cost.Pure.epsilons")
    assert not found("privacy.cost.Impure")
    assert not found("table.schema.Budget.epsilon.more")


def test_every_public_name_is_listed_once_with_a_meaning() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert set(casemate.__all__) <= set(NAMES)
    assert all(len(row) == 3 and len(row[2]) > 10 for row in ROWS)
