"""Every claim of a derivation names a test, and the test exists."""

import re
from pathlib import Path

import pytest
from docs.pages import ROOT

PAGES = [
    "answer_intervals",
    "confidence",
    "one_bit_edge",
    "online_bisection",
    "online_construction",
    "sparse_vector",
]


@pytest.fixture(scope="module")
def tests() -> str:
    return "".join(path.read_text() for path in Path(ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_every_claim_of_a_derivation_is_shown_by_a_test_that_exists(page: str, tests: str) -> None:
    text = (ROOT / "docs/derivations" / f"{page}.md").read_text()
    claims = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert claims
    for claim in claims:
        named = re.findall(r"`(test_\w+)`", claim)
        assert named, f"no test is named under {claim.splitlines()[0]!r}"
        assert all(f"def {name}(" in tests for name in named)
