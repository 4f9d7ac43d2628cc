"""Documentation is read and run as it says: a true page passes, a false one does not."""

from pathlib import Path
from typing import Annotated

import pytest
from cyclopts import App, Parameter
from docs.blocks import Block, blocks, commands, matches, play, targets
from docs.pages import arguments, code, program, rows, sections

from casemate.report.terminal import OutputOptions

FILES = """\
A page.

```toml title=policy.toml
key = 1
```

<!-- queries.sql -->
```sql
SELECT 1
```

```sql
-- more/other.sql
SELECT 2
```

```text
shown
```
"""


def page(language: str, *lines: str) -> str:
    return "\n".join([f"```{language}", *lines, "```", ""])


# What is true -------------------------------------------------------------------------------------


def test_blocks_know_their_line_language_and_file() -> None:
    assert blocks(FILES) == [
        Block(3, "toml", "policy.toml", "key = 1\n"),
        Block(8, "sql", "queries.sql", "SELECT 1\n"),
        Block(12, "sql", "more/other.sql", "-- more/other.sql\nSELECT 2\n"),
        Block(17, "text", None, "shown\n"),
    ]


def test_files_are_there_for_the_commands_that_follow(tmp_path: Path) -> None:
    play(FILES + page("console", "$ cat policy.toml queries.sql", "key = 1", "SELECT 1"), tmp_path)
    assert (tmp_path / "more/other.sql").read_text() == "-- more/other.sql\nSELECT 2\n"


def test_commands_are_read_with_what_they_print_and_dots_stand_for_anything() -> None:
    assert list(commands("$ one \\\n> more\n$ two\nprinted\n\nprinted\n")) == [
        ("one \\\nmore", ""),
        ("two", "printed\n\nprinted\n"),
    ]
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert matches("took ... ms \n", "took 12 ms\n")
    assert not matches("a\n...\nd\n", "a\nb\n")


@pytest.mark.parametrize(
    "true",
    [
        page("console", "$ echo a; echo b >&2", "a", "b"),
        page("console", "$ false", "$ echo $?", "1", "$ true"),
        page("console", "$ casemate --version", "casemate ..."),
        page("python", "x = 1", "print(x)") + page("python", ">>> x + 1", "2", ">>> y = 5")
        + page("python", "assert y == 5"),
        page("sh", "make demo", "make PYTHON=python3.11 test   # both"),
        page("toml", "a = 1"),
        page("", "a picture"),
    ],
)  # fmt: skip
def test_a_true_page_passes(true: str, tmp_path: Path) -> None:
    play(true, tmp_path)


def test_the_targets_are_those_of_the_makefile() -> None:
    assert {"demo", "test", "check", "bench", "docs"} <= targets()


# What must not pass -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("false", "why"),
    [
        (page("console", "$ echo a", "b"), "prints"),
        (page("console", "$ echo a"), "prints"),
        (page("console", "$ false"), "ends with 1"),
        (page("console", "$ false", "$ true"), "ends with 1"),
        (page("console", "$ false", "$ echo $?", "2"), "ends with 1, not 2"),
        (page("console", "a"), "starts with a command"),
        (page("python", "assert 1 == 2, 'never'"), "never"),
        (page("python", ">>> 1 + 1", "3"), "Expected"),
        (page("sh", "make coffee"), "no target"),
        (page("sh", "rm -r /"), "for make"),
        (page("sql", "SELECT 1"), "needs the name of its file"),
        (page("sql title=../x.sql", "SELECT 1"), "outside"),
        (page("ruby", "puts 1"), "no way to test"),
        ("  ```\n  indented\n  ```\n", "indented"),
        ("```\nunclosed\n", "unclosed"),
    ],
)
def test_a_false_page_fails(false: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=why):
        play(false, tmp_path)


def test_a_failure_says_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Invalid value") as caught:
        play("text\n\n" + page("toml", "a = "), tmp_path)
    assert caught.value.__notes__ == ["in the block at line 3 of the page"]


# Pages as data ----------------------------------------------------------------------------------


def example() -> App:
    app, group = App(name="example"), App(name="group")

    @app.command
    def one(file: str, /, *, deep: Annotated[bool, Parameter(negative="")] = False) -> None: ...

    @group.command
    def two(*, shallow: bool = True, output: OutputOptions = OutputOptions()) -> None: ...  # noqa: B008 - cyclopts

    app.command(group)
    return app


def test_every_command_is_found_with_its_arguments() -> None:
    shared = {"--format", "--output", "--quiet", "--json", "--html"}
    assert {path: arguments(app) for path, app in program(example(), "example")} == {
        "example": set(),
        "example one": {"FILE", "--deep"},
        "example group": set(),
        "example group two": {"--shallow", "--no-shallow", *shared},
    }


PAGE = """\
# Title

## `a b`

| x | y |
| --- | --- |
| `1` | 2 |

## c

```
`no`
```
`yes`
"""


def test_sections_tables_and_code_are_found() -> None:
    assert list(sections(PAGE)) == ["a b", "c"]
    assert rows(PAGE) == [("`1`", "2")]
    assert code(sections(PAGE)["c"]) == {"yes"}
