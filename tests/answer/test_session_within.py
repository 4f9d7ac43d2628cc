"""Answers as exact as somebody asks for: their widths, what they cost, and what is refused."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from answer.session_world import BY_SEX, COUNT, MODERATE, number, numbers, parity, truth, world
from chance import assert_rate_at_most

from casemate import Session
from casemate.answer import Answer
from casemate.answer.within import Within, half_of
from casemate.doors import EntryKind
from casemate.errors import BudgetExhausted, Misconfigured, Refused
from casemate.grid import Origin

RICH = "epsilon = 8\ndelta = 1e-6"
MEANS = "SELECT sex, AVG(bonus) AS mean FROM t WHERE age > 33 GROUP BY sex"
THREE = "SELECT sex, COUNT(*), SUM(visits), COUNT(visits) FROM t WHERE age > 33 GROUP BY sex"
Z = 1.959963984540054  # of a normal law, 95 % either way


def widest(answer: Answer) -> float:
    return max(half_of(cell) for cell in numbers(answer) if cell.value is not None)


def left_of(session: Session) -> tuple[Any, int]:
    """What is spent, and how many entries the transcript has."""
    entries = session._dataset.doors.transcript.of_kinds(tuple(EntryKind))
    return session.standing().spent, len(entries)


# Widths and prices ------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0.5, 3, 7.5, 40, 300])
def test_a_fresh_count_is_as_exact_as_asked_for_the_least_that_gaussian_noise_needs(
    width: float, tmp_path: Path
) -> None:
    with Session(world(tmp_path, budget="epsilon = 30\ndelta = 1e-6")) as session:
        forecast = session.forecast(COUNT, within=width)
        answer = session.query(COUNT, within=width)
    assert widest(answer) <= width and answer.origin is Origin.MEASURED
    assert forecast.cost == answer.cost and answer.cost.rho is not None
    assert float(answer.cost.rho) <= 1.1 * Z**2 / (2 * width**2)


@pytest.mark.parametrize("budget", [RICH, "epsilon = 8", f'{RICH}\nneighbours = "replace"'])
@pytest.mark.parametrize("sql", [BY_SEX, THREE, f"{BY_SEX} HAVING COUNT(*) > 9000"])
def test_every_number_is_as_exact_as_asked_and_costs_what_a_dry_run_says(
    sql: str, budget: str, tmp_path: Path
) -> None:
    with Session(world(tmp_path, budget=budget)) as session:
        forecast = session.forecast(sql, within=60)
        answer = session.query(sql, within=60)
    assert forecast.cost == answer.cost and answer.cost.epsilon > 0
    assert all(half_of(cell) <= 60 for cell in numbers(answer))


@pytest.mark.parametrize("strategy", ["warm", "cold", "gaussian", "laplace"])
def test_any_strategy_that_has_something_left_can_be_asked_so(
    strategy: str, tmp_path: Path
) -> None:
    with Session(parity(tmp_path, "questions = 9", strategy=strategy)) as session:
        answer = session.query("SELECT COUNT(*) FROM t WHERE a = 1 AND b = 1", within=80)
    assert widest(answer) <= 80 and answer.cost.epsilon > 0


def test_parts_with_their_own_sensitivity_each_have_the_noise_that_they_need(
    tmp_path: Path,
) -> None:
    """A sum costs more than a count as exact, and both together no more than one after another."""
    with Session.simulated(world(tmp_path, budget=RICH), seed=1) as session:
        count, total, both = (
            session.forecast(f"SELECT {what} FROM t", within=50).cost.rho
            for what in ("COUNT(*)", "SUM(visits)", "COUNT(*), SUM(visits)")
        )
    assert count is not None and total is not None and both is not None
    assert total > 100 * count and float(both) == pytest.approx(float(count + total), rel=0.01)


def test_what_is_proven_holds_whatever_was_asked_for_before(tmp_path: Path) -> None:
    """Each is tighter than those before it, so each is measured; the twin claims half as much."""
    path, measured = world(tmp_path, budget=RICH), 80
    ((true,),) = truth(path, COUNT)
    off = []
    with Session.simulated(path, 3) as session:
        for place in range(measured):
            cell = number(session.query(COUNT, within=40 - place / 100))
            off.append(abs(float(cell.value) - true) / half_of(cell))  # type: ignore[arg-type]
    assert len(set(off)) > measured / 4
    assert_rate_at_most(sum(each > 1 for each in off), measured, 0.05)
    with pytest.raises(AssertionError, match="has probability"):
        assert_rate_at_most(sum(each > 0.5 for each in off), measured, 0.05)


# Again, tighter, and free -----------------------------------------------------------------------


def test_asking_again_or_for_less_is_free_and_identical_and_for_more_pays_its_own_price(
    tmp_path: Path,
) -> None:
    path = world(tmp_path)
    with Session(path) as session:
        first = session.query(COUNT, within=40)
        tighter = session.query(COUNT, within=20)
    with Session(path) as session:
        again = session.query("select count(*) from people", within=40)
        looser = session.query(COUNT, within=70)
        fresh = session.forecast(COUNT, within=10)
        assert session.forecast(COUNT, within=40).known
    assert again.rows == looser.rows == first.rows and again.origin is Origin.CACHED
    assert again.cost.epsilon == looser.cost.epsilon == 0
    assert tighter.rows != first.rows and widest(tighter) <= 20
    for answer, width in ((tighter, 20), (fresh, 10)):
        assert answer.cost.rho is not None
        assert float(answer.cost.rho) <= 1.1 * Z**2 / (2 * width**2)


def test_what_tables_prove_is_free(tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        session.query(BY_SEX)
        before = session.standing().spent
        usual = session.query("SELECT ill, COUNT(*) FROM t GROUP BY ill")
        answer = session.query("SELECT ill, COUNT(*) FROM t GROUP BY ill", within=400)
        other = session.forecast("SELECT COUNT(*) FROM t WHERE sex = 'f'", within=400)
        asked = session.query("SELECT COUNT(*) FROM t WHERE sex = 'f'", within=400)
        assert session.standing().spent == before
    assert answer.rows == usual.rows and other.cost.epsilon == 0 == asked.cost.epsilon
    assert widest(answer) <= 400 and widest(asked) <= 400


def test_the_stand_in_learns_from_it(tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) FROM t WHERE a = 1 AND b = 1 AND c = 1"
    with Session(parity(tmp_path)) as session:
        session.query("SELECT COUNT(*) FROM t")
        session.query(sql, within=20)
        answer = session.query(sql)
    assert answer.origin is Origin.SURROGATE and abs(float(number(answer).value)) < 200  # type: ignore[arg-type]


# Means and shares -------------------------------------------------------------------------------


def test_means_and_shares_need_something_that_was_measured(tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        for sql, width in ((MEANS, 5.0), (COUNT, Fraction(1, 10))):
            with pytest.raises(Refused, match="ask once without --within"):
                session.query(sql, within=width)
        assert left_of(session)[1] == 0


@pytest.mark.parametrize(
    ("sql", "width"),
    [
        ("SELECT AVG(bonus) FROM t WHERE age >= 40", 7.0),
        ("SELECT AVG(visits) FROM t WHERE age >= 40 AND ill = 1", 0.5),
        ("SELECT 100.0 * COUNT(visits) / COUNT(*) FROM t WHERE age >= 40", 4.0),
        ("SELECT COUNT(*) FROM t WHERE age >= 40", Fraction(1, 100)),
    ],
)
def test_means_and_shares_are_as_exact_as_asked_or_a_note_names_the_further_price(
    sql: str, width: Any, tmp_path: Path
) -> None:
    path = world(tmp_path, 5000, budget=RICH)
    with Session(path) as session:
        session.query(COUNT)
        forecast = session.forecast(sql, within=width)
        answer = session.query(sql, within=width)
        again = session.query(sql, within=width)
    (cell,) = numbers(answer)
    met = half_of(cell) <= (Within.of(width).room(cell) or 0) * (1 + 1e-9)
    assert forecast.cost == answer.cost and again.rows == answer.rows and not again.cost.epsilon
    assert met or any("costs another" in note for note in answer.notes)
    assert half_of(cell) <= 1.2 * (Within.of(width).room(cell) or 0)
    ((true,),) = truth(path, sql)
    assert cell.lo is not None and isinstance(cell.error, float)
    assert abs(float(cell.value) - float(true)) < 20 * cell.error + 1  # type: ignore[arg-type]


def test_where_the_value_is_smaller_than_was_known_the_answer_stays_and_a_note_says_so(
    tmp_path: Path,
) -> None:
    """The pairs of a parity say that an eighth of the people is where nobody is."""
    sql = "SELECT COUNT(*) FROM t WHERE a = 1 AND b = 1 AND c = 1"
    with Session(parity(tmp_path)) as session:
        session.query("SELECT COUNT(*) FROM t")
        answer = session.query(sql, within=Fraction(1, 10))
        assert session.query(sql, within=Fraction(1, 10)).rows == answer.rows
    assert answer.cost.epsilon > 0
    assert any(note.startswith("some numbers are wider than 10%") for note in answer.notes)


# Refusals ---------------------------------------------------------------------------------------


def test_what_cannot_be_paid_is_refused_with_what_can_be_had_and_nothing_changes(
    tmp_path: Path,
) -> None:
    with Session(world(tmp_path, budget=MODERATE)) as session:
        session.query(BY_SEX)
        before = left_of(session)
        with pytest.raises(BudgetExhausted, match="nothing was charged") as refused:
            session.query(THREE, within=1)
        assert left_of(session) == before
        instead = float(str(refused.value).split("--within ")[1].split()[0])
        answer = session.query(THREE, within=instead)
        with pytest.raises(BudgetExhausted):
            session.query(THREE, within=instead / 2)
    assert widest(answer) <= instead


@pytest.mark.parametrize("what", ["MEDIAN(visits)", "MIN(visits)", "COUNT(*), MAX(age)"])
def test_a_rank_has_no_width(what: str, tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        with pytest.raises(Refused, match="is a rank"):
            session.query(f"SELECT {what} FROM t", within=5)
        assert left_of(session)[1] == 0


@pytest.mark.parametrize("width", [0, -1, float("nan"), float("inf"), Fraction(-1, 2), True])
def test_a_width_is_a_positive_number(width: Any, tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session, pytest.raises(Misconfigured, match="no width"):
        session.query(COUNT, within=width)


def test_what_was_cut_off_is_gone_on_with_and_paid_once(tmp_path: Path) -> None:
    """The first part has left and the answer has not: asking again pays for the others alone."""
    with Session(world(tmp_path, budget=RICH)) as session:
        session.query(COUNT)
        exact = session._exactly(session._compile(THREE), False, Fraction(1, 5))
        assert exact is not None
        found, whole = exact.measurement, exact.price
        cells = found.direct.cells(session._dataset.table.source)
        first = found.texts()[0], found.laws()[0], found.direct.sizes[0]
        door, before = session._dataset.doors.measurement, session.standing().spent.rho
        door.measure(first[0], lambda: cells[0], cells=first[2], law=first[1])
        session.query(BY_SEX, within=10)  # from which the stand-in learns
        other = session._dataset.doors.ledger.charged
        answer = session.query(THREE, within=Fraction(1, 5))
        assert before is not None and answer.cost.rho is not None and other
        paid = answer.cost.rho + found.laws()[0].cost.rho  # type: ignore[union-attr]  # Gaussian
        assert abs(paid - whole) < 1e-30  # the ledger rounds up what is too long to keep


def test_a_measurement_that_looks_narrow_since_it_was_cut_at_zero_is_not_taken_again(
    tmp_path: Path,
) -> None:
    """Of nobody half of the measurements are below zero, and some bounds are all but closed."""
    path, nobody = world(tmp_path, budget=MODERATE), "SELECT COUNT(*) FROM t WHERE age > 1000"
    for seed in range(12):
        with Session.simulated(path, seed) as session:
            full = half_of(number(session.query(COUNT, measure=True)))
            session.query(nobody, measure=True)
            asked = full * 0.75
            assert session.query(nobody, within=asked).cost.epsilon > 0
