"""Ranges within published extremes, against every table that gives the same answers."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from audit.every_world import consistent
from audit.small_world import CONDITIONS, World, number, opened

from casemate import Audit
from casemate.published import Knowledge
from casemate.query.parse import Logged, parse_statement

PAY = "team,pay\n" + "".join(f"a,{50_000 + 50 * i}\nb,{60_000 + 9_000 * i}\n" for i in range(1, 7))


def random_case(rng: Random, folder: Path) -> int:
    """Audit extremes and sums of a small table; how many ranges are narrower than before."""
    secret, size = number(rng, nullable=True), rng.randint(2, 4)
    ages, sexes = [1, 2, 3], ["f", "m"]
    rows = tuple(
        {"id": i, "sex": rng.choice(sexes), "age": rng.choice(ages), "weight": 1, "area": 1}
        | {secret.name: rng.choice(secret.possible)}
        for i in range(1, size + 1)
    )
    world = World((secret,), rows)
    shown = [rng.choice(["MIN", "MAX", "MAX", "MIN", "MEDIAN", "SUM"]) for _ in range(3)]
    log = [f"SELECT {f}({secret.name}) FROM people WHERE {rng.choice(CONDITIONS)}" for f in shown]
    with opened(world, folder) as table:
        found = Audit.of(log, table)
        tables = consistent(world, [parse_statement(sql, table.policy) for sql in log])
    for each in found.bounds:
        own = {row[int(str(each.record)) - 1][0] for row in tables}
        values = [value for value in own if value is not None]
        assert each.low is None or all(each.low <= value for value in values), log
        assert each.high is None or all(value <= each.high for value in values), log
    return sum(bool(each.shrinkage) for each in found.bounds)


def test_a_range_holds_every_possible_value_where_extremes_were_published(
    seed: int, tmp_path: Path
) -> None:
    rng = Random(f"extremes {seed}")
    assert sum(random_case(rng, tmp_path) for _ in range(25)) > 10


def ends(low: Fraction | None, high: Fraction | None) -> str:
    return f"{low} to {high}"


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    path = tmp_path / "staff.csv"
    path.write_text(PAY)
    return path


def test_who_is_between_a_near_minimum_and_maximum_is_nearly_known(staff: Path) -> None:
    bounds = Knowledge(low=Fraction(0), high=Fraction(1_000_000))
    log = ["SELECT team, MIN(pay), MAX(pay), COUNT(*) FROM t GROUP BY team"]
    found = Audit.of(log, staff, private="pay", knowledge=bounds)
    assert [each.record for each in found.tight] == [1, 3, 5, 7, 9, 11]
    assert {ends(each.low, each.high) for each in found.tight} == {"50050 to 50300"}
    assert {ends(each.prior_low, each.prior_high) for each in found.bounds} == {"0 to 1000000"}
    assert len(found.bounds) == 12


def test_a_maximum_that_is_not_the_tables_bounds_nobody(staff: Path) -> None:
    told = [Logged("SELECT MAX(pay) FROM t WHERE team = 'a'", 1, Decimal(50_100))]
    found = Audit.of(told, staff, private="pay")
    assert not found.bounds and found.refused


def test_the_range_of_an_exposed_value_is_that_value(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("name,pay\nana,100\nben,101\ncem,102\n")
    log = ["SELECT MAX(pay) FROM t", "SELECT MAX(pay), MIN(pay) FROM t WHERE name <> 'cem'"]
    found = Audit.of(log, path, private="pay")
    (cem,) = found.exposed
    assert [each.record for each in found.tight] == [1, 2]
    (left,) = [each for each in found.bounds if each.record == cem.record]
    assert ends(left.low, left.high) == "102 to 102"
