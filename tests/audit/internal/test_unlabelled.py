"""Rows of a GROUP BY without their keys: the audit says that it took them for labelled."""

from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rendered import forms

from casemate import Audit
from casemate.audit.report import audit_report
from casemate.audit.result import Audited, Verdict

as_text, as_json, as_html = forms(audit_report)

SAID = "query 2 shows rows without all of their keys; it was audited as if they were labelled"
VALUES = (0, 1, 2)
POLICY = """
[table]
source = "t.csv"
[columns.g]
[columns.h]
[columns.x]
role = "private"
values = [0, 1, 2]
"""


def audited(folder: Path, rows: list[tuple[str, str, int]], *queries: str) -> Audited:
    lines = ["g,h,x", *(",".join(map(str, row)) for row in rows)]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    (folder / "p.toml").write_text(POLICY)
    return Audit.of(queries, folder / "p.toml")


@pytest.mark.parametrize(
    ("sql", "is_said"),
    [
        ("SELECT SUM(x) FROM t GROUP BY g", True),
        ("SELECT h, SUM(x) FROM t GROUP BY g, h", True),
        ("SELECT upper(g), SUM(x) FROM t GROUP BY g", True),
        ("SELECT COUNT(*) FROM t GROUP BY x", True),
        ("SELECT g, SUM(x) FROM t GROUP BY g", False),
        ("SELECT h, g, SUM(x) FROM t GROUP BY g, h", False),
        ("SELECT SUM(x) FROM t WHERE g = 'a'", False),
        ("SELECT COUNT(*) FROM t GROUP BY g", False),
    ],
)
def test_a_statement_that_hides_keys_is_named(tmp_path: Path, sql: str, is_said: bool) -> None:
    rows = [("a", "u", 0), ("a", "v", 1), ("b", "u", 2), ("b", "v", 0)]
    found = audited(tmp_path, rows, "SELECT SUM(x) FROM t", sql)
    assert any(each.startswith(SAID) for each in found.assumptions) is is_said
    shown = as_text(found, reveal=False), str(as_json(found, reveal=False))
    assert all((SAID in each) is is_said for each in (*shown, str(as_html(found, reveal=False))))


def known_without_labels(rows: list[tuple[str, str, int]]) -> set[int]:
    """The records that have one value in every table with the same rows, in any order."""

    def shown(values: tuple[int, ...]) -> Counter[int]:
        sums = Counter[str]()
        for (g, _, _), value in zip(rows, values, strict=True):
            sums[g] += value
        return Counter(sums[g] for g in {g for g, _, _ in rows})

    true = tuple(x for _, _, x in rows)
    worlds = [each for each in product(VALUES, repeat=len(rows)) if shown(each) == shown(true)]
    return {i for i, values in enumerate(zip(*worlds, strict=True), 1) if len(set(values)) == 1}


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.just("u"), st.sampled_from(VALUES)),
        min_size=2,
        max_size=4,
    )
)
@settings(max_examples=8, deadline=None)
def test_whoever_is_safe_with_labels_is_safe_without(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, int]]
) -> None:
    found = audited(tmp_path_factory.mktemp("t"), rows, "SELECT SUM(x) FROM t GROUP BY g")
    assert known_without_labels(rows) <= {each.record for each in found.exposed}


def test_somebody_may_be_exposed_only_by_labels_that_are_not_there(tmp_path: Path) -> None:
    rows = [("a", "u", 0), ("b", "u", 1)]
    found = audited(tmp_path, rows, "SELECT SUM(x) FROM t GROUP BY g")
    assert found.verdict is Verdict.EXPOSED and known_without_labels(rows) == set()
