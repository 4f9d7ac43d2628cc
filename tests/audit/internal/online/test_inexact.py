"""Logs that leak through overflow, cut digits and rounding: offline never safe, online harmless.

Each of them asks for something that looks linear in a salary, or public, and is neither: where the
engine overflows, cuts or absorbs, its answer is another function of the salary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from oracles.statements import show

from casemate.audit import Audit, witnesses
from casemate.audit.online import OnlineAuditor
from casemate.audit.online import auditor as online
from casemate.audit.result import Audited, Verdict
from casemate.errors import Misconfigured, Refused
from casemate.published import Knowledge, verified
from casemate.query.parse import parse_statement
from casemate.query.records import linear
from casemate.table import Table

LARGEST = 2**63 - 1
PAY = {"ana": 52, "ben": 61, "cem": 45, "dora": 70}
SHIFT = LARGEST - 60
LEAKS = {
    "adding": f"SUM((pay + {SHIFT}) - {SHIFT})",
    "multiplying": f"SUM(pay * {LARGEST // 60})",
    "cut decimals": "SUM(pay * 0.0000001 * 0.0000001)",
    "absorbing doubles": "SUM((CAST(pay AS DOUBLE PRECISION) + 1e18) - 1e18)",
    "casts": "SUM(CAST(CAST(pay AS DOUBLE PRECISION) * 1e15 AS BIGINT))",
    "counting": f"COUNT(pay + {SHIFT})",
    "coalescing": f"SUM(COALESCE(pay + {SHIFT}, 0))",
    "nullif": "SUM(NULLIF(pay * 2, 104))",
    "a condition": f"SUM(CASE WHEN pay + {SHIFT} IS NULL THEN 1 ELSE 0 END)",
    "dividing": "SUM(pay / 53)",
    "dividing doubles": "SUM(pay / 1e300 / 1e300)",
    "rounding": "SUM(ROUND(pay / 100.0))",
    "combining": f"(SUM(pay) + {LARGEST - 200}) - SUM(pay)",
    "nothing": f"SUM(pay) * {LARGEST // 200} * 0",
}


def written(folder: Path, pay: dict[str, Any] = PAY, kind: str = "BIGINT") -> str:
    path = folder / f"{abs(hash((tuple(pay.items()), kind)))}.db"
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE staff (name TEXT, pay {kind})")
            connection.executemany("INSERT INTO staff VALUES (?, ?)", list(pay.items()))
    return f"duckdb:///{path}#staff"


def audited(folder: Path, *log: str, **options: Any) -> Audited:
    with Table.open(written(folder), key="name", private=("pay",)) as table:
        return Audit.of(list(log), table, **options)


@pytest.fixture
def accept_everything(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The broken twin: every formula counts as exact."""
    monkeypatch.setattr(linear, "inexact", lambda _: None)
    monkeypatch.setattr(linear, "is_exact_beside", lambda *_: True)
    linear.linear_form.cache_clear()
    yield
    linear.linear_form.cache_clear()


# Offline ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
@pytest.mark.parametrize("who", ["", " WHERE name = 'ana'", " WHERE name <> 'dora'"])
def test_a_leaking_log_is_never_called_safe(leak: str, who: str, tmp_path: Path) -> None:
    found = audited(tmp_path, "SELECT SUM(pay) FROM staff", f"SELECT {leak} FROM staff{who}")
    assert found.verdict is not Verdict.NONE_EXPOSED


