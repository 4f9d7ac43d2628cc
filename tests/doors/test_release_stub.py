"""A release is written on doors, grid and surrogate alone: measure, learn, show; no `answer`."""

from fractions import Fraction
from pathlib import Path

from answer.session_world import parity

from casemate.doors import Doorway
from casemate.grid import (
    Estimate,
    Origin,
    Outcome,
    PrivateCells,
    Relation,
    TableQuestion,
    all_codes,
    compile_statement,
    measure_table,
)
from casemate.privacy.noise import GaussianLaw
from casemate.query.parse import parse_statement
from casemate.surrogate import StandIn
from casemate.table import Table, Universe

SQL = "SELECT a, b, COUNT(*) AS people FROM t GROUP BY a, b"


def release(policy: Path, rho: Fraction) -> tuple[list[tuple[object, ...]], Fraction]:
    """Every pair of attributes measured, a stand-in made of them, and one table of it shown."""
    with Table.open(policy, by_policy=True) as table:
        budget, universe = table.policy.budget, Universe.of(table.policy)
        assert budget is not None
        doors = Doorway.durable(table, budget)
        law = GaussianLaw.within(rho, Relation.of(table.policy, budget).squared_of_table)
        cells = PrivateCells.of(universe, table.source, doors.key)
        names = [attribute.name for attribute in universe.attributes]
        doors.measurement.total(cells.total, law=law)
        for pair in ((0, 1), (0, 2), (1, 2)):
            question = TableQuestion(all_codes(pair, universe.shape), start=True)
            measure_table(doors.measurement, question, cells, names, law=law)
        stand_in = StandIn(names, universe.shape, doors.edition)
        stand_in.catch_up(doors.transcript)
        asked = compile_statement(parse_statement(SQL, table.policy), universe)
        parts = tuple(
            tuple(Estimate(stand_in.surrogate.answer(*sums)) for sums in part.cells)
            for part in asked.asked.parts
        )
        shown = asked.rows(Outcome(parts, Origin.SURROGATE))
        spent = doors.ledger.spent().amount
        doors.close()
    return [tuple(row) for row in shown.rows], spent


def test_a_release_is_measured_appended_and_shown(tmp_path: Path) -> None:
    policy = parity(tmp_path)
    rho = Fraction(1, 10)
    rows, spent = release(policy, rho)
    assert len(rows) == 9 and spent <= 4 * rho
    again, later = release(policy, rho)
    assert (again, later) == (rows, spent), "what has left is read from the transcript"
