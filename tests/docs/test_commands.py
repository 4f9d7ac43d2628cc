"""docs/commands.md names every command, option, exit code and setting; docs/errors.md, errors."""

import inspect
import re

import pytest
from docs.pages import ROOT, arguments, code, page, program, rows, sections

from casemate import errors
from casemate.cli.main import app
from casemate.report.terminal import Exit, end_of

COMMANDS = dict(program(app, "casemate"))
SHARED = "Options that commands share"
RAISED = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, errors.CasemateError)
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_section_with_every_option_and_no_other(command: str) -> None:
    written, possible = sections(page("commands")), arguments(COMMANDS[command])
    assert COMMANDS[command].help and command in written
    named, shared = (
        {name.partition(" ")[0] for name in code(written[section])} for section in (command, SHARED)
    )
    assert possible <= named | shared
    options = {name for name in named if name.startswith("--")}
    assert options <= possible | {"--help", "--version"}


def test_no_section_is_about_a_command_that_does_not_exist() -> None:
    written = {title for title in sections(page("commands")) if title.startswith("casemate")}
    assert written == set(COMMANDS)


def test_every_exit_code_is_explained() -> None:
    named = code(sections(page("commands"))["Exit codes"])
    assert {str(int(code)) for code in Exit} <= named


def test_every_environment_variable_casemate_reads_is_explained() -> None:
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    read = {name for text in sources for name in re.findall(r'"(CASEMATE_[A-Z_]+)"', text)}
    named = {name.partition("=")[0] for name in code(page("commands"))}
    assert "CASEMATE_DEBUG" in read and read <= named


def test_the_page_lists_exactly_the_errors_there_are_with_the_exit_code_each_leads_to() -> None:
    table = rows(sections(page("errors"))["The tree"])
    listed = {row[0].strip("`"): int(row[1].strip("`")) for row in table}
    assert listed == {name: end_of(kind.__new__(kind))[0] for name, kind in RAISED.items()}
    assert errors.__doc__ is not None and all(name in errors.__doc__ for name in RAISED)
