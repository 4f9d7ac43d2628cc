"""docs/errors.md lists every error casemate raises on purpose, with its exit code."""

import inspect

from docs.pages import page, rows, sections

from casemate import errors
from casemate.report.terminal import end_of

RAISED = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, errors.CasemateError)
}


def listed() -> dict[str, int]:
    table = rows(sections(page("errors"))["The tree"])
    return {row[0].strip("`"): int(row[1].strip("`")) for row in table}


def test_the_page_lists_exactly_the_errors_there_are() -> None:
    assert sorted(listed()) == sorted(RAISED)


def test_the_page_gives_the_exit_code_each_leads_to() -> None:
    assert listed() == {name: end_of(kind.__new__(kind))[0] for name, kind in RAISED.items()}


def test_the_module_draws_the_same_tree() -> None:
    assert errors.__doc__ is not None
    assert all(name in errors.__doc__ for name in RAISED)
