"""Findings as people read them: in groups, by public attributes, on one screen, and once more."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit.internal.test_audit_html import SECRET, empty, everything, exposure
from rendered import forms, sections

from casemate.audit import Audit, saved_report
from casemate.audit.describe import MAX_ROWS_READ, MAX_SETS, _most_columns
from casemate.audit.fields import Occasion
from casemate.audit.report import audit_report
from casemate.audit.result import (
    Audited,
    CertificateTerm,
    DerivationStep,
    Exposed,
    MissingValue,
    OpenReason,
    Proof,
    PublishedCertificate,
    Release,
    Verdict,
)
from casemate.errors import Misconfigured
from casemate.published import Place, RefusedQuery
from casemate.query.parse import Logged, read_queries
from casemate.report import as_html, as_text

text_of, fields_of, page_of = forms(audit_report)
NOON = Occasion(
    "staff.csv", datetime(2026, 7, 1, 12, tzinfo=UTC), {"private": ["pay"], "seconds": 60.0}
)


# Groups -------------------------------------------------------------------------------------------


def equal(record: int) -> Exposed:
    """Somebody in a cell of which the average is the maximum."""
    step = DerivationStep(1, (("team", None),), "AVG is MAX, so all are equal")
    found = replace(exposure(record), proof=Proof.ORDER, derivation=(step,))
    return replace(found, described=(("age", 30 + record), ("sex", None)))


def difference(record: int, area: str) -> Exposed:
    terms = (
        CertificateTerm(Place(2, "sum", (("area", area),)), 2),
        CertificateTerm(Place(3, "sum", None), -1),
    )
    return replace(exposure(record, 3), certificate=PublishedCertificate(terms, 3))


def several() -> Audited:
    """Three people of one cell, two by subtraction, one by bounds, one whose value is missing."""
    step = DerivationStep(3, None, "COUNT of pay is 0")
    missing = MissingValue("key-7", "key-7", "pay", 3, (step,))
    return replace(
        empty(9),
        verdict=Verdict.EXPOSED,
        exposed=(exposure(0), difference(1, "a"), equal(2), equal(3), equal(4), difference(5, "b")),
        missing=(missing,),
        undecided=("key-8",),
        reasons=(OpenReason("undecided", ("key-8",), "no search ended within 300 seconds"),),
        statements=("SELECT 1", "SELECT 2", "SELECT 3"),
        titles=("Pay by team", None, None),
    )


FIRST_SCREEN = """\
verdict: exposed (somebody's value follows from what was published)
6 people are exposed
  3 people: pay by query 1 "Pay by team" [team = NULL] (AVG is MAX, so all are equal)
  2 people: pay by query 2 and query 3 (taken from each other, they leave one person)
  1 person: pay by bounds and types
1 person is known to have no value
  1 person: pay by query 3 (COUNT of pay is 0)
1 record not decided (no search ended within 300 seconds)
1 statement, about 9 records
table staff.csv, 2026-07-01 12:00 UTC, --private pay --seconds 60
  query 1 "Pay by team"
what to do next:
  --repair FILE writes the statements without the rows that expose anybody
  --reveal shows the values
  --seconds N gives more time to what is undecided
  --html FILE writes this as a page to pass on

exposed: 6
  record 3, the only one with age 32 and no sex: pay = •  by query 1 [team = NULL]
  record 4, the only one with age 33 and no sex: pay = •  by query 1 [team = NULL]
  record 5, the only one with age 34 and no sex: pay = •  by query 1 [team = NULL]
  record 2: pay = •  by (2 * query 2 [area = a] - query 3) / 3
  record 6: pay = •  by (2 * query 2 [area = b] - query 3) / 3
  record 1: pay = •  by bounds and types

known to be missing: 1
  record 8: pay is missing  by query 3

how it follows:
  3 people: pay
    query 1 [team = NULL]: AVG is MAX, so all are equal
  1 person: pay
    query 3: COUNT of pay is 0

not decided: 1 record
  no search ended within 300 seconds
"""


def test_the_first_screen_says_who_by_what_and_what_to_do_next() -> None:
    printed = text_of(several(), occasion=NOON)
    assert printed.startswith(FIRST_SCREEN)
    assert printed[: printed.index("\n\n")].count("\n") < 25


REFUSAL = RefusedQuery(1, 1, 1, "SELECT 1", "there is no column pay")
REASONS: dict[str, tuple[dict[str, Any], str]] = {
    "a refused statement": ({"refused": (REFUSAL,)}, 'under "not audited"'),
    "a limit of time": (
        {
            "undecided": ("key-8",),
            "reasons": (OpenReason("undecided", ("key-8",), "the limit of 3 seconds was reached"),),
        },
        "--seconds N",
    ),
    "undecided": (
        {
            "undecided": ("key-8",),
            "reasons": (OpenReason("undecided", ("key-8",), "they share equations"),),
        },
        "--bounds LO:HI",
    ),
    "unchecked": (
        {
            "unchecked": ("key-8",),
            "reasons": (OpenReason("unchecked", ("key-8",), "no range could be proved"),),
        },
        "--bounds LO:HI",
    ),
    "a contradiction": ({"consistent": False}, "correct the answers that contradict"),
    "what was taken for granted": ({"assumptions": ("say --missing",)}, "declare what they name"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_whatever_left_an_audit_incomplete_has_a_next_step(reason: str) -> None:
    changes, step = REASONS[reason]
    known_of_nobody = replace(empty(9), undeclared=("bounds", "integer"))
    found: Any = replace(known_of_nobody, verdict=Verdict.INCOMPLETE, **changes)
    printed = text_of(found, occasion=NOON)
    steps = printed.partition("what to do next:")[2].partition("\n\n")[0]
    assert step in steps and steps.count("\n") == 2  # and the page


def test_a_repair_is_advised_across_releases_as_it_works_there() -> None:
    releases = Release("new.csv", "", (2,), 9), Release("old.csv", "old.sql", (1,), 9, 0, 0, 0)
    printed = text_of(replace(several(), releases=releases), occasion=NOON)
    assert "write it without --against and audit that file with --against" in printed


def test_groups_are_in_the_json_in_the_order_in_which_they_are_read() -> None:
    found = fields_of(several())["exposed_groups"]
    assert [(each["people"], each["values"], each["queries"]) for each in found] == [
        (3, 3, [1]),
        (2, 2, [2, 3]),
        (1, 1, []),
    ]
    assert found[1]["text"].startswith("2 people: pay by query 2 and query 3 (taken")
    assert [each["proof"] for each in found] == ["order", "rank", "bounds"]


def test_a_certificate_is_told_in_steps() -> None:
    steps = fields_of(several())["exposed"][1]["derivation"]
    assert steps == [
        {"query": 2, "cell": {"area": "a"}, "text": "2 times, added"},
        {"query": 3, "cell": None, "text": "taken away"},
        {"query": None, "cell": None, "text": "the result divided by 3"},
    ]


def test_the_page_has_every_proof_and_links_what_it_names() -> None:
    page = page_of(several(), occasion=NOON)
    assert page.count("AVG is MAX, so all are equal") == 1 + 3
    assert 'href="#query-1">query 1 &quot;Pay by team&quot;' in page
    assert "2026-07-01 12:00 UTC" in page and "proofs" not in sections(page)


# A saved object -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reveal", [False, True])
@pytest.mark.parametrize("audit", [several(), everything()], ids=["several", "everything"])
def test_a_saved_object_reads_as_it_did_when_it_was_made(audit: Audited, reveal: bool) -> None:
    report = audit_report(audit, reveal=reveal, occasion=NOON)
    saved = json.loads(json.dumps(fields_of(audit, reveal=reveal, occasion=NOON)))
    assert as_text(saved_report(saved)) == as_text(report)
    assert as_html(saved_report(saved)) == as_html(report)
    assert (str(SECRET) in as_html(saved_report(saved))) == reveal


def test_an_object_saved_before_fields_were_added_is_rendered_without_them() -> None:
    later = ("table", "date", "options", "revealed", "statements", "exposed_groups", "missing")
    saved = {name: each for name, each in fields_of(several()).items() if name not in later}
    saved["exposed"] = [{**each} for each in saved["exposed"]]
    for each in saved["exposed"]:
        del each["derivation"], each["described"]
    assert "record 3: pay = •  by extremes, medians and comparisons" in as_text(saved_report(saved))


@pytest.mark.parametrize(
    ("saved", "said"),
    [({"schema": "casemate.attack/1"}, "an object of casemate.attack/1"), ([], "something else")],
)
def test_what_is_no_audit_is_refused(saved: object, said: str) -> None:
    with pytest.raises(Misconfigured, match=f"expected .* casemate.audit/1, and this is {said}"):
        saved_report(saved)


# Titles -------------------------------------------------------------------------------------------

SCRIPT = """-- Pay by team
SELECT 1; -- not a title
SELECT 2;
-- several lines,
  -- == The last of them ==
  SELECT 3;
-- not directly before

SELECT 4 -- within
"""


def test_a_comment_on_the_line_before_a_statement_is_its_title(tmp_path: Path) -> None:
    path = tmp_path / "log.sql"
    path.write_text(SCRIPT)
    titles = [e.title for e in read_queries(path, "postgres") if isinstance(e, Logged)]
    assert titles == ["Pay by team", None, "The last of them", None]


# Who is meant -------------------------------------------------------------------------------------


def audited(rows: Sequence[Mapping[str, object]], folder: Path, sql: str) -> Audited:
    names = list(rows[0])
    lines = [",".join("" if row[n] is None else str(row[n]) for n in names) for row in rows]
    (folder / "t.csv").write_text("\n".join([",".join(names), *lines, ""]))
    return Audit.of([sql], folder / "t.csv", private="pay")


def alone(rows: Sequence[Mapping[str, object]], place: int, names: Sequence[str]) -> bool:
    mine = [rows[place][name] for name in names]
    return sum([row[name] for name in names] == mine for row in rows) == 1


@pytest.mark.parametrize("seed", range(8))
def test_a_description_is_a_smallest_set_of_columns_that_nobody_else_has(
    seed: int, tmp_path: Path
) -> None:
    draw = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"]
    values = (None, 1, 2, 3)
    rows = [
        {"id": i, "pay": i, **{name: values[draw.integers(4)] for name in names}} for i in range(40)
    ]
    found = audited(
        rows, tmp_path, "SELECT SUM(pay) FROM t WHERE a = 1 OR b > 0 GROUP BY a, b, c, d"
    )
    assert found.exposed
    for each in found.exposed:
        place = int(str(each.record)) - 1
        sizes = [
            [chosen for chosen in combinations(names, size) if alone(rows, place, chosen)]
            for size in (1, 2, 3)
        ]
        smallest = next((sets for sets in sizes if sets), [])
        if each.described is None:
            assert not smallest
        else:
            assert tuple(sorted(n for n, _ in each.described)) in smallest
            assert all(rows[place][name] == value for name, value in each.described)


def test_columns_of_the_statements_come_first_and_keys_do_not_come_at_all(tmp_path: Path) -> None:
    rows = [{"id": i, "other": i // 2, "team": i // 2, "pay": i} for i in range(5)]
    found = audited(rows, tmp_path, "SELECT team, SUM(pay) FROM t GROUP BY team")
    assert [each.described for each in found.exposed] == [(("team", 2),)]
    unused = audited(rows, tmp_path, "SELECT SUM(pay) FROM t WHERE id = 4")
    assert [each.described for each in unused.exposed] == [(("id", 4),)]
    rows = [{"id": i, "team": i // 4, "pay": i} for i in range(8)]
    found = audited(rows, tmp_path, "SELECT team, MAX(pay), MIN(pay) FROM t GROUP BY team")
    assert {each.described for each in found.exposed} <= {None}


def test_large_tables_are_described_by_fewer_columns() -> None:
    assert _most_columns(10) == _most_columns(10_000) > _most_columns(1_000_000) >= 6
    assert _most_columns(10**9) == 1
    assert MAX_ROWS_READ // MAX_SETS > 10_000


def test_where_only_missing_values_follow_the_verdict_says_so() -> None:
    printed = text_of(replace(several(), exposed=()))
    assert printed.startswith(
        "verdict: exposed (who has no value follows from what was published)\n"
    )
    assert "  --repair FILE writes" in printed and "--reveal" not in printed
