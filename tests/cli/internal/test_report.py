"""`casemate report`, and the files that `--json` and `--html` write beside the text."""

import json
from pathlib import Path

import pytest
from cli.running import Captured, told

from casemate.cli.main import exit_code

AUDIT = ("audit", "q.sql", "--table", "hospital")
SUMS = """-- Everybody
SELECT SUM("Blood sugar") FROM t;
SELECT SUM("Blood sugar") FROM t WHERE ZIP <> 43813;
"""


@pytest.fixture(autouse=True)
def log(folder: Path) -> None:
    (folder / "q.sql").write_text(SUMS)


def test_one_run_gives_the_text_the_object_and_the_page(folder: Path, capsys: Captured) -> None:
    text = told(capsys, *AUDIT, "--json", "a.json", "--html", "a.html", "--quiet")
    assert text.startswith("verdict: exposed")
    saved = json.loads((folder / "a.json").read_text())
    assert (saved["schema"], saved["table"]) == ("casemate.audit/1", "hospital")
    assert (folder / "a.html").read_text().startswith("<!DOCTYPE html>")


def test_a_saved_audit_is_printed_as_it_was(folder: Path, capsys: Captured) -> None:
    text = told(capsys, *AUDIT, "--json", "a.json", "--html", "a.html", "--quiet")
    assert told(capsys, "report", "a.json") == text
    assert 'query 1 "Everybody"' in text and "5.2" not in text
    page = told(capsys, "report", "a.json", "--format", "html")
    assert page == (folder / "a.html").read_text()
    again = told(capsys, "report", "a.json", "--format", "json")
    assert again == (folder / "a.json").read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "a.json cannot be read: no such file or directory"),
        ("verdict: exposed", "a.json is not JSON; give what --format json wrote"),
        ('{"schema": "casemate.attack/1"}', "expected an object of casemate.audit/1, and this is"),
        ('{"schema": "casemate.audit/1"}', "a.json is not whole: a field is missing"),
        ("[]", "expected an object of casemate.audit/1, and this is something else"),
    ],
)
def test_what_cannot_be_rendered_is_one_sentence(
    content: str | None, said: str, folder: Path, capsys: Captured
) -> None:
    if content is not None:
        (folder / "a.json").write_text(content)
    assert exit_code(["report", "a.json"]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and printed.out == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--json", "absent/a.json"), "--json absent/a.json is in a folder that does not exist"),
        (("--html", "."), "--html . is a folder"),
        (("--json", "a", "--html", "./a"), "--json and --html are to be different files"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_any_work(
    options: tuple[str, ...], said: str, capsys: Captured
) -> None:
    assert exit_code([*AUDIT, *options]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and printed.out == ""


def test_a_command_without_a_page_writes_none(folder: Path, capsys: Captured) -> None:
    assert exit_code(["demo", "--html", "a.html"]) == 2
    assert "has no HTML form" in capsys.readouterr().err and not (folder / "a.html").exists()
