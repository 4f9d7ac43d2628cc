"""Every page: what it shows runs, its links lead somewhere, and the modules it names are there."""

import pkgutil
import re
from pathlib import Path

import pytest
from docs.blocks import ROOT, play

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]


LONG = {"docs/answer.md", "docs/attack.md", "docs/audit.md", "docs/commands.md", "docs/json.md"}
"""Pages whose commands take long, one after another."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=name, marks=[pytest.mark.slow] if name in LONG else [])
        for path, name in zip(PAGES, NAMES, strict=True)
    ],
)
def test_everything_on_the_page_runs(path: Path, tmp_path: Path) -> None:
    play(path.read_text(), tmp_path)


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_every_link_to_a_file_leads_to_one(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=NAMES)
def test_every_module_that_a_page_names_is_there(path: Path) -> None:
    """`docs/notation.md` names fields too, and has a test of its own."""
    rooms = "|".join(each.parent.name for each in ROOT.glob("src/casemate/*/__init__.py"))
    named = re.findall(rf"`(?:casemate\.)?((?:{rooms})(?:\.\w+)+)`", path.read_text())
    for name in named if path.name != "notation.md" else ():
        pkgutil.resolve_name(f"casemate.{name}")