def test_without_the_certificate_two_counts_give_a_salary_and_are_called_safe(
    tmp_path: Path, accept_everything: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the engine gives is compared with the formula besides, and that must be broken too."""
    limits = [LARGEST - pay for pay in (51, 52)]
    with duckdb.connect() as engine:
        shown = [
            f"SELECT list(TRY(i + {limit}) ORDER BY i) FROM range(200) t(i)" for limit in limits
        ]
        first, second = (engine.execute(sql).fetchall()[0][0] for sql in shown)
    assert [pay for pay in range(200) if first[pay] is None and second[pay] is not None] == [52]
    counts = [f"SELECT COUNT(pay + {each}) FROM staff WHERE name = 'ana'" for each in limits]
    assert audited(tmp_path, *counts).verdict is Verdict.INCOMPLETE
    monkeypatch.setattr(verified, "_different", lambda *_: {})
    assert audited(tmp_path, *counts).verdict is Verdict.NONE_EXPOSED


def test_everyday_formulas_stay_decided_without_bounds(tmp_path: Path) -> None:
    log = ["SELECT SUM(pay * 12), AVG(pay + 1) FROM staff", "SELECT SUM(-pay) FROM staff"]
    found = audited(tmp_path, *log)
    assert found.verdict is Verdict.NONE_EXPOSED
    assert found.assumptions[0].startswith("pay has no declared bounds, so any number from -1000")
    more = audited(tmp_path, *log, "SELECT SUM(pay * 7) FROM staff WHERE name <> 'dora'")
    assert [(each.record, each.value) for each in more.exposed] == [("dora", 70)]


def test_declared_bounds_make_a_formula_exact(tmp_path: Path) -> None:
    sql = f"SELECT SUM(pay * {LARGEST // 1000}) FROM staff"
    assert audited(tmp_path, sql).verdict is Verdict.INCOMPLETE
    near = Knowledge(low=0, high=1000)  # type: ignore[arg-type]  # whole numbers are fractions
    assert audited(tmp_path, sql, knowledge=near).refused == ()


def test_a_large_weight_gives_a_value_away_by_its_digits(tmp_path: Path) -> None:
    weighed = f"SELECT SUM(CASE WHEN name = 'dora' THEN pay * {2**64} ELSE pay END) FROM staff"
    assert [each.record for each in audited(tmp_path, weighed).exposed] == ["dora"]
    later = (
        "SELECT SUM(CASE WHEN name = 'dora' THEN pay ELSE 0 END) * 10000000 + SUM(pay) FROM staff"
    )
    assert audited(tmp_path, later).verdict is not Verdict.NONE_EXPOSED


def test_a_table_outside_of_its_bounds_is_refused_by_name(tmp_path: Path) -> None:
    source = written(tmp_path, {"ana": 2**62, "ben": 3})
    policy = tmp_path / "staff.toml"
    policy.write_text(
        f'[table]\nsource = "{source}"\nkey = "name"\n[columns.name]\nrole = "public"\n'
        f'[columns.pay]\nrole = "private"\ntype = "integer"\nmin = 0\nmax = 1000\n'
    )
    found = Audit.of(["SELECT COUNT(pay) FROM staff", "SELECT SUM(pay * 4) FROM staff"], policy)
    assert found.verdict is not Verdict.NONE_EXPOSED
    assert [each.query for each in found.refused] == [2]
    assert "may leave 64 bits" in found.refused[0].reason
    assert any("policy declares for pay do not hold 1 value" in each for each in found.assumptions)


def test_absorbed_doubles_prove_no_wrong_value(tmp_path: Path) -> None:
    """The engine's sum of 1e16 and 1 is 1e16, and the difference of two sums would say 0."""
    source = written(tmp_path, {"ana": 1e16, "ben": 1.0, "cem": 3e15}, "DOUBLE")
    with Table.open(source, key="name", private=("pay",)) as table:
        log = ["SELECT SUM(pay) FROM staff", "SELECT SUM(pay) FROM staff WHERE name <> 'ben'"]
        found = Audit.of(log, table)
    assert found.exposed == ()
    (nearly,) = found.exposed_if_exact
    assert nearly.record == "ben"
    assert nearly.value is not None
    assert nearly.margin is not None
    assert abs(nearly.value - 1) <= nearly.margin


def test_doubles_far_above_their_rounding_are_exposed_with_the_tables_value(tmp_path: Path) -> None:
    source = written(tmp_path, {"ana": 0.1, "ben": 0.2, "cem": 0.3}, "DOUBLE")
    with Table.open(source, key="name", private=("pay",)) as table:
        log = ["SELECT SUM(pay) FROM staff", "SELECT SUM(pay) FROM staff WHERE name <> 'ben'"]
        (found,) = Audit.of(log, table).exposed
    assert float(found.value) == 0.2  # type: ignore[arg-type]  # a number


# Online -------------------------------------------------------------------------------------------

OTHER = {"ana": 53, "ben": 60, "cem": 44, "dora": 71}
"""Everybody earns something else, and all together the same."""

ONE = "CASE WHEN name = 'dora' THEN {} ELSE pay END"
TARGETED = {
    "adding": f"SUM({ONE.format(f'(pay + {LARGEST - 70}) - {LARGEST - 70}')})",
    "decimals": f"SUM({ONE.format('pay * 100000000000000.0 / 100000000000000.0')})",
    "doubles": f"SUM({ONE.format('(CAST(pay AS DOUBLE PRECISION) + 1e18) - 1e18')})",
    "averages": f"AVG({ONE.format(f'(pay + {LARGEST - 70}) - {LARGEST - 70}')})",
    "results": f"(SUM(pay) + {LARGEST - 228}) - {LARGEST - 228}",
    "differences": f"(SUM(pay) * {LARGEST // 228}) - SUM(pay) * {LARGEST // 228 - 1}",
}


def asked(folder: Path, pay: dict[str, Any], sql: str, scans_from: int) -> Any:
    with (
        Table.open(written(folder, pay), key="name", private=("pay",)) as table,
        OnlineAuditor(table, scans_from=scans_from) as auditor,
    ):
        auditor.ask("SELECT SUM(pay) FROM staff")
        try:
            return auditor.ask(sql).rows
        except Refused as error:
            return str(error)


@pytest.mark.parametrize("scans_from", [1, 10**9])
@pytest.mark.parametrize("leak", [*LEAKS.values(), *TARGETED.values()], ids=[*LEAKS, *TARGETED])
def test_tables_with_the_same_total_answer_and_refuse_alike(
    leak: str, scans_from: int, tmp_path: Path
) -> None:
    """Only the total may be known, so nothing may tell one of them from the other."""
    for who in ("", " WHERE name = 'dora'"):
        sql = f"SELECT {leak} FROM staff{who}"
        first, second = (asked(tmp_path, pay, sql, scans_from) for pay in (PAY, OTHER))
        assert first == second


def test_answers_of_the_askers_own_expression_would_tell_them_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: answered as typed, the same allowed questions give a salary away."""
    show_as_typed = lambda statement, _, source: show(statement, source)  # noqa: E731
    monkeypatch.setattr(online, "answer_statement", show_as_typed)
    told = [
        leak
        for leak in TARGETED.values()
        if asked(tmp_path, PAY, f"SELECT {leak} FROM staff", 10**9)
        != asked(tmp_path, OTHER, f"SELECT {leak} FROM staff", 10**9)
    ]
    assert len(told) >= 3


@pytest.mark.parametrize("scans_from", [1, 10**9])
def test_everyday_formulas_are_answered_from_their_form(scans_from: int, tmp_path: Path) -> None:
    everyday = {
        "SUM(pay * 12)": 228 * 12,
        "SUM(pay + 1)": 232,
        "AVG(pay * 2)": 114,
        "SUM(pay) / COUNT(*)": 57,
        "COUNT(pay)": 4,
        f"SUM((pay + {LARGEST}) - {LARGEST})": 228,
    }
    for sql, value in everyday.items():
        assert asked(tmp_path, PAY, f"SELECT {sql} FROM staff", scans_from) == ((value,),)


def test_weights_by_which_digits_would_tell_are_refused(tmp_path: Path) -> None:
    for weight in (10**7, 2**64):
        sql = f"SELECT SUM({ONE.format(f'pay * {weight}')}) FROM staff"
        assert "1,000 times" in asked(tmp_path, PAY, sql, 1)


def test_a_chain_of_weights_is_refused_as_one_large_weight_is(tmp_path: Path) -> None:
    chain = [
        f"SELECT SUM(CASE WHEN name = '{one}' THEN 100 ELSE 1 END * pay) FROM staff "
        f"WHERE name IN ('{one}', '{other}')"
        for one, other in pairwise(PAY)
    ]
    with (
        Table.open(written(tmp_path, PAY), key="name", private="pay") as table,
        OnlineAuditor(table) as auditor,
    ):
        allowed = [auditor.would_expose(sql).allowed for sql in chain]
        auditor.record(chain[0])
        assert allowed == [True] * 3 and not auditor.would_expose(chain[1]).allowed


def test_weights_that_tell_decimals_apart_by_their_digits_leave_an_audit_incomplete(
    tmp_path: Path,
) -> None:
    source = written(tmp_path, {"ana": 31.00, "ben": 29.07}, "DECIMAL(18, 2)")
    sql = "SELECT SUM(CASE WHEN name = 'ana' THEN 1000000000000 ELSE 1 END * pay) FROM staff"
    for bounds in (Knowledge(), Knowledge(low=Fraction(0), high=Fraction(100))):
        with Table.open(source, key="name", private="pay") as table:
            found = Audit.of([sql], table, knowledge=bounds)
        assert found.verdict is Verdict.INCOMPLETE


def test_a_sum_past_all_doubles_is_missing_and_no_error(tmp_path: Path) -> None:
    large = {"ana": 1.5, "ben": 2.5, "cem": 2e9}
    with Table.open(written(tmp_path, large, "DOUBLE"), key="name", private="pay") as table:
        for scans_from in (1, 10**9):
            with OnlineAuditor(table, scans_from=scans_from) as auditor:
                assert auditor.ask("SELECT SUM(pay * 1e300) FROM staff").rows == ((None,),)


@pytest.mark.parametrize("pay", ["2907", "2907.5", "2907.25"])
def test_no_cell_of_a_file_decides_what_may_be_asked(tmp_path: Path, pay: str) -> None:
    path = tmp_path / "staff.csv"
    path.write_text(f"name,pay\nana,3100\nben,{pay}\ncem,4000\n")
    asked = ["SUM(pay / 2)", "SUM(pay * 1e300)", "SUM(pay::integer)", "SUM(pay) / COUNT(*)"]
    with OnlineAuditor(path, private="pay") as auditor:
        allowed = [auditor.would_expose(f"SELECT {each} FROM staff").allowed for each in asked]
    assert allowed == [True, False, False, True]


def test_doubles_are_added_up_exactly_and_rounded_once(tmp_path: Path) -> None:
    doubles = {"ana": 1e16, "ben": 1.0, "cem": -1e16, "dora": 0.1}
    with Table.open(written(tmp_path, doubles, "DOUBLE"), key="name", private=("pay",)) as table:
        for scans_from in (1, 10**9):
            with OnlineAuditor(table, scans_from=scans_from) as auditor:
                assert auditor.ask("SELECT SUM(pay) FROM staff").rows == ((1.1,),)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), None])
def test_values_about_which_nothing_can_be_answered_are_found_at_the_beginning(
    value: float | None, tmp_path: Path
) -> None:
    source = written(tmp_path, {"ana": 1.0, "ben": value, "cem": 2.0}, "DOUBLE")
    with (
        pytest.raises(Misconfigured, match=r"pay'? has"),
        Table.open(source, key="name", private=("pay",)) as table,
    ):
        OnlineAuditor(table)


# Every table --------------------------------------------------------------------------------------

VALUES = range(4)


@dataclass(frozen=True)
class Asked:
    """A question in the language, and the same for DuckDB with overflow as NULL."""

    sql: str
    raw: str


def expressions(rng: Random) -> tuple[str, str]:
    """A formula in pay near one of its limits, as it is written, and for DuckDB."""
    limit = LARGEST - rng.randrange(4)
    factor = LARGEST // rng.randrange(1, 4)
    tiny = f"0.{'0' * rng.randrange(5, 7)}{rng.randrange(1, 6)}"
    cut = "TRY_CAST(TRY(CAST(1 AS DECIMAL(38, 0)) * {} * {}) AS DECIMAL(38, 12))"
    decimal = cut.format(cut.format("CAST(pay AS DECIMAL(19, 0))", tiny), tiny)
    shifted = f"TRY(TRY(pay + {limit}) - {limit})"
    double = "(CAST(pay AS DOUBLE) + 1e16) - 1e16"
    return rng.choice(
        [
            ("pay", "pay"),
            ("pay * 3 + 1", "pay * 3 + 1"),
            (f"(pay + {limit}) - {limit}", shifted),
            (f"pay + {limit}", f"TRY(pay + {limit})"),
            (f"pay * {factor}", f"TRY(pay * {factor})"),
            (f"pay * {tiny} * {tiny}", decimal),
            (double.replace("DOUBLE", "DOUBLE PRECISION"), double),
            ("pay / 2", "pay // 2"),
            ("NULLIF(pay, 2)", "nullif(pay, 2)"),
        ]
    )


def question(rng: Random, people: Sequence[str]) -> Asked:
    written, raw = expressions(rng)
    form = rng.choice(
        [
            "SUM({})",
            "COUNT({})",
            "SUM(COALESCE({}, 1))",
            "SUM(CASE WHEN {} IS NULL THEN 1 ELSE 0 END)",
            "COUNT(*) FILTER (WHERE {} > 2)",
            "SUM(CASE WHEN {} > 1 THEN 1 ELSE 0 END)",
        ]
    )
    some = rng.sample(list(people), rng.randrange(1, len(people) + 1))
    where = "name IN (" + ", ".join(f"'{name}'" for name in some) + ")"
    sql = f"SELECT {form.format(written)} FROM staff WHERE {where}"
    return Asked(sql, f"SELECT {form.format(raw)} FROM worlds WHERE {where}")


def consistent(log: Sequence[Asked], pay: dict[str, int]) -> list[tuple[int, ...]]:
    """Every table of which the log shows what it shows of the true one."""
    worlds = list(product(VALUES, repeat=len(pay)))
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE worlds (w INT, name TEXT, pay BIGINT)")
        named = (
            (w, *pair) for w, each in enumerate(worlds) for pair in zip(pay, each, strict=True)
        )
        rows = ", ".join(map(str, named))
        engine.execute(f"INSERT INTO worlds VALUES {rows}")
        shown: dict[int, list[Any]] = {w: [] for w in range(len(worlds))}
        for each in log:
            grouped = each.raw.replace("SELECT ", "SELECT w, ", 1) + " GROUP BY w"
            for w, number in engine.execute(grouped).fetchall():
                shown[w].append(number)
    true = shown[worlds.index(tuple(pay.values()))]
    return [each for w, each in enumerate(worlds) if shown[w] == true]


def audited_log(log: Sequence[Asked], pay: dict[str, int], folder: Path, bounds: bool) -> Audited:
    declared = f"min = {VALUES[0]}\nmax = {VALUES[-1]}\n" if bounds else ""
    policy = folder / "staff.toml"
    policy.write_text(
        f'[table]\nsource = "{written(folder, pay)}"\nkey = "name"\n[columns.name]\n'
        f'role = "public"\n[columns.pay]\nrole = "private"\ntype = "integer"\n{declared}'
    )
    return Audit.of([each.sql for each in log], policy)


def check(rng: Random, folder: Path, bounds: bool = True) -> Verdict:
    pay = {name: rng.choice(VALUES) for name in list(PAY)[: rng.randrange(2, 5)]}
    log = [question(rng, list(pay)) for _ in range(rng.randrange(1, 4))]
    found = audited_log(log, pay, folder, bounds)
    tables = consistent(log, pay)
    left = [{table[place] for table in tables} for place in range(len(pay))]
    if found.verdict is Verdict.NONE_EXPOSED and bounds:
        assert all(len(each) > 1 for each in left), [each.sql for each in log]
    for each in found.exposed if bounds else ():
        assert left[list(pay).index(str(each.record))] == {each.value}, [each.sql for each in log]
    return found.verdict


def test_nobody_whom_every_table_gives_away_is_called_safe(tmp_path: Path) -> None:
    rng = Random(15)
    seen = [check(rng, tmp_path) for _ in range(16)]
    assert all(verdict in seen for verdict in Verdict)


def test_every_table_would_notice_a_certificate_that_accepts_everything(
    tmp_path: Path, accept_everything: None
) -> None:
    rng = Random(15)
    with pytest.raises(AssertionError, match="SELECT"):
        [check(rng, tmp_path) for _ in range(100)]


def test_second_tables_without_bounds_show_what_was_published(tmp_path: Path) -> None:
    """The engine computes the log on every second table, and shows the same."""
    rng, shown = Random(16), 0
    while shown < 1:
        pay = {name: rng.choice(VALUES) for name in list(PAY)}
        log = [question(rng, list(pay)).sql for _ in range(2)]
        with Table.open(written(tmp_path, pay), key="name", private=("pay",)) as table:
            if Audit.of(log, table).verdict is not Verdict.NONE_EXPOSED:
                continue
            published = answers(log, table)
            found = witnesses(log, table).tables
        for each in found:
            order = enumerate(sorted(pay))
            second = {name: int(str(each.get((i, "pay"), pay[name]))) for i, name in order}
            with Table.open(written(tmp_path, second), key="name", private=("pay",)) as other:
                assert answers(log, other) == published, log
        shown += bool(found)


def answers(log: Sequence[str], table: Table) -> list[Any]:
    return [show(parse_statement(sql, table.policy), table.source).rows for sql in log]


def test_public_constants_add_up_past_64_bits(tmp_path: Path) -> None:
    source = written(tmp_path, {"ana": 1, "ben": 2, "cem": 3}, "BIGINT")
    log = [
        f"SELECT SUM(pay - {2**62}) FROM staff",
        "SELECT SUM(pay) FROM staff WHERE name <> 'ana'",
    ]
    with Table.open(source, key="name", private=("pay",)) as table:
        found = Audit.of(log, table)
    assert [(each.record, each.value) for each in found.exposed] == [("ana", 1)]


def test_a_combination_of_private_sums_is_rounded_once(tmp_path: Path) -> None:
    """Each sum rounded by itself would be 2^53, and their difference 0."""
    source = written(tmp_path, {"ana": 2**53, "ben": 1, "cem": 0}, "DOUBLE")
    sql = "SELECT SUM(pay) - SUM(pay) FILTER (WHERE name = 'ana') FROM staff"
    with Table.open(source, key="name", private=("pay",)) as table:
        assert OnlineAuditor(table).ask(sql).rows == ((1.0,),)
