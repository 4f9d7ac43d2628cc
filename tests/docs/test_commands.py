"""docs/commands.md names every command, every option, every exit code and every setting."""

import re

import pytest
from docs.pages import ROOT, arguments, code, page, program, sections

from casemate.cli.main import app
from casemate.report.terminal import Exit

COMMANDS = dict(program(app, "casemate"))
SHARED = "Options that commands share"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_section_with_every_option(command: str) -> None:
    written = sections(page("commands"))
    assert command in written
    named = code(written[command]) | code(written[SHARED])
    assert arguments(COMMANDS[command]) <= {name.partition(" ")[0] for name in named}


def test_every_command_says_what_it_does() -> None:
    assert all(command.help for command in COMMANDS.values())


def test_no_section_is_about_a_command_that_does_not_exist() -> None:
    written = {title for title in sections(page("commands")) if title.startswith("casemate")}
    assert written == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_section_names_an_option_the_command_does_not_have(command: str) -> None:
    named = {name.partition(" ")[0] for name in code(sections(page("commands"))[command])}
    options = {name for name in named if name.startswith("--")}
    assert options <= arguments(COMMANDS[command]) | {"--help", "--version"}


def test_every_exit_code_is_explained() -> None:
    named = code(sections(page("commands"))["Exit codes"])
    assert {str(int(code)) for code in Exit} <= named


def test_every_environment_variable_casemate_reads_is_explained() -> None:
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    read = {name for text in sources for name in re.findall(r'"(CASEMATE_[A-Z_]+)"', text)}
    named = {name.partition("=")[0] for name in code(page("commands"))}
    assert "CASEMATE_DEBUG" in read and read <= named
