"""Reading the documentation as data: its sections, its tables, and the program it is about."""

import re
from collections.abc import Iterator
from pathlib import Path

from cyclopts import App

ROOT = Path(__file__).parents[2]


def page(name: str) -> str:
    """The text of docs/NAME.md."""
    return (ROOT / "docs" / f"{name}.md").read_text()


def sections(text: str) -> dict[str, str]:
    """The text under each heading of the second level, by heading without its backticks."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {parts[i].replace("`", "").strip(): parts[i + 1] for i in range(0, len(parts), 2)}


def rows(text: str) -> list[tuple[str, ...]]:
    """The rows of every table in the text, without their headers."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    rules = [i for i, row in enumerate(cells) if all(set(cell) <= set("-: ") for cell in row)]
    return [row for i, row in enumerate(cells) if i not in rules and i + 1 not in rules]


def code(text: str) -> set[str]:
    """Everything the text sets in backticks, outside fenced blocks."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)))


def program(app: App, path: str) -> Iterator[tuple[str, App]]:
    """Every command below this one, and this one, each with the words that call it."""
    yield path, app
    for name in app:
        if not name.startswith("-"):
            yield from program(app[name], f"{path} {name}")


def arguments(app: App) -> set[str]:
    """Every option of a command, and every positional argument in capitals."""
    if app.default_command is None:
        return set()
    shown = [a for a in app.assemble_argument_collection() if a.parse and not a.children]
    return {
        name if name.startswith("-") else name.upper()
        for argument in shown
        for name in argument.names
    }
