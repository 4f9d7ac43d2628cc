"""The whole command against every table there is: who is exposed, and with which value.

A small random table is published by a random log of statements of all kinds. Every table that has
the right types and bounds, and of which the statements show exactly the same, is written down by a
slow evaluator that shares nothing with the audit but the meaning of SQL; whoever has the same value
in all of them, and nobody else, is exposed.
"""

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from audit.every_world import Found, Shower, consistent, exposed, possible_tables, true_table
from audit.small_world import World, opened, random_log, random_world, read, readable_log

from casemate.audit import Audit
from casemate.audit.result import Audited, Verdict
from casemate.query import Statement
from casemate.query.parse import Logged, parse_statement
from casemate.table import Table


def shown(found: Audited) -> set[Found]:
    """Whose values follow; None where it is that there is no value, which is a list of its own."""
    missing = {Found(int(str(e.record)), e.column, None) for e in found.missing}
    exposed = {Found(int(str(e.record)), e.column, e.value) for e in found.exposed}
    assert not missing & exposed
    return missing | exposed


def asks_for_hidden_extremes(world: World, log: list[str]) -> bool:
    """Whether a log has extremes of a number that may be missing.

    Beside comparisons, or sums with other secrets, these may leave records undecided.
    """
    hidden = [secret.name for secret in world.secrets if None in secret.possible]
    asked = [rf"\b(MIN|MAX|MEDIAN)\({name}\b" for name in hidden]
    return any(re.search(each, sql) for each in asked for sql in log)


def check(rng: Random, folder: Path) -> tuple[int, int]:
    """Audit one random log; how many are exposed, and how many others there are."""
    world = random_world(rng)
    with opened(world, folder) as table:
        log = readable_log(rng, world, table)
        found = Audit.of(log, table)
        statements = [parse_statement(sql, table.policy) for sql in log]
    tables = consistent(world, statements)
    expected = exposed(world, tables)
    assert true_table(world) in tables
    assert (found.refused, found.unchecked) == ((), ()), log
    left_open = {int(str(record)) for record in found.undecided}
    assert not left_open or asks_for_hidden_extremes(world, log), log
    assert shown(found) <= expected, log
    assert {each.record for each in expected - shown(found)} <= left_open, log
    if not left_open:
        assert found.verdict is (Verdict.EXPOSED if expected else Verdict.NONE_EXPOSED)
    assert_within_bounds(found, world, tables)
    return len(expected), len(world.rows) * len(world.secrets) - len(expected)


def assert_within_bounds(
    found: Audited, world: World, tables: list[tuple[tuple[int, ...], ...]]
) -> None:
    """No possible value lies outside the range that is reported, which is of a value if any."""
    names = [secret.name for secret in world.secrets]
    for each in found.bounds:
        place, which = int(str(each.record)) - 1, names.index(each.column)
        own = {table[place][which] for table in tables}
        values = {Fraction(value) for value in own if value is not None}
        assert each.low is None or all(each.low <= value for value in values)
        assert each.high is None or all(value <= each.high for value in values)


@pytest.mark.theorem("002: Beyond linear queries (the whole audit)")
@pytest.mark.parametrize("part", range(2))
def test_exactly_those_are_exposed_who_are_the_same_in_every_table(
    part: int, seed: int, tmp_path: Path
) -> None:
    rng = Random(f"{seed} {part}")
    seen = [check(rng, tmp_path) for _ in range(8)]
    assert sum(exposed for exposed, _ in seen) > 2
    assert sum(others for _, others in seen) > 2


def told(rng: Random, folder: Path) -> bool | None:
    """Audit answers that are those of some tables, each of its own; whether they go together."""
    world = random_world(rng)
    with opened(world, folder) as table:
        log = random_log(rng, world, lambda sql: is_one_sum(sql, table))
        parsed = [(sql, parse_statement(sql, table.policy)) for sql in log]
        all_given = [(sql, each, answer(rng, world, each)) for sql, each in parsed]
        given = [(sql, each, shown) for sql, each, shown in all_given if shown is not None]
        found = Audit.of([Logged(sql, 1, shown) for sql, _, shown in given], table)
    tables = consistent(world, [each for _, each, _ in given], [shown for *_, shown in given])
    assert (found.consistent is False) is not bool(tables), log  # None: of nothing secret
    if not tables:
        assert found.verdict is not Verdict.NONE_EXPOSED
    elif given:
        assert found.refused == ()
        assert (found.undecided, found.unchecked) == ((), ()), log
        assert shown(found) == exposed(world, tables), log
    return bool(tables) if given else None


def is_one_sum(sql: str, table: Table) -> bool:
    """Whether a statement shows one number, which is no extreme and no median."""
    found = read(table, Logged(sql, 1, Decimal(0)))
    return not found.refused and not found.ordered


def answer(rng: Random, world: World, statement: Statement) -> Decimal | None:
    """What a statement shows of some possible table, if that is a decimal."""
    truth = rng.random() < 0.3
    table = true_table(world) if truth else rng.choice(list(possible_tables(world)))
    ((value,),) = Shower(world, statement).of(table)
    if value is None or 10**9 % value.denominator:
        return None
    return Decimal(value.numerator) / Decimal(value.denominator)


def test_answers_of_other_tables_are_audited_and_contradictions_noticed(
    seed: int, tmp_path: Path
) -> None:
    rng = Random(f"told {seed}")
    seen = [told(rng, tmp_path) for _ in range(10)]
    assert True in seen and False in seen


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_exactly_those_are_exposed_in_many_more_tables(
    part: int, seed: int, tmp_path: Path
) -> None:
    rng = Random(f"long {seed} {part}")
    for _ in range(100):
        check(rng, tmp_path)
