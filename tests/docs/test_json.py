"""docs/json.md lists every field of every JSON object, by running the commands that print them.

A section is named after the `schema` of the object, lists its fields in a table, and has at least
one example that prints it. `[]` stands for the members of a list and `*` for keys that are data.
"""

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from docs.blocks import blocks, commands, play, run
from docs.pages import arguments, page, program, rows, sections

from casemate.cli.main import app
from casemate.track.commands import as_json
from casemate.track.service.serving import Sight
from casemate.track.setting import Count

NEEDS_A_BROKER = {"casemate track watch": "casemate.track-count/1"}
SCHEMAS = {title: text for title, text in sections(page("json")).items() if "/" in title}


def fields(value: object, path: str = "") -> Iterator[str]:
    """The path of every key inside a JSON value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}".lstrip(".")
            yield from fields(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, f"{path}[]")


def printed(section: str, folder: Path) -> list[dict[str, Any]]:
    """Every JSON object the examples of a section print."""
    objects: list[dict[str, Any]] = []
    for block in blocks(section):
        if block.language != "console":
            play(f"```{block.language} title={block.file}\n{block.text}```\n", folder)
            continue
        for command, _ in commands(block.text):
            _, shown = run(command, folder, errors=False)  # the object is alone on stdout
            if "--format json" in command:
                objects.append(json.loads(shown))
    return objects


def covers(documented: str, path: str) -> bool:
    """Whether a documented path, with its `*`, is about this path."""
    ours, theirs = documented.split("."), path.split(".")
    return len(ours) == len(theirs) and all(
        fnmatchcase(part.replace("[", "("), pattern.replace("[", "("))
        for pattern, part in zip(ours, theirs, strict=True)
    )


def test_the_path_of_every_key_is_found() -> None:
    value = {"a": 1, "b": [{"c": 1}, {"d": {"e": []}}]}
    assert list(fields(value)) == ["a", "b", "b[].c", "b[].d", "b[].d.e"]
    assert covers("b[].*.e", "b[].d.e") and not covers("b[].*", "b[].d.e")


@pytest.mark.parametrize("schema", sorted(SCHEMAS.keys() - NEEDS_A_BROKER.values()))
def test_the_fields_printed_are_the_fields_listed(schema: str, tmp_path: Path) -> None:
    objects = printed(SCHEMAS[schema], tmp_path)
    listed = {row[0].strip("`") for row in rows(SCHEMAS[schema])}
    shown = {path for value in objects for path in fields(value)}
    assert {value["schema"] for value in objects} == {schema}
    assert {path for path in shown if not any(covers(name, path) for name in listed)} == set()
    assert {name for name in listed if not any(covers(name, path) for path in shown)} == set()


def test_the_fields_of_a_count_that_is_watched_are_the_fields_listed() -> None:
    count = Count(1.0, 1.0, 1.0, 1.0, 0.0, 1, (), 2)
    shown = as_json(Sight(count, None))
    assert shown["schema"] == NEEDS_A_BROKER["casemate track watch"]
    listed = {row[0].strip("`") for row in rows(SCHEMAS[shown["schema"]])}
    assert set(fields(shown)) == listed


def test_every_command_with_a_json_form_has_an_example() -> None:
    examples = [
        command
        for section in SCHEMAS.values()
        for block in blocks(section)
        if block.language == "console"
        for command, _ in commands(block.text)
        if "--format json" in command
    ]
    with_json = [path for path, inner in program(app, "casemate") if "--format" in arguments(inner)]
    missing = {
        path for path in with_json if not any(shown.startswith(f"{path} ") for shown in examples)
    } - NEEDS_A_BROKER.keys()
    assert missing == set()
