"""Every command with a page: well-formed, escaped, self-contained; and what every form hides."""

import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from census_block import seven
from cli.running import Captured, told

from casemate.cli.main import exit_code

HOSTILE = "</td><script>alert('x')</script>&amp; onload=x"
NAME = f'"{HOSTILE}"'
SECRET = 98765
"""What one record holds, and what one answer and every interval around it would show."""

POLICY = f"""
[table]
source = "hostile.csv"
[columns.id]
role = "identifier"
[columns.{NAME}]
values = ["{HOSTILE}", "b"]
[columns.area]
min = 0
max = 4
bins = 4
[columns.pay]
role = "private"
type = "integer"
min = 0
max = 100000
bins = 4
[budget]
epsilon = 1
delta = 1e-6
"""
SUMS = f"""
SELECT {NAME}, SUM(pay) FROM t GROUP BY {NAME};
SELECT SUM(pay) FROM t WHERE id <> 3 AND {NAME} = '{HOSTILE.replace("'", "''")}';
SELECT SUM({NAME}) FROM t;
"""
HIDDEN = [
    ("audit", "hostile.sql", "--table", "hostile.csv", "--private", "pay"),
    ("attack", "reconstruct", "hostile.sql", "--table", "hostile.csv", "--private", "pay"),
]
"""Commands that show values where they are told to reveal them."""

ONE_BIT = (
    *("attack", "one-bit", "--table", "hostile.csv", "--private", "pay", "--bounds", "0:100000"),
    *("--noise", "laplace:1", "--queries", "60", "--dimensions", "8", "--seed", "1"),
)

GROUPED = f"SELECT {NAME}, COUNT(*) FROM t GROUP BY {NAME}"
OTHERS = [
    ("audit", "block", "block.csv"),
    ("attack", "plan", "--table", "hostile.toml", "--target", "3"),
    ("attack", "extract", "--predict", "stolen:predict", "--dimension", "3", "--seed", "1"),
    ("ask", "hostile.toml", GROUPED),
    ("ask", "hostile.toml", GROUPED, "--dry-run"),
    ("budget", "hostile.toml"),
    ("plan", "hostile.toml", "--queries", "hostile.sql"),
    ("track", "simulate", "--sites", "16", "--alpha", "0.1", "--items", "2000", "--seed", "1"),
    ("track", "plan", "--sites", "16", "--alpha", "0.2", "--horizon", "10000"),
]


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    """A table whose column and values are markup, and sums that give record 3 away."""
    rows = [
        f'{i},"{HOSTILE if i < 6 else "b"}",{i % 5},{SECRET if i == 3 else 7 * i}'
        for i in range(1, 9)
    ]
    (folder / "hostile.csv").write_text("\n".join([f'id,"{HOSTILE}",area,pay', *rows, ""]))
    (folder / "hostile.sql").write_text(SUMS)
    (folder / "hostile.toml").write_text(POLICY)
    (folder / "block.csv").write_text(seven())


class Balanced(HTMLParser):
    """A browser's way of reading: every element that is opened is closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_startendtag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        assert tag == "meta"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page(capsys: Captured, *arguments: str) -> str:
    """The page of a command, read by a parser of XML and by one of HTML."""
    assert exit_code([*arguments, "--format", "html", "--quiet"]) == 0, capsys.readouterr().err
    text = capsys.readouterr().out
    assert text.startswith("<!DOCTYPE html>\n")
    reader = Balanced()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    assert_closed_in_itself(text)
    return text


def assert_closed_in_itself(text: str) -> None:
    """Nothing is loaded, nothing runs, names are unique, and links lead to something here."""
    elements = list(ET.fromstring(text).iter())
    assert not {each.tag for each in elements} & {"script", "link", "img", "iframe", "object"}
    attributes = {name for each in elements for name in each.attrib}
    assert not any(name.startswith("on") or name == "src" for name in attributes)
    assert not any(part in text for part in ("://", "url(", "@import"))
    names = [each.attrib["id"] for each in elements if "id" in each.attrib]
    links = {each.attrib["href"] for each in elements if "href" in each.attrib}
    assert len(names) == len(set(names)) and links <= {f"#{name}" for name in names}


@pytest.mark.parametrize("form", ["text", "json", "html"])
@pytest.mark.parametrize("command", HIDDEN, ids=lambda each: " ".join(each[:2]))
def test_values_are_shown_only_where_a_command_is_told_to(
    command: tuple[str, ...], form: str, capsys: Captured
) -> None:
    for reveal in ((), ("--reveal",)):
        options = (*command, *reveal)
        if form == "html":
            printed = page(capsys, *options)
        else:
            printed = told(capsys, *options, "--format", form)
        digits = printed.replace(",", "").replace(".", "")
        assert (str(SECRET) in digits) == bool(reveal)


def test_totals_found_by_bits_are_shown_only_where_they_are_asked_for(capsys: Captured) -> None:
    assert 'id="values"' not in page(capsys, *ONE_BIT)
    assert 'id="values"' in page(capsys, *ONE_BIT, "--reveal")


@pytest.mark.parametrize("command", [*HIDDEN, *OTHERS], ids=lambda each: " ".join(each[:2]))
def test_what_comes_from_outside_stays_text(command: tuple[str, ...], capsys: Captured) -> None:
    text = page(capsys, *command)
    assert HOSTILE not in text
    named = any("hostile" in word or HOSTILE in word for word in command)
    named = named and command[0] != "budget"  # on which nothing from outside is
    assert (HOSTILE in "".join(ET.fromstring(text).itertext())) == named
