"""What is said to be known and is not so: it is named, and nothing is proved from it."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cli.running import Captured, shown, told
from hypothesis import given
from hypothesis import strategies as st

from casemate import Audit, repair
from casemate.audit import AuditOptions, decide_exposure
from casemate.audit.region.bounds import Bounds
from casemate.audit.report import audit_report
from casemate.audit.result import Audited, OpenReason
from casemate.published import Knowledge, Premises
from casemate.report import as_text

TEAMS = ("red", "red", "red", "blue", "blue")
PAY = (3100, 2900, 4000, 5200, 3300)
LOG = ["SELECT SUM(pay) FROM t", "SELECT team, SUM(pay) FROM t GROUP BY team"]
GIVEN = "the bounds {} that were given do not hold {} of the table; audited without them"


def written(folder: Path, pay: Any = PAY) -> Path:
    path = folder / "staff.csv"
    rows = (f"p{i},{team},{value}" for i, (team, value) in enumerate(zip(TEAMS, pay, strict=True)))
    path.write_text("name,team,pay\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    return written(tmp_path)


def bounds(low: Any, high: Any, **more: Any) -> Knowledge:
    first, last = (None if end is None else Fraction(end) for end in (low, high))
    return Knowledge(first, last, **more)


def known(**ends: Any) -> Knowledge:
    """What is known of the records r1, r2, ..."""
    pairs = ((int(r[1:]), e if isinstance(e, tuple) else (e, e)) for r, e in ends.items())
    return Knowledge(known={record: tuple(map(Fraction, pair)) for record, pair in pairs})  # type: ignore[misc]  # two ends


def audited(staff: Path, knowledge: Knowledge, log: list[str] | None = None) -> Audited:
    return Audit.of(log or LOG, staff, private="pay", knowledge=knowledge)


# What the table does not keep to ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("knowledge", "sentence"),
    [
        (bounds(0, 10), GIVEN.format("0:10", "5 values")),
        (bounds(3000, 9000), GIVEN.format("3000:9000", "1 value")),
        (bounds(None, "4000.5"), GIVEN.format(":4000.5", "1 value")),
        (bounds(3000, None), GIVEN.format("3000:", "1 value")),
        (
            known(r1=5),
            "what is said to be known of record 1 is not what the table has; audited without it",
        ),
        (
            known(r1=3100, r3=(0, 7), r5=1),
            "what is said to be known of records 3, 5 is not what the table has; audited without "
            "them",
        ),
    ],
)
def test_a_false_premise_is_named_and_nobody_is_safe_by_it(
    knowledge: Knowledge, sentence: str, staff: Path
) -> None:
    found = audited(staff, knowledge)
    assert sentence in found.assumptions
    assert found.verdict == "incomplete" and not (found.unchecked or found.undecided)
    assert audited(staff, Knowledge()).verdict == "none-exposed"


def test_what_follows_without_it_is_still_found(staff: Path) -> None:
    log = [*LOG, "SELECT SUM(pay) FROM t WHERE name <> 'p0'"]
    found = audited(staff, bounds(0, 10), log)
    assert [(each.record, each.value) for each in found.exposed] == [(1, 3100)]
    assert not found.unchecked


def test_true_premises_stay_and_nothing_is_said(staff: Path) -> None:
    found = audited(staff, bounds(2900, 5200, known={4: (Fraction(5200), Fraction(5200))}))
    assert [(each.record, each.value) for each in found.exposed] == [(5, 3300)]
    assert not found.assumptions


def test_what_is_known_of_some_stays_beside_what_is_not_so(staff: Path) -> None:
    found = audited(staff, known(r1=5, r4=5200))
    assert [(each.record, each.value) for each in found.exposed] == [(5, 3300)]


def test_numbers_that_are_not_whole_are_counted(tmp_path: Path) -> None:
    halves = written(tmp_path, ["1.5", "2", "3", "4.5", "5"])
    found = audited(halves, bounds(0, 9, integer=True))
    said = "private numbers were said to be whole, and 2 values of the table are not"
    assert found.assumptions == (f"{said}; audited without that",)
    assert found.verdict == "incomplete" and found.bounds[0].high == Fraction("6.5")


def test_the_bounds_of_a_policy_are_held_against_the_table_too(staff: Path) -> None:
    policy = staff.with_name("staff.toml")
    policy.write_text(
        '[table]\nsource = "staff.csv"\n[columns.name]\nrole = "public"\n[columns.team]\n'
        'role = "public"\n[columns.pay]\nrole = "private"\nmin = 0\nmax = 5000\n'
    )
    found = Audit.of(LOG, policy)
    said = "the bounds 0:5000 that the policy declares for pay do not hold 1 value of the table"
    assert f"{said}; audited without them" in found.assumptions
    assert found.verdict == "incomplete"
    wider = Audit.of(LOG, policy, knowledge=bounds(0, 9000))  # which go before the policy's
    assert wider.verdict == "none-exposed" and not wider.assumptions


def test_a_missing_value_is_nobodys_knowledge(tmp_path: Path) -> None:
    gap = written(tmp_path, ["", 2900, 4000, 5200, 3300])
    assert any("known of record 1 is not" in each for each in audited(gap, known(r1=5)).assumptions)


def test_values_are_compared_in_the_columns_that_the_log_is_about(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("pay,bonus\n5,1\n6,2\n")
    about_pay = known(r1=5)
    found = Audit.of(
        ["SELECT SUM(pay) FROM t"], path, private=("pay", "bonus"), knowledge=about_pay
    )
    assert [(each.record, each.value) for each in found.exposed] == [(2, 6)]


def test_a_key_is_not_repeated(tmp_path: Path) -> None:
    staff = written(tmp_path)
    policy = tmp_path / "staff.toml"
    policy.write_text(
        f'[table]\nsource = "{staff}"\nkey = "name"\n[columns.name]\nrole = "identifier"\n'
        '[columns.team]\nrole = "public"\n[columns.pay]\nrole = "private"\nunbounded = true\n'
    )
    wrong = Knowledge(known={"p3": (Fraction(1), Fraction(1))})
    found = Audit.of(LOG, policy, knowledge=wrong)
    assert any("known of record 4 is not" in each for each in found.assumptions)


def test_a_repair_is_not_written_from_a_false_premise(staff: Path) -> None:
    log = [*LOG, "SELECT SUM(pay) FROM t WHERE name <> 'p0'"]
    assert not repair(log, staff, private="pay", knowledge=bounds(0, 10)).is_safe
    assert repair(log, staff, private="pay", knowledge=bounds(0, 10_000)).is_safe


def test_the_report_says_it_without_a_value(staff: Path, capsys: Captured) -> None:
    log, wrong = staff.with_name("log.sql"), staff.with_name("known.csv")
    log.write_text(";\n".join(LOG))
    wrong.write_text("record,value\n5,77\n")
    command = ("audit", str(log), "--table", str(staff), "--private", "pay")
    text = told(capsys, *command, "--bounds", "0:10")
    assert "\nthe bounds 0:10 that were given do not hold 5 values of the table; audited" in text
    text = told(capsys, *command, "--known", str(wrong))
    assert "\nwhat is said to be known of record 5 is not what the table has; audited" in text
    assert "77" not in text and "3300" not in text
    fields = shown(capsys, *command, "--bounds", "0:10", "--fail-on", "exposed", code=1)
    assert fields["verdict"] == "incomplete" and fields["reasons"] == []


# Nothing false is proved --------------------------------------------------------------------------


small = st.integers(0, 4)
premises = st.builds(
    lambda ends, values: Knowledge(
        Fraction(min(ends)), Fraction(max(ends)), known={r: (v, v) for r, v in values.items()}
    ),
    st.tuples(small, small),
    st.dictionaries(st.integers(1, 5), small.map(Fraction), max_size=3),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("premises")


@given(st.lists(small, min_size=5, max_size=5), premises, st.booleans())
def test_whatever_is_said_to_be_known_every_exposed_value_is_the_tables(
    folder: Path, pay: list[int], knowledge: Knowledge, extremes: bool
) -> None:
    low, high = knowledge.low or Fraction(0), knowledge.high or Fraction(0)
    inside = {r: ends for r, ends in knowledge.known.items() if low <= (ends[0] or 0) <= high}
    log = [*LOG, *(["SELECT team, MAX(pay) FROM t GROUP BY team"] if extremes else [])]
    found = audited(written(folder, pay), replace(knowledge, known=inside), log)
    assert all(each.value == pay[int(str(each.record)) - 1] for each in found.exposed)
    is_so = all(low <= v <= high for v in pay) and all(
        ends[0] == pay[int(str(record)) - 1] for record, ends in inside.items()
    )
    assert is_so or found.verdict != "none-exposed"


def test_the_twin_that_believes_everything_proves_what_is_not_so(
    staff: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = known(r1=5, r2=2900)
    assert not audited(staff, wrong).exposed
    monkeypatch.setattr(
        decide_exposure, "true_values_known", lambda held, *_: Premises(held.policy, wrong)
    )
    (believed,) = audited(staff, wrong).exposed
    assert (believed.record, believed.value) == (3, 7095)  # who has 4000


# Why records are left open ------------------------------------------------------------------------


MIXED = [
    *LOG,
    "SELECT team, MAX(pay), MIN(pay) FROM t GROUP BY team",
    "SELECT COUNT(*) FROM t WHERE pay > 3",
]


def assert_all_explained(found: Audited) -> None:
    for kind, records in (("undecided", found.undecided), ("unchecked", found.unchecked)):
        explained = {r for each in found.reasons if each.kind == kind for r in each.records}
        assert explained == set(records)


@given(st.lists(small, min_size=5, max_size=5), st.booleans(), st.booleans(), st.booleans())
def test_every_record_that_is_left_open_has_a_reason(
    folder: Path, pay: list[int], hurried: bool, bounded: bool, halves: bool
) -> None:
    numbers = [each + 0.5 for each in pay] if halves else pay
    options = AuditOptions(seconds=1e-9 if hurried else 20)
    knowledge = bounds(0, 9) if bounded else Knowledge()
    path = written(folder, numbers)
    found = Audit.of(MIXED, path, private="pay", knowledge=knowledge, options=options)
    assert_all_explained(found)
    assert all("limit of 1e-09 seconds" in each.reason for each in found.reasons) or not hurried


def test_a_search_that_cannot_hold_the_numbers_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"w,pay\n6,{2**50}\n10,1\n15,1\n")
    log = ["SELECT SUM(w * pay) FROM t"]
    found = Audit.of(log, path, private="pay", knowledge=bounds(0, 2**51))
    assert_all_explained(found)
    assert found.undecided == (1, 2, 3) and "too large for a search" in found.reasons[0].reason


def test_answers_that_no_whole_numbers_give_are_the_reason(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("w,pay\n6,1\n10,1\n15,1\n")
    (tmp_path / "log.csv").write_text("sql,answer\nSELECT SUM(w * pay) FROM t,29\n")
    table, log = tmp_path / "t.csv", tmp_path / "log.csv"
    found = Audit.of(log, table, private="pay", knowledge=bounds(0, 2))
    assert_all_explained(found)
    assert [each.reason for each in found.reasons] == [
        "no whole numbers within the bounds give all published numbers"
    ]


def test_ranges_that_are_not_proved_and_contradictions_name_their_statements(
    staff: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def nothing(case: Any, *_: object) -> Bounds:
        count = case.equations.system.columns
        return Bounds((None,) * count, (None,) * count, ("unchecked",) * count, rows)

    monkeypatch.setattr("casemate.audit.decide_exposure.ranges", nothing)
    log = staff.with_name("log.sql")
    log.write_text(";\n".join(LOG))
    command = ("audit", str(log), "--table", str(staff), "--private", "pay")
    rows: tuple[int, ...] = ()
    text = told(capsys, *command)
    assert "not checked: 5 records\n  no range of theirs could be proved" in text
    rows = (0, 1)
    text = told(capsys, *command)
    assert "\n  what queries 1 and 2 show contradicts the declared types, bounds or values" in text
    page = told(capsys, *command, "--format", "html")
    assert "ot checked: records 1, 2, 3, 4, 5" in page
    assert "hat queries 1 and 2 show contradicts" in page
    assert shown(capsys, *command)["reasons"][0]["records"] == [1, 2, 3, 4, 5]


def test_a_single_record_is_named_where_reasons_differ(staff: Path) -> None:
    found = replace(
        audited(staff, Knowledge()),
        undecided=(1, 2, 3),
        reasons=(
            OpenReason("undecided", (1, 2), "the one"),
            OpenReason("undecided", (3,), "the other"),
        ),
    )
    text = as_text(audit_report(found))
    assert "not decided: 3 records\n  records 1, 2: the one\n  record 3: the other\n" in text
