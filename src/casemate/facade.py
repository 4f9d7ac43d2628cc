"""Lazy doors: a room's public names, each imported from its module when it is first used.

A door lists its names once, as imports under `if TYPE_CHECKING`, where type checkers and the import
contract read them; `lazily` reads the same lines, so that importing a door costs nothing.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazily(
    door: str, *extra: str
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """The `__all__`, `__getattr__` and `__dir__` of a package, with names of its own."""
    homes = _listed(door)

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {door!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[door], name, value)  # the next use does not come here
        return value

    return sorted(homes), load, lambda: [*sorted(homes), *extra]


def _listed(door: str) -> dict[str, str]:
    """The module of each name that is imported under `if TYPE_CHECKING`."""
    loader: Any = sys.modules[door].__spec__.loader  # type: ignore[union-attr]  # it is loading
    checked = (node for node in ast.parse(loader.get_source(door)).body if isinstance(node, ast.If))
    imports = (each for node in checked for each in node.body if isinstance(each, ast.ImportFrom))
    return {alias.name: str(each.module) for each in imports for alias in each.names}
