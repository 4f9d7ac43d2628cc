"""docs/papers.md lists every statement of a source document, where it is coded, what shows it.

Derivations do the same for their claims.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.pages import ROOT, page, rows

LISTED = rows(page("papers"))
DERIVATIONS = [
    "answer_intervals",
    "confidence",
    "one_bit_edge",
    "online_bisection",
    "online_construction",
    "sparse_vector",
]


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


@pytest.mark.parametrize("name", DERIVATIONS)
def test_every_claim_of_a_derivation_is_shown_by_a_test_that_exists(name: str) -> None:
    tests = "".join(each.read_text() for each in suite())
    claims = re.split(r"^## ", page(f"derivations/{name}"), flags=re.MULTILINE)[1:]
    assert claims
    for claim in claims:
        named = re.findall(r"`(test_\w+)`", claim)
        assert named, f"no test is named under {claim.splitlines()[0]!r}"
        assert all(f"def {test}(" in tests for test in named)
