"""docs/policy.md lists every key of the policy file, and every word a key may hold."""

import re
from enum import StrEnum
from pathlib import Path

import pytest
from docs.pages import code, page, rows, sections

import casemate
from casemate.table import schema

BEFORE = {
    "table": "",
    "columns.NAME": '[table]\nsource = "hospital"',
    "public.NAME": '[table]\nsource = "hospital"\n[columns.x]',
    "budget": '[table]\nsource = "hospital"\n[columns.x]',
    "answer": '[table]\nsource = "hospital"\n[columns.x]',
}
"""What a policy needs before a section is read."""

WORDS = [kind for kind in vars(schema).values() if isinstance(kind, type) and kind is not StrEnum]


def keys(policy: str, folder: Path) -> list[str]:
    """The keys that may stand where this policy has one that may not."""
    (folder / "policy.toml").write_text(policy)
    with pytest.raises(casemate.Misconfigured, match="zzz") as caught:
        casemate.load_policy(folder / "policy.toml")
    return re.findall(r"`(\w+)`", str(caught.value).partition("expected")[2])


@pytest.mark.parametrize("section", BEFORE)
def test_every_key_of_a_section_is_listed(section: str, tmp_path: Path) -> None:
    listed = [row[0].strip("`") for row in rows(sections(page("policy"))[section])]
    assert listed == keys(f"{BEFORE[section]}\n[{section}]\nzzz = 1\n", tmp_path)


def test_every_section_has_its_heading(tmp_path: Path) -> None:
    headings = [title.partition(".")[0] for title in sections(page("policy"))]
    assert headings == keys("[zzz]\n", tmp_path)


@pytest.mark.parametrize("kind", [kind for kind in WORDS if issubclass(kind, StrEnum)])
def test_every_word_of_a_key_is_explained(kind: type[StrEnum]) -> None:
    assert {word.value for word in kind} <= code(page("policy"))
