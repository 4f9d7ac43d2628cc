"""Documentation that runs: every fenced block of a page is executed, written, or checked.

All blocks of a page share one folder and one Python namespace, in the order of the page.

console      lines that start with `$ ` are commands (`> ` continues one); the lines after a command
             are what it prints, with `...` for anything. A command must succeed unless `$ echo $?`
             comes next and shows its exit code.
python       a doctest where it has prompts; otherwise it only has to run.
sh           lines of `make TARGET`, checked to be targets of the Makefile and not run.
toml sql ... a file: its name is in the info string (`title=NAME`), or alone in a comment that is
             the block's first line or the line before it. A toml block without one must parse.
text         shown only, like a block without a language.

Any other block is an error: nothing on a page goes untested by accident.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from casemate.cli.main import exit_code

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"(?P<before>.*)\n```(?P<info>[^\n`]*)\n(?P<text>(?s:.*?))^```$", re.MULTILINE)
FILE_COMMENT = re.compile(r"^\s*(?:#|--|<!--)\s*([\w./-]+\.\w+)\s*(?:-->)?\s*$")
FILES = {"toml", "sql", "csv", "json"}
SHOWN = {"", "text"}
PATIENCE = 300  # seconds a command of the documentation may take


@dataclass(frozen=True)
class Block:
    """One fenced block: where it is, what it is, and the file it stands for."""

    line: int
    language: str
    file: str | None
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = list(FENCE.finditer("\n" + page))
    fences = re.findall(r"^\s*(?:```|~~~)", page, re.MULTILINE)
    assert len(fences) == 2 * len(found), "a fence is indented, unclosed or made of tildes"
    return [_block(match, page) for match in found]


def _block(match: re.Match[str], page: str) -> Block:
    language, *options = match["info"].split() or [""]
    named = dict(option.split("=", 1) for option in options if "=" in option)
    first = match["text"].partition("\n")[0]
    comment = FILE_COMMENT.match(first) or FILE_COMMENT.match(match["before"])
    file = named.get("title") or (comment[1] if comment and language in FILES else None)
    line = ("\n" + page)[: match.start("info")].count("\n")
    return Block(line, language, file, match["text"])


def play(page: str, folder: Path) -> None:
    """Execute a page in an empty folder; an AssertionError says where it is not true."""
    namespace: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        try:
            _play(block, folder, namespace)
        except BaseException as error:
            error.add_note(f"in the block at line {block.line} of the page")
            raise


def _play(block: Block, folder: Path, namespace: dict[str, object]) -> None:
    if block.language == "console":
        _play_console(block.text, folder)
    elif block.language == "python":
        with contextlib.chdir(folder):
            _play_python(block.text, namespace)
    elif block.language == "sh":
        _check_targets(block.text)
    elif block.language in FILES:
        _write(block, folder)
    else:
        assert block.language in SHOWN, f"no way to test a block of {block.language}"


# Commands -----------------------------------------------------------------------------------------


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it should print."""
    assert text.startswith("$ "), "a console block starts with a command"
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *others = part.splitlines()
        ends = next((i for i, line in enumerate(others) if not line.startswith("> ")), len(others))
        command = "\n".join([first, *(line[2:] for line in others[:ends])])
        yield command, "".join(line + "\n" for line in others[ends:])


def run(command: str, folder: Path, *, errors: bool = True) -> tuple[int, str]:
    """The exit code of a command and all it prints, also on stderr where `errors` are wanted.

    One of casemate's without anything for a shell in it runs in this process.
    """
    ours = str(Path(sys.executable).parent)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("CASEMATE_")}
    settings = {
        "PATH": ours + os.pathsep + os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "COLUMNS": "80",
        "TERM": "dumb",
    }
    words = _words(command)
    if words[0] == "casemate" and not any(set(word) <= set("|&;<>()") for word in words):
        return _run_here(words[1:], folder, plain | settings, errors)
    shown = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=plain | settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors else subprocess.DEVNULL,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return shown.returncode, shown.stdout


def _words(command: str) -> list[str]:
    """The words of a command; one that needs a shell has signs as words, or is a single one."""
    if set("$`") & set(command):
        return [command]
    parser = shlex.shlex(command, posix=True, punctuation_chars=True)
    parser.whitespace_split, parser.commenters = True, ""
    return list(parser)


def _run_here(
    words: list[str], folder: Path, environment: dict[str, str], errors: bool
) -> tuple[int, str]:
    shown = io.StringIO()
    with (
        open(os.devnull) as nothing,
        patch.dict(os.environ, environment, clear=True),
        patch.object(sys, "stdin", nothing),
        patch.object(sys, "path", [*sys.path]),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(shown),
        contextlib.redirect_stderr(shown if errors else io.StringIO()),
    ):
        code = exit_code(words)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(folder.resolve())):
            del sys.modules[name]  # a classifier of this page, and of no other
    return code, shown.getvalue()


def _play_console(text: str, folder: Path) -> None:
    last, code = "", 0
    for command, expected in commands(text):
        if command == "echo $?":
            assert expected == f"{code}\n", f"{last} ends with {code}, not {expected.strip()}"
            code = 0
            continue
        assert code == 0, f"{last} ends with {code} and no `$ echo $?` says so"
        code, printed = run(command, folder)
        last = command
        assert matches(expected, printed), f"{command}\nprints\n{printed}\nand not\n{expected}"
    assert code == 0, f"{last} ends with {code} and no `$ echo $?` says so"


def matches(expected: str, printed: str) -> bool:
    """Whether the printed text is the expected one, `...` standing for anything."""
    want, got = (
        "".join(f"{line.rstrip()}\n" for line in s.splitlines()) for s in (expected, printed)
    )
    return doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)


# Everything else ----------------------------------------------------------------------------------


def _play_python(text: str, namespace: dict[str, object]) -> None:
    if ">>>" not in text:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, "page", "exec"), namespace)
        return
    example = doctest.DocTestParser().get_doctest(text, namespace, "page", "page", 0)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example, out=report.write, clear_globs=False)
    namespace.update(example.globs)  # a doctest works on a copy
    assert runner.failures == 0, report.getvalue()


def _check_targets(text: str) -> None:
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words:
            asked = [word for word in words[1:] if "=" not in word]
            assert words[0] == "make" and asked, f"an sh block is for make, not for {line}"
            assert set(asked) <= targets(), f"the Makefile has no target for {line}"


def targets() -> set[str]:
    """The targets the Makefile offers to people."""
    offered = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return set(offered[1].split()) if offered else set()


def _write(block: Block, folder: Path) -> None:
    if block.file is None:
        assert block.language == "toml", f"a block of {block.language} needs the name of its file"
        tomllib.loads(block.text)
        return
    file = (folder / block.file).resolve()
    assert file.is_relative_to(folder.resolve()), f"{block.file} is outside the page's folder"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(block.text)
