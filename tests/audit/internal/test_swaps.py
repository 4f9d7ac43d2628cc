"""Rows whose records could swap their values: a second table each, seen by nobody."""

from pathlib import Path
from random import Random

from audit.every_world import consistent, exposed
from audit.small_world import World, opened, random_log, random_world

from casemate.audit.case import Case
from casemate.audit.statements import AuditedStatements, LoggedStatement, Withheld, rows_shown
from casemate.audit.witness.stakes import swappable
from casemate.published import Knowledge, equations, exact_ranges, publication
from casemate.query.parse import DIALECT, Logged, parse_statement
from casemate.table import Table


def easy(log: list[str], table: Table) -> tuple[list[Withheld], list[str], int]:
    """The rows that swaps allow, the statements that show these alone, and the number of rows."""
    source, entries = table.source, [Logged(sql, 1) for sql in log]
    policy = exact_ranges(entries, table.policy, Knowledge(), source, DIALECT).policy
    found = publication(entries, policy)
    assert not found.refused
    system = equations(found.columns, policy, source, found.there)
    case = Case(system, policy, Knowledge(), found, source)
    listed = {n: LoggedStatement(n, sql, policy, source, DIALECT) for n, sql in enumerate(log, 1)}
    statements = AuditedStatements(listed, {})
    rows = rows_shown(case, statements)
    kept = swappable(case, rows)
    texts = statements.texts([row for row in rows if row not in kept])
    return kept, list(texts.values()), len(rows)


def test_records_that_every_row_treats_alike_hide_each_other(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("team,floor,pay\na,1,1\na,1,2\nb,1,3\nb,2,3\n")
    log = [f"SELECT {by}, SUM(pay), MAX(pay) FROM t GROUP BY {by}" for by in ("team", "floor")]
    with Table.open(path, private=["pay"]) as table:
        kept, _, rows = easy(log, table)
    assert rows == 4
    assert [(row.query, row.cell) for row in kept] == [(1, (("team", "a"),))]


def test_weights_tell_records_apart(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("weight,pay\n1,1\n1,2\n2,3\n2,4\n3,5\n")
    with Table.open(path, private=["pay"]) as table:
        kept, _, _ = easy(["SELECT SUM(weight * pay) FROM t WHERE weight < 3"], table)
        assert len(kept) == 1
        kept, _, _ = easy(["SELECT SUM(weight * pay) FROM t"], table)
        assert kept == []


def accepted(world: World, table: Table) -> list[str]:
    """A random log of which everything can be audited."""
    rng = Random(len(world.rows))

    def fine(sql: str) -> bool:
        return not publication([Logged(sql, 1)], table.policy).refused

    return random_log(rng, world, fine)


def test_such_rows_expose_nobody_whatever_they_show(rng: Random, tmp_path: Path) -> None:
    kept_rows = 0
    for _ in range(15):
        world = random_world(rng)
        with opened(world, tmp_path) as table:
            kept, texts, _ = easy(accepted(world, table), table)
            statements = [parse_statement(text, table.policy) for text in texts]
            assert exposed(world, consistent(world, statements)) == set()
            kept_rows += len(kept)
    assert kept_rows > 2
