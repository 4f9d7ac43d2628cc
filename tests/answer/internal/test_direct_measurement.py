"""Statements that are measured by themselves: price, noise, names and what is learnt."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from answer.session_world import LAVISH, MODERATE, world

from casemate import Session
from casemate.answer.direct_measurement import MAX_LEARNT_CELLS, DirectMeasurement
from casemate.privacy import price
from casemate.privacy.noise import GaussianLaw, LaplaceLaw


def measurement(session: Session, sql: str) -> DirectMeasurement:
    question, dataset = session._compile(sql), session._dataset
    return DirectMeasurement(question.direct(dataset.construction.plan.relation), dataset)


THREE = "SELECT COUNT(*), SUM(visits), AVG(bonus) FROM t WHERE age > 33 GROUP BY sex"


@pytest.mark.parametrize("budget", [MODERATE, "epsilon = 2", f'{MODERATE}\nneighbours = "replace"'])
def test_the_parts_share_one_price(budget: str, tmp_path: Path) -> None:
    with Session(world(tmp_path, budget=budget)) as session:
        found = measurement(session, THREE)
        laws, currency = found.laws(), session._dataset.construction.plan.currency
        whole = session._dataset.construction.measuring_price
        prices = [price(law.cost, currency) or Fraction(0) for law in laws]
    assert len(laws) == len(found.direct.parts) > 2
    assert whole * Fraction(99, 100) <= sum(prices) <= whole
    assert {type(law) for law in laws} == {LaplaceLaw if "= 2" in budget else GaussianLaw}


def test_noise_is_in_proportion_to_what_a_person_moves(tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        found = measurement(session, THREE)
        scales = [float(law.scale) for law in found.laws()]
    moves = [float(each.squared) ** 0.5 for each in found.direct.sensitivities]
    ratios = [scale / move for scale, move in zip(scales, moves, strict=True)]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-3)


def test_counts_of_whole_cells_are_learnt_and_nothing_else(tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        plain = measurement(session, "SELECT sex, COUNT(*) FROM t WHERE age < 50 GROUP BY sex")
        inside = measurement(session, "SELECT COUNT(*) FROM t WHERE age > 33")
        added = measurement(session, "SELECT SUM(visits) FROM t")
        many = measurement(
            session, "SELECT sex, ill, visits, age / 10, COUNT(*) FROM t GROUP BY 1, 2, 3, 4"
        )
        learnt = [
            [len(json.loads(text)["learn"]) for text in each.texts()]
            for each in (plain, inside, added, many)
        ]
    assert many.direct.sizes[0] > MAX_LEARNT_CELLS
    assert learnt == [[3], [0], [0], [0]]


def test_a_measurement_that_was_cut_off_in_the_middle_is_paid_once(tmp_path: Path) -> None:
    """The first part has left and the others have not: asking again pays for those alone."""
    path = world(tmp_path, budget=LAVISH)
    with Session(path) as session:
        found = measurement(session, THREE)
        door, cells = session._dataset.doors.measurement, found.direct.cells
        exact = cells(session._dataset.table.source)
        first = (found.texts()[0], found.laws()[0], found.direct.sizes[0])
        door.measure(first[0], lambda: exact[0], cells=first[2], law=first[1])
        spent = session.standing().spent.rho
        answer = session.query(THREE, measure=True)
        whole = session._dataset.construction.measuring_price
        assert spent is not None and answer.cost.rho is not None
        assert spent > 0 and spent + answer.cost.rho <= whole
    with Session(path) as session:
        assert session.query(THREE, measure=True).rows == answer.rows
