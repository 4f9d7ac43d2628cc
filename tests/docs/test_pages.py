from typing import Annotated

from cyclopts import App, Parameter
from docs.pages import arguments, code, program, rows, sections

from casemate.report.terminal import OutputOptions


def example() -> App:
    app, group = App(name="example"), App(name="group")

    @app.command
    def one(file: str, /, *, deep: Annotated[bool, Parameter(negative="")] = False) -> None: ...

    @group.command
    def two(*, shallow: bool = True, output: OutputOptions = OutputOptions()) -> None: ...  # noqa: B008 - cyclopts

    app.command(group)
    return app


def test_every_command_is_found_with_its_arguments() -> None:
    assert {path: arguments(app) for path, app in program(example(), "example")} == {
        "example": set(),
        "example one": {"FILE", "--deep"},
        "example group": set(),
        "example group two": {"--shallow", "--no-shallow", "--format", "--output", "--quiet"},
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
