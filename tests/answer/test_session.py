"""A session as its users use it: what is answered, what it costs, what is left on disk."""

import logging
import os
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from answer.session_world import (
    BY_SEX,
    COLUMNS,
    COUNT,
    HEAD,
    LAVISH,
    MODERATE,
    codes,
    csv,
    modes,
    number,
    numbers,
    parity,
    policy,
    truth,
    values,
    world,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate import Session
from casemate.answer import Answer
from casemate.doors import EntryKind
from casemate.errors import (
    BudgetExhausted,
    CasemateError,
    GateClosed,
    Misconfigured,
    RationSpent,
    Refused,
    Unsupported,
)
from casemate.grid import GridQuestion, Origin
from casemate.table import Table

PAIRS = "SELECT COUNT(*) FROM t WHERE a = 1 AND b = 1"
AROUND = f"{PAIRS} AND c IN (0, 1)"  # three columns, and what two of them say is right
PARITIES = [
    f"SELECT COUNT(*) FROM t WHERE a = {a} AND b = {b} AND c = {c}"
    for a in (0, 1)
    for b in (0, 1)
    for c in (0, 1)
]


@pytest.fixture(scope="module")
def lavish(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world(tmp_path_factory.mktemp("lavish"), budget=LAVISH)


# The same question ------------------------------------------------------------------------------

SAME = [
    [COUNT, "select count(*)", "SELECT COUNT(*) FROM people WHERE TRUE", "SELECT SUM(1) FROM t"],
    [
        "SELECT COUNT(*) FROM t WHERE age < 50 AND sex = 'f'",
        "SELECT COUNT(CASE WHEN sex = 'f' AND age <= 49 THEN 1 END) FROM other",
        "SELECT COUNT(*) FROM t AS x WHERE x.\"sex\" IN ('f') AND x.AGE BETWEEN 0 AND 49",
    ],
    [
        "SELECT sex, COUNT(*), SUM(ill) FROM t GROUP BY sex",
        "SELECT SUM(ill) AS b, COUNT(*) AS a, sex FROM t GROUP BY 3 ORDER BY a",
    ],
]


def test_the_same_question_written_differently_is_free_and_identical(tmp_path: Path) -> None:
    path, found = world(tmp_path), []
    with Session(path) as session:
        for several in SAME:
            first, *others = (session.query(sql) for sql in several)
            assert first.origin is not Origin.CACHED
            for other in others:
                assert other.origin is Origin.CACHED and other.cost.epsilon == 0
                assert set(numbers(other)) == set(numbers(first))
                assert other.remaining == first.remaining
            found.append(first)
    with Session(path) as session:
        for several, first in zip(SAME, found, strict=True):
            again = session.query(several[-1])
            assert again.origin is Origin.CACHED and set(numbers(again)) == set(numbers(first))


def test_a_changed_policy_keeps_its_answers_unless_it_is_about_other_data(tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        first = session.query(COUNT)
    surer = policy(tmp_path, more="[answer]\nconfidence = 0.999\n")
    with Session(surer) as session:
        old, new = session.query(COUNT), session.query(BY_SEX)
    assert (old.confidence, new.confidence) == (0.95, 0.999)
    with Session(policy(tmp_path, budget="epsilon = 2\ndelta = 1e-6")) as session:
        again, standing = session.query(COUNT), session.standing()
    assert again.origin is Origin.CACHED and again.rows == first.rows
    assert standing.budget.epsilon == pytest.approx(2, abs=1e-6)
    assert again.remaining == standing.remaining
    with pytest.raises((Refused, Misconfigured)):
        Session(policy(tmp_path, budget=f'{MODERATE}\nneighbours = "replace"'))
    newer = policy(
        tmp_path, table='source = "people.csv"\nversion = "2"', budget="epsilon = 2\ndelta = 1e-6"
    )
    with Session(newer) as session:
        later = session.query(COUNT)
    assert later.origin is not Origin.CACHED and later.cost.epsilon > 0
    assert later.remaining.epsilon < again.remaining.epsilon


# What it costs ----------------------------------------------------------------------------------


def test_costs_and_what_is_left_add_up_with_the_ledger(tmp_path: Path) -> None:
    path = world(tmp_path, budget=LAVISH)
    surprise = "SELECT COUNT(*) FROM t WHERE age < 50 AND ill = 1 AND visits > 3"
    asked = [(COUNT, False), (BY_SEX, True), (BY_SEX, True), (surprise, False)]
    spent = Fraction(0)
    with Session(path) as session:
        whole = session.standing().budget.rho
        assert whole is not None
        for sql, measure in asked:
            answer = session.query(sql, measure=measure)
            assert answer.cost.rho is not None and answer.remaining.rho is not None
            spent += answer.cost.rho
            assert answer.remaining.rho == whole - spent
        standing = session.standing()
    assert standing.spent.rho == spent and standing.remaining.rho == whole - spent
    with Session(path) as session:
        assert session.standing() == standing


def test_an_answer_does_not_cost_what_somebody_else_spends_in_the_meantime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world(tmp_path, budget=LAVISH, more='[answer]\nstrategy = "cold"\n')
    with Session(path) as session, Session(path, principal="other") as other:
        session.query(COUNT)
        scan = session._dataset.construction._cells.exact

        def meanwhile(asked: GridQuestion) -> list[list[int]]:
            assert other.query(BY_SEX, measure=True).cost.rho
            return scan(asked)

        before = session.standing().spent.rho
        monkeypatch.setattr(session._dataset.construction._cells, "exact", meanwhile)
        answer = session.query("SELECT COUNT(*) FROM t WHERE age < 40")
        after = session.standing().spent.rho
    assert answer.cost.rho is not None and before is not None and after is not None
    assert answer.cost.rho < after - before, "the twin: the difference has the other's too"


CONDITIONS = ["TRUE", "age < 40", "age > 33", "sex = 'f'", "ill = 1", "bonus <= 0 OR visits > 7"]
RESULTS = ["COUNT(*)", "SUM(visits)", "AVG(bonus)", "MEDIAN(age)", "MAX(visits)", "COUNT(visits)"]
STATEMENTS = st.builds(
    lambda results, where, also: (
        f"SELECT {', '.join(results)} FROM t WHERE ({where}) AND ({also}) GROUP BY sex"
    ),
    st.lists(st.sampled_from(RESULTS), min_size=1, max_size=3, unique=True),
    st.sampled_from(CONDITIONS),
    st.sampled_from(CONDITIONS),
)


@pytest.mark.slow
@settings(max_examples=10)
@given(STATEMENTS, st.booleans())
def test_a_forecast_is_never_below_what_is_charged_and_charges_nothing(
    lavish: Path, sql: str, measure: bool
) -> None:
    with Session(lavish) as session:
        before = session.standing()
        forecast = session.forecast(sql, measure=measure)
        assert session.standing() == before
        answer = session.query(sql, measure=measure)
        assert answer.cost.rho is not None and forecast.cost.rho is not None
        assert answer.cost.rho <= forecast.cost.rho
        assert forecast.known == (answer.origin is Origin.CACHED)
        again = session.forecast(sql, measure=measure)
    assert again.known and again.cost.epsilon == 0


@pytest.mark.parametrize("strategy", ["warm", "cold", "tables", "histogram"])
@pytest.mark.parametrize("measure", [False, True])
def test_the_forecast_of_the_first_question_has_everything_that_comes_before_it(
    strategy: str, measure: bool, tmp_path: Path
) -> None:
    path = parity(tmp_path, strategy=strategy, people=100)
    with Session(path) as session:
        most = session.forecast(COUNT, measure=measure).cost.rho
        if measure and strategy in ("tables", "histogram"):
            with pytest.raises(BudgetExhausted):  # the tables of the plan need all of it
                session.query(COUNT, measure=measure)
            assert session.query(PAIRS).origin is Origin.MEASURED
        else:
            session.query(COUNT, measure=measure)
        spent = session.standing().spent.rho
    assert most is not None and spent is not None and spent <= most


def test_a_measurement_is_tighter_not_snapped_charged_once_and_learnt(tmp_path: Path) -> None:
    path = world(tmp_path, number=3000)
    sql = "SELECT COUNT(*) FROM t WHERE age > 33"
    with Session(path) as session:
        easy, measured = session.query(sql), session.query(sql, measure=True)
        assert any("as if for" in note for note in easy.notes)
        assert not any("as if for" in note for note in measured.notes)
        assert width(measured) < width(easy) / 4
        assert measured.cost.epsilon > 0
        assert session.query(sql, measure=True).cost.epsilon == 0
        before = len(session._dataset.construction.stand_in.measurements)
        session.query("SELECT sex, COUNT(*) FROM t WHERE ill = 1 GROUP BY sex", measure=True)
        assert len(session._dataset.construction.stand_in.measurements) == before + 3


def width(answer: Answer) -> float:
    cell: Any = number(answer)
    return float(cell.hi - cell.lo)


# Relations --------------------------------------------------------------------------------------


def test_replace_makes_the_number_of_people_public_and_free(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    with Session(world(tmp_path / "secret")) as session:
        count = number(session.query(COUNT))
    assert count.lo != count.hi, "which add-remove keeps secret"
    path = world(tmp_path, budget=f'{MODERATE}\nneighbours = "replace"')
    with Session(path) as session:
        for measure in (False, True):
            answer = session.query(COUNT, measure=measure)
            cell = number(answer)
            assert cell.value == cell.lo == cell.hi == 600 and answer.cost.epsilon == 0
        grouped = session.query(BY_SEX)
    assert grouped.cost.epsilon > 0 and number(grouped).lo != number(grouped).hi


PUBLIC = [
    COUNT,
    BY_SEX,
    "SELECT COUNT(*) FROM t WHERE age > 33",
    "SELECT AVG(age), SUM(bonus) FROM t WHERE sex IS NULL",
    "SELECT sex, COUNT(*) FROM t WHERE age BETWEEN 21 AND 77 GROUP BY sex HAVING COUNT(*) > 9",
]


@pytest.mark.parametrize("strategy", ["auto", "gaussian"])
def test_where_only_private_columns_are_protected_public_questions_are_exact_and_free(
    strategy: str, tmp_path: Path
) -> None:
    more = f'[answer]\nstrategy = "{strategy}"\nquestions = 10\n'
    budget = f'{MODERATE}\nprotects = "private-columns"'
    path = world(tmp_path, budget=budget, more=more)
    with Session(path) as session:
        for sql in PUBLIC:
            assert session.forecast(sql).cost.epsilon == 0
            answer = session.query(sql, all_groups=True)
            assert answer.cost.epsilon == 0 and session.standing().spent.epsilon == 0
            assert all(cell.lo == cell.value == cell.hi for cell in numbers(answer))
            assert answer.exact and "exact and free" in answer.notes[-1]
            exact = dict_of(truth(path, sql))
            assert dict_of(values(answer)) == pytest.approx(exact)
        noised = session.query("SELECT COUNT(*) FROM t WHERE ill = 1 AND age < 50")
        assert noised.cost.epsilon > 0 and number(noised).lo != number(noised).hi
        assert not noised.exact
        assert session.query(PUBLIC[2], measure=True).cost.epsilon == 0


def dict_of(rows: list[tuple[Any, ...]]) -> dict[str, float]:
    """Numbers by place and key; a key that nobody has counts zero, and is left out."""
    found = {}
    for row in rows:
        named = [str(cell) for cell in row if isinstance(cell, str | None)]
        for place, cell in enumerate(each for each in row if not isinstance(each, str | None)):
            if cell:
                found[f"{named} {place}"] = float(cell)
    return found


def visits(folder: Path, most: int, rows: int, **changes: Any) -> Path:
    """A table in which everybody has several rows, of which some are kept."""
    records = [(f"p{i % 200}", i % 2, (i * 7) % 5) for i in range(rows)]
    csv(folder / "visits.csv", ("who", "ill", "kind"), records)
    columns = '[columns.who]\nrole = "identifier"\n' + codes({"ill": 2, "kind": 5})
    table = f'source = "visits.csv"\nperson = "who"\nrows_per_person = {most}'
    return policy(folder, table=table, columns=columns, **changes)


def test_at_most_so_many_rows_of_each_person_count(tmp_path: Path) -> None:
    path = visits(tmp_path, 3, 2000, budget="epsilon = 100000\ndelta = 1e-6")
    with Session(path) as session:
        count = number(session.query(COUNT, measure=True))
        kinds = session.query("SELECT kind, COUNT(*) FROM t GROUP BY kind", measure=True)
    assert count.value == 600 and sum(row[1] for row in values(kinds)) == 600
    with Session(path) as session:  # the same rows for ever
        again = session.query("SELECT kind, SUM(1) FROM t GROUP BY 1 ORDER BY 1", measure=True)
    assert again.cost.epsilon > 0 or values(again) == values(kinds)
    assert values(again) == values(kinds)


def test_a_pure_budget_is_kept_in_epsilon_and_answered_with_laplace_noise(tmp_path: Path) -> None:
    with Session(world(tmp_path, budget="epsilon = 2")) as session:
        for measure in (False, True):
            answer = session.query(BY_SEX, measure=measure)
            assert answer.cost.rho is None and answer.cost.epsilon > 0
        standing = session.standing()
        laws = {each.law.name for each in session._dataset.construction.stand_in.tables if each.law}
    assert standing.delta == 0 and standing.remaining.rho is None and laws == {"laplace"}
    assert standing.spent.epsilon + standing.remaining.epsilon == 2


# Strategies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["gaussian", "laplace"])
def test_where_each_answer_is_paid_for_so_many_are_given_and_no_more(
    strategy: str, tmp_path: Path
) -> None:
    path = world(tmp_path, more=f'[answer]\nstrategy = "{strategy}"\nquestions = 3\n')
    asked = [COUNT, BY_SEX, "SELECT AVG(visits), MEDIAN(age) FROM t"]
    with Session(path) as session:
        for sql in asked:
            assert session.query(sql).origin is Origin.MEASURED
        assert session.query(BY_SEX).origin is Origin.CACHED
        assert session.forecast(BY_SEX).known
        with pytest.raises(BudgetExhausted):
            session.query("SELECT COUNT(*) FROM t WHERE ill = 1")
        left = session.standing().remaining.rho
        assert left is not None and 0 <= left < Fraction(1, 1000)


@pytest.mark.parametrize("strategy", ["tables", "histogram", "cold", "auto"])
def test_every_strategy_answers_and_says_where_from(strategy: str, tmp_path: Path) -> None:
    path = parity(tmp_path, strategy=strategy, people=500)
    with Session(path) as session:
        for sql in (COUNT, PAIRS, "SELECT a, b, AVG(c) FROM t GROUP BY 1, 2"):
            answer = session.query(sql)
            if strategy == "tables" and "AVG" in sql:
                assert answer.origin is Origin.UNVERIFIED
                assert all(cell.lo is None for cell in numbers(answer))
            else:
                assert answer.origin in (Origin.SURROGATE, Origin.MEASURED)
                assert all(cell.lo is not None for cell in numbers(answer))
        assert session.standing().strategy == ("warm" if strategy == "auto" else strategy)


def test_a_surprise_is_measured_charged_counted_for_who_asked_and_learnt(tmp_path: Path) -> None:
    with Session(parity(tmp_path), principal="alice") as session:
        plan, ledger = session._dataset.construction.plan, session._dataset.doors.ledger
        assert session.query(PAIRS).origin is Origin.SURROGATE
        assert ledger.spent().amount == plan.start_price, "the tables prove it: nothing more"
        assert session.query(AROUND).origin is Origin.SURROGATE
        paid = plan.start_price + plan.run_price
        assert ledger.spent().amount == paid
        assert session.query(PARITIES[0]).origin is Origin.MEASURED
        paid += plan.price_of(plan.surprise_law)
        assert ledger.spent().amount == paid
        for sql in PARITIES[1:]:
            answer, (a, b, c) = session.query(sql), map(int, re.findall(r"\d", sql))
            assert answer.origin is Origin.SURROGATE
            assert number(answer).value == pytest.approx(1250 * (a ^ b == c), abs=250)
        assert ledger.spent().amount == paid + plan.run_price, "easy answers open one run"
        standing = session.standing()
    assert standing.principals == {"alice": 1} and standing.surprises == 1


def test_when_the_gate_is_closed_it_is_refused_or_the_stand_in_goes_on(tmp_path: Path) -> None:
    path = parity(tmp_path, "surprises = 1")
    with Session(path) as session:
        first = session.query(PARITIES[0])
        with pytest.raises(GateClosed, match=r"found its 1 surprises.*is left"):
            session.query(AROUND)
        assert session.query(PARITIES[0]).rows == first.rows
        assert number(session.query(PAIRS)).lo is not None, "tables go on proving"
    parity(tmp_path, "surprises = 1", 'exhausted = "unverified"')
    with Session(path) as session:
        spent = session.standing().spent
        answer = session.query(AROUND)
        assert answer.origin is Origin.UNVERIFIED and answer.cost.epsilon == 0
        assert number(answer).lo is None and number(answer).session_hi is None
        assert number(answer).value == pytest.approx(1250, abs=300)
        assert session.standing().spent == spent
        assert session.query(AROUND).origin is Origin.UNVERIFIED, "and is not kept"


def test_a_ration_is_for_each_principal(tmp_path: Path) -> None:
    path = parity(tmp_path, "ration = 1")
    with Session(path, principal="alice") as session:
        assert session.query(PARITIES[0]).origin is Origin.MEASURED
        with pytest.raises(RationSpent):
            session.query(AROUND)
    with Session(path, principal="bob") as session:
        assert session.query(AROUND).origin is Origin.SURROGATE


# Refusals ---------------------------------------------------------------------------------------

HOSTILE = [
    "",
    ";",
    "DROP TABLE t",
    "SELECT COUNT(*) FROM t; DELETE FROM t",
    "SELECT * FROM t",
    "SELECT visits FROM t",
    "SELECT id, COUNT(*) FROM t GROUP BY id",
    "SELECT COUNT(*) FROM t WHERE id = 3",
    "SELECT COUNT(*) FROM t WHERE nowhere = 3",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT pg_sleep(10)",
    "SELECT COUNT(*) FROM t JOIN t AS u ON t.age = u.age",
    "SELECT COUNT(*) FROM (SELECT age, COUNT(*) FROM t GROUP BY age) AS x",
    "SELECT COUNT(*) FROM t WHERE age > (SELECT AVG(age) FROM t)",
    "SELECT COUNT(DISTINCT visits) FROM t",
    "SELECT STDDEV(visits), string_agg(sex, ',') FROM t",
    "SELECT SUM(COUNT(*)) OVER () FROM t",
    "SELECT COUNT(*) FROM t WHERE random() < 0.5",
    "SELECT age, COUNT(*) FROM t GROUP BY age",  # known by bins of several values
    "SELECT 1 / 0",
    "SELECT COUNT(*) FROM t WHERE sex LIKE E'\\x27; --",
    "\x00",
    "(" * 500 + "SELECT 1" + ")" * 500,
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Session(world(tmp_path_factory.mktemp("tiny"), number=20)) as session:
        yield session


@pytest.mark.parametrize("sql", HOSTILE, ids=range(len(HOSTILE)))
def test_what_cannot_be_answered_is_refused_before_anything_is_charged(
    sql: str, tiny: Session
) -> None:
    for measure in (False, True):
        with pytest.raises(Unsupported) as refusal:
            tiny.query(sql, measure=measure)
        assert str(refusal.value)
    assert tiny.standing().spent.epsilon == 0


MANY = codes({f"c{i}": 2 for i in range(60)})
FINE = COLUMNS.replace("bins = 10\n", "bins = 100\n").replace("bins = 4\n", "bins = 400\n")
HISTOGRAM = '[answer]\nstrategy = "histogram"\n'


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": None}, "has no budget"),
        ({"columns": '[columns.sex]\nrole = "public"\n'}, "can be asked about"),
        ({"columns": FINE, "more": HISTOGRAM}, "is histogram, and the grid of .* more than"),
    ],
)
def test_a_policy_that_cannot_be_answered_by_is_one_sentence_and_makes_no_ledger(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = world(tmp_path, number=5, **changes)
    with pytest.raises(Misconfigured, match=said) as refusal:
        Session(path)
    assert "\n" not in str(refusal.value)
    assert set(modes(tmp_path)) == {"people.csv", "casemate.toml"}


def test_a_table_of_many_columns_is_opened_at_once(tmp_path: Path) -> None:
    csv(tmp_path / "people.csv", [f"c{i}" for i in range(60)], [[1] * 60])
    with Session(policy(tmp_path, columns=MANY)) as session:
        assert session.forecast("SELECT COUNT(*) FROM t WHERE c3 = 1").cost.epsilon > 0


# Files ------------------------------------------------------------------------------------------


def test_the_files_are_beside_the_policy_and_for_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, rules, elsewhere = (tmp_path / each for each in ("data", "rules", "elsewhere"))
    for folder in (data, rules, elsewhere):
        folder.mkdir()
    csv(data / "people.csv", HEAD, [(1, 2, "f", 3, 1, 4)])
    path = policy(rules, table='source = "../data/people.csv"')
    monkeypatch.chdir(elsewhere)
    with Session(path) as session:
        session.query("SELECT COUNT(*) FROM t WHERE sex = 'f' AND ill = 1 AND age < 30")
    found = modes(rules)
    assert {"casemate.ledger", "casemate.ledger-gate", "casemate.ledger-gate.lock"} <= set(found)
    assert "casemate.ledger-key" not in found
    assert all(mode == 0o600 for name, mode in found.items() if name != "casemate.toml")
    assert os.listdir(data) == ["people.csv"] and not os.listdir(elsewhere)


def test_a_session_that_cannot_begin_lets_go_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, close, closed = visits(tmp_path, 2, 100), Table.close, list[Table]()

    def recorded(table: Table) -> None:
        closed.append(table)
        close(table)

    monkeypatch.setattr(Table, "close", recorded)
    (tmp_path / "casemate.ledger-key").write_bytes(b"short")
    with pytest.raises(Misconfigured, match="key"):
        Session(path)
    assert len(closed) == 1
    (tmp_path / "casemate.ledger-key").unlink()
    with Session(path) as session:
        assert session.query(COUNT).rows


# Seeds ------------------------------------------------------------------------------------------


def test_a_seeded_session_repeats_itself_says_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world(tmp_path)
    before = set(modes(tmp_path))
    found = []
    for seed in (1, 1, 2):
        with Session.simulated(path, seed) as session:
            found.append(session.query(BY_SEX))
            assert "not private: seeded" in session.standing().notes
            assert "not private: seeded" in session.forecast(COUNT).notes
    assert found[0].rows == found[1].rows != found[2].rows
    assert all("not private: seeded" in answer.notes for answer in found)
    assert set(modes(tmp_path)) == before


# Nothing private in what is printed -------------------------------------------------------------

MARK = 98_765_431


def test_no_message_and_no_text_of_a_session_has_a_private_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = f"""
[columns.name]
role = "identifier"
[columns.sex]
values = ["f", "m"]
[columns.income]
role = "private"
min = 0
max = {2**30}
bins = 4
"""
    rows = [(f"Zebulon{i}", "fm"[i % 2], MARK) for i in range(50)]
    csv(tmp_path / "rich.csv", ("name", "sex", "income"), [*rows, ("Zebulon", "Zorro", MARK)])
    path = policy(tmp_path, table='source = "rich.csv"', columns=columns)
    caplog.set_level(logging.DEBUG)
    said = []
    with Session(path) as session:
        asked = [COUNT, "SELECT AVG(income) FROM t WHERE sex = 'f'", *HOSTILE]
        asked += ["SELECT MAX(income), MIN(income), SUM(income) FROM t GROUP BY sex"]
        for sql in asked:
            try:
                said.append(repr(session.query(sql)))
            except CasemateError as refusal:
                said.append(f"{refusal!r} {refusal}")
        dataset = session._dataset
        shown = (session, session.standing(), dataset, dataset.construction.stand_in)
        said += [f"{each!r} {each}" for each in shown]
        cells = dataset.construction._cells
        said += [repr(cells), repr(dataset.table), repr(dataset.doors)]
        said += [repr(entry) for entry in dataset.doors.transcript.of_kinds(tuple(EntryKind))]
    with pytest.raises(CasemateError) as mistake:
        Session(policy(tmp_path, table='source = "rich.csv"', columns=COLUMNS)).query(COUNT)
    said += [str(mistake.value), caplog.text, *capsys.readouterr()]
    for text in said:
        assert str(MARK) not in text and "Zebulon" not in text and "Zorro" not in text
