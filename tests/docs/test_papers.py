"""docs/papers.md lists every statement of a source document, where it is coded, what shows it."""

import ast
from collections.abc import Iterator
from pathlib import Path

from docs.pages import ROOT, page, rows

LISTED = rows(page("papers"))


def marked(source: str) -> Iterator[tuple[str, str]]:
    """The statement and the name of every test that carries the mark `theorem`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.theorem":
                    yield ast.literal_eval(mark.args[0]), node.name


def suite() -> list[Path]:
    return sorted(ROOT.glob("tests/**/test_*.py"))


def test_the_marks_of_a_file_are_found() -> None:
    source = """
@pytest.mark.slow
@pytest.mark.theorem("001: Theorem 2")
@pytest.mark.theorem(
    "001: Theorem 3 "
    "(privacy)"
)
def test_a(): ...
def test_b(): ...
"""
    assert list(marked(source)) == [
        ("001: Theorem 2", "test_a"),
        ("001: Theorem 3 (privacy)", "test_a"),
    ]


def test_the_map_and_the_marks_agree() -> None:
    shown = {mark for path in suite() for mark in marked(path.read_text())}
    listed = {(statement, test.strip("`")) for statement, _, test in LISTED}
    assert sorted(shown - listed) == [], "docs/papers.md does not list these"
    assert sorted(listed - shown) == [], "docs/papers.md lists these, and no test is marked so"


def test_no_statement_is_listed_twice_for_one_test() -> None:
    assert len(set(LISTED)) == len(LISTED)


def test_the_code_is_where_the_map_says_and_its_test_is_about_it() -> None:
    sources = {path: path.read_text() for path in suite()}
    for statement, code, test in LISTED:
        path = ROOT / code.strip("`")
        assert path.is_file(), f"{statement}: there is no {code}"
        shown_by = [at for at, text in sources.items() if f"def {test.strip('`')}(" in text]
        room = path.relative_to(ROOT / "src/casemate").parts[0]
        about = [room in at.parts or f"casemate.{room}" in sources[at] for at in shown_by]
        assert any(about), f"{test} is not about {path}"
