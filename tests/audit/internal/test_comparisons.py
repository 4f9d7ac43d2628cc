"""Comparisons of private numbers with constants, through the whole audit."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from audit.every_world import consistent, exposed
from audit.small_world import Secret, World, opened

from casemate.audit import Audit, AuditOptions
from casemate.audit.result import Audited, Verdict
from casemate.query.parse import parse_statement


def bare(values: list[object], folder: Path, *log: str) -> Audited:
    """A table without bounds: id and x."""
    lines = [f"{i},{value}" for i, value in enumerate(values, start=1)]
    (folder / "t.csv").write_text("\n".join(["id,x", *lines]) + "\n")
    return Audit.of(log, folder / "t.csv", private="x")


def values(found: Audited) -> list[tuple[object, float]]:
    return [(each.record, float(Fraction(str(each.value)))) for each in found.exposed]


@pytest.mark.parametrize(
    ("above", "shown"),
    [("x > 7.5", [(1, 7.5)]), ("x >= 7.6", [])],
)
def test_numbers_that_need_not_be_whole_are_told_apart_by_how_they_are_compared(
    above: str, shown: list[tuple[int, float]], tmp_path: Path
) -> None:
    """Nobody is above 7.5: it is 7.5 itself. Nobody is 7.6 or more: 7.55 is possible."""
    found = bare(
        ["7.5", "3.2"],
        tmp_path,
        "SELECT COUNT(*) FROM t WHERE x >= 7.5 AND id = 1",
        f"SELECT COUNT(*) FROM t WHERE {above} AND id = 1",
    )
    assert values(found) == shown
    assert found.undecided == ()


def test_a_sum_and_a_threshold_that_are_harmless_alone_expose_both_together(
    tmp_path: Path,
) -> None:
    total = "SELECT SUM(x) FROM t WHERE id < 3"
    reached = "SELECT COUNT(*) FROM t WHERE x >= 5 AND id < 3"
    assert bare([5, 5, 3], tmp_path, total).verdict is Verdict.NONE_EXPOSED
    assert bare([5, 5, 3], tmp_path, reached).verdict is Verdict.NONE_EXPOSED
    assert values(bare([5, 5, 3], tmp_path, total, reached)) == [(1, 5), (2, 5)]
    assert values(bare(["5.0", "5.0", "3.5"], tmp_path, total, reached)) == [(1, 5), (2, 5)]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT SUM(x) FROM t WHERE x > 4", "not linear in what is secret"),
        ("SELECT COUNT(*) FROM t WHERE x > id", "not linear in what is secret"),
        ("SELECT MAX(id) FROM t WHERE x > 4", "not linear in what is secret"),
        ("SELECT COUNT(DISTINCT x) FROM t", "private column"),
        ("SELECT x > 4, COUNT(*) FROM t GROUP BY 1 HAVING COUNT(*) > 1", "HAVING decides"),
    ],
)
def test_what_a_comparison_makes_unreadable_is_refused(
    sql: str, reason: str, tmp_path: Path
) -> None:
    found = bare([5, 6], tmp_path, sql)
    assert found.verdict is Verdict.INCOMPLETE
    assert reason in found.refused[0].reason


# Against every table -----------------------------------------------------------------------------

HALVES = [Decimal(each) / 2 for each in range(7)]
QUARTERS = tuple(Decimal(each) / 4 for each in range(13))
CONDITIONS = ["TRUE", "sex = 'f'", "age > 1", "age = 2"]


def real_world(rng: Random, *, hidden: bool = False) -> World:
    """Two or three numbers from 0 to 3, on a grid finer than all constants and published values."""
    secret = Secret("income", "DECIMAL(6,2)", "min = 0\nmax = 3", QUARTERS)
    values: list[Decimal | None] = list(HALVES)
    if hidden:
        policy = f'{secret.policy}\nmissing = "secret"'
        secret = replace(secret, policy=policy, possible=(*QUARTERS, None))
        values = [None, *HALVES[:1], *HALVES]
    rows = tuple(
        {
            "id": i,
            "sex": rng.choice("fm"),
            "age": rng.choice([1, 2, 3]),
            "weight": 1,
            "area": 1,
            "income": rng.choice(values),
        }
        for i in range(1, rng.choice([2, 3, 3]) + 1)
    )
    return World((secret,), rows)


def comparison(rng: Random) -> str:
    value, other = sorted(rng.sample(HALVES, 2))
    operator = rng.choice(["<", "<=", ">", ">=", "=", "<>"])
    return rng.choice(
        [f"income {operator} {value}", f"income BETWEEN {value} AND {other}", f"{value} < income"]
    )


def statement(rng: Random) -> str:
    where = rng.choice(CONDITIONS)
    return rng.choice(
        [
            f"SELECT COUNT(*) FROM people WHERE {where} AND {comparison(rng)}",
            f"SELECT COUNT(*) FILTER (WHERE {comparison(rng)} AND {where}) FROM people",
            f"SELECT {comparison(rng)}, COUNT(*) FROM people WHERE {where} GROUP BY 1",
            f"SELECT sex, COUNT(*) FROM people WHERE {comparison(rng)} GROUP BY 1",
            f"SELECT MIN(income), MAX(income) FROM people WHERE {where}",
            "SELECT age > 1, MAX(income) FROM people GROUP BY 1",
        ]
    )


def test_numbers_that_are_only_compared_get_the_verdict_of_brute_force(
    seed: int, tmp_path: Path
) -> None:
    rng, hits = Random(f"reals {seed}"), 0
    for _ in range(8):
        world = real_world(rng)
        log = [statement(rng) for _ in range(rng.randint(1, 5))]
        with opened(world, tmp_path) as table:
            found = Audit.of(log, table)
            tables = consistent(world, [parse_statement(sql, table.policy) for sql in log])
        expected = {(each.record, each.value) for each in exposed(world, tables)}
        assert (found.refused, found.undecided, found.unchecked) == ((), (), ()), log
        assert {(each.record, each.value) for each in found.exposed} == expected, log
        hits += len(expected)
    assert hits > 0


@pytest.mark.parametrize("where", ["k = 1 AND x > 0", "x > 0", "k < 3 AND x > 0 AND k <> 2"])
def test_a_comparison_does_not_tell_0_from_a_missing_value(where: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k,g,x\n1,b,\n2,a,1\n")
    (tmp_path / "t.toml").write_text(
        '[table]\nsource = "t.csv"\n[columns.k]\n[columns.g]\n[columns.x]\nrole = "private"\n'
        'type = "decimal"\nmin = 0\nmax = 1\nmissing = "secret"\n'
    )
    log = [f"SELECT g, COUNT(*) FROM t WHERE {where} GROUP BY g"]
    found = Audit.of(log, tmp_path / "t.toml")
    assert (found.exposed, found.missing) == ((), ())
    assert found.undecided == ()
    there = Audit.of([*log, "SELECT COUNT(x) FROM t WHERE k = 1"], tmp_path / "t.toml")
    assert [each.record for each in there.missing] == [1]
    assert 1 not in there.undecided


def test_compared_numbers_that_may_be_missing_are_exposed_only_if_every_table_has_them(
    seed: int, tmp_path: Path
) -> None:
    rng, hits = Random(f"hidden reals {seed}"), 0
    for _ in range(8):
        world = real_world(rng, hidden=True)
        log = [statement(rng) for _ in range(rng.randint(1, 4))]
        with opened(world, tmp_path) as table:
            found = Audit.of(log, table)
            tables = consistent(world, [parse_statement(sql, table.policy) for sql in log])
        expected = {(each.record, each.value) for each in exposed(world, tables)}
        shown = {(each.record, each.value) for each in found.exposed}
        shown |= {(each.record, None) for each in found.missing}
        assert shown <= expected, log
        assert not {record for record, _ in shown} & {*found.undecided}, log
        assert {r for r, _ in expected - shown} <= {*found.undecided, *found.unchecked}, log
        hits += len(expected)
    assert hits > 0


def test_people_whom_no_statement_tells_apart_are_free_beside_comparisons(tmp_path: Path) -> None:
    """Too many for an engine that looks at people one by one, in the time that it is given."""
    rows = [f"{i % 5},{i % 3},{(7 * i) % 101}.5" for i in range(3_000)]
    (tmp_path / "t.csv").write_text("\n".join(["g,h,x", *rows]) + "\n")
    counts = "SELECT g, COUNT(*) FROM t WHERE x > 50 GROUP BY g"
    for log in ([counts], [counts, "SELECT h, AVG(x) FROM t GROUP BY h"]):
        found = Audit.of(log, tmp_path / "t.csv", private="x", options=AuditOptions(seconds=6))
        assert found.verdict is Verdict.NONE_EXPOSED


def test_equal_numbers_are_free_inside_a_band_and_exposed_where_it_has_one_number(
    tmp_path: Path,
) -> None:
    between = [f"SELECT COUNT(*) FROM t WHERE x {each} AND id < 3" for each in (">= 5", "> 5")]
    assert bare(["5.5", "5.5", "3.5"], tmp_path, *between).verdict is Verdict.NONE_EXPOSED
    assert values(bare(["5.0", "5.0", "3.5"], tmp_path, *between)) == [(1, 5), (2, 5)]


def test_grouped_comparisons_beside_sums_get_the_verdict_of_brute_force(
    seed: int, tmp_path: Path
) -> None:
    rng, hits = Random(f"whole {seed}"), 0
    secret = Secret("income", "INTEGER", "min = 0\nmax = 2", (0, 1, 2))
    shown = ["SUM(income)", "MAX(income)", "COUNT(*) FILTER (WHERE income > 0)"]
    shown += [
        "COUNT(*) FILTER (WHERE income >= 2)",
        "SUM(income) + COUNT(*) FILTER (WHERE income = 1)",
    ]
    for _ in range(8):
        missing = rng.random() < 0.4
        policy = secret.policy + '\nmissing = "secret"' * missing
        own = replace(secret, policy=policy, possible=(*secret.possible, *[None] * missing))
        world = World(
            (own,),
            tuple(
                {
                    "id": i,
                    "sex": rng.choice("ffm"),
                    "age": rng.choice([1, 1, 2]),
                    "weight": 1,
                    "area": 1,
                    "income": rng.choice(own.possible),
                }
                for i in range(1, 6)
            ),
        )
        log = [
            f"SELECT {key}, {rng.choice(shown)} FROM people GROUP BY {key}"
            for key in rng.choices(["sex", "age", "sex, age"], k=rng.randint(1, 4))
        ]
        with opened(world, tmp_path) as table:
            found = Audit.of(log, table)
            tables = consistent(world, [parse_statement(sql, table.policy) for sql in log])
        expected = {(each.record, each.value) for each in exposed(world, tables)}
        said = {(each.record, each.value) for each in found.exposed}
        said |= {(each.record, None) for each in found.missing}
        assert (found.refused, found.undecided, found.unchecked) == ((), (), ()), (world, log)
        assert said == expected, (world, log)
        hits += len(expected)
    assert hits > 0
