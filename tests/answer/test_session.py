"""A session as its users use it: what is answered, what it costs, what is left on disk."""

import logging
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from answer.parity_policy import write_policy
from answer.session_world import (
    BY_SEX,
    COLUMNS,
    COUNT,
    HEAD,
    LAVISH,
    MODERATE,
    csv,
    modes,
    number,
    numbers,
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

PAIRS = "SELECT COUNT(*) FROM t WHERE a = 1 AND b = 1"
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
        "SELECT COUNT(*) FROM other WHERE 'f' = sex AND NOT age >= 50",
        "SELECT COUNT(CASE WHEN sex = 'f' AND age <= 49 THEN 1 END) FROM t",
        "SELECT COUNT(*) FILTER (WHERE sex = 'f') FROM t WHERE age < 50",
        "SELECT COUNT(*) FROM t AS x WHERE x.\"sex\" IN ('f') AND x.AGE BETWEEN 0 AND 49",
    ],
    [
        "SELECT sex, COUNT(*), SUM(ill) FROM t GROUP BY sex",
        "SELECT SUM(ill) AS b, COUNT(*) AS a, sex FROM t GROUP BY 3 ORDER BY a",
    ],
]


@pytest.mark.parametrize("several", SAME)
def test_the_same_question_written_differently_is_free_and_identical(
    several: list[str], tmp_path: Path
) -> None:
    path = world(tmp_path)
    with Session(path) as session:
        first, *others = (session.query(sql) for sql in several)
        assert first.origin is not Origin.CACHED
        for other in others:
            assert other.origin is Origin.CACHED and other.cost.epsilon == 0
            assert set(numbers(other)) == set(numbers(first))
            assert other.remaining == first.remaining
    with Session(path) as session:
        again = session.query(several[-1])
    assert again.origin is Origin.CACHED and set(numbers(again)) == set(numbers(first))


def test_a_measured_statement_is_the_same_in_whatever_order_it_is_written(tmp_path: Path) -> None:
    path = world(tmp_path)
    with Session(path) as session:
        first = session.query("SELECT COUNT(*), SUM(visits) FROM t WHERE age > 33", measure=True)
    with Session(path) as session:
        other = session.query("SELECT SUM(visits), COUNT(*) FROM t WHERE 33 < age", measure=True)
    assert first.origin is Origin.MEASURED and other.origin is Origin.CACHED
    assert other.cost.epsilon == 0 and other.rows[0] == first.rows[0][::-1]


def test_another_version_of_the_data_is_another_question(tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        first = session.query(COUNT)
    changed = policy(tmp_path, table='source = "people.csv"\nversion = "2"')
    with Session(changed) as session:
        later = session.query(COUNT)
    assert later.origin is not Origin.CACHED and later.cost.epsilon > 0
    assert later.remaining.epsilon < first.remaining.epsilon


def test_a_stored_answer_keeps_the_confidence_that_it_was_given_at(tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        session.query(COUNT)
    surer = policy(tmp_path, more="[answer]\nconfidence = 0.999\n")
    with Session(surer) as session:
        old, new = session.query(COUNT), session.query(BY_SEX)
    assert (old.confidence, new.confidence) == (0.95, 0.999)


# What it costs ----------------------------------------------------------------------------------


def test_costs_and_what_is_left_add_up_with_the_ledger(tmp_path: Path) -> None:
    path = world(tmp_path, budget=LAVISH)
    asked = [
        (COUNT, False),
        (BY_SEX, True),
        (BY_SEX, True),
        ("SELECT AVG(visits) FROM t WHERE sex = 'm'", False),
        ("SELECT MEDIAN(visits), SUM(bonus) FROM t GROUP BY sex", True),
        ("SELECT COUNT(*) FROM t WHERE age < 50 AND ill = 1 AND visits > 3", False),
    ]
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
    path = world(tmp_path, budget=LAVISH)
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
    path = world(tmp_path, more=f'[answer]\nstrategy = "{strategy}"\n')
    with Session(path) as session:
        most = session.forecast(COUNT, measure=measure).cost.rho
        try:
            session.query(COUNT, measure=measure)
        except BudgetExhausted:
            assert measure and strategy in ("tables", "histogram")
        spent = session.standing().spent.rho
    assert most is not None and spent is not None and spent <= most


def test_a_measurement_never_takes_what_the_tables_of_a_plan_need(tmp_path: Path) -> None:
    path = world(tmp_path, more='[answer]\nstrategy = "tables"\n')
    with Session(path) as session:
        with pytest.raises(BudgetExhausted):
            session.query(COUNT, measure=True)
        assert session.query(BY_SEX).origin is Origin.MEASURED


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


def test_what_was_measured_before_everything_else_is_learnt_too(tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        session.query(BY_SEX, measure=True)
        session.query(COUNT)
        stand_in = session._dataset.construction.stand_in
        assert stand_in.surrogate is not None
        assert len(stand_in.measurements) == 3 + sum(1 for _ in stand_in.tables)


def width(answer: Answer) -> float:
    cell: Any = number(answer)
    return float(cell.hi - cell.lo)


# Relations --------------------------------------------------------------------------------------


def test_add_remove_keeps_the_number_of_people_secret(lavish: Path) -> None:
    with Session(lavish) as session:
        count = number(session.query(COUNT))
    assert count.lo != count.hi


def test_replace_makes_the_number_of_people_public_and_free(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("strategy", ["auto", "cold", "gaussian", "histogram"])
def test_where_only_private_columns_are_protected_public_questions_are_exact_and_free(
    strategy: str, tmp_path: Path
) -> None:
    more = f'[answer]\nstrategy = "{strategy}"\nquestions = 10\n'
    budget = f'{MODERATE}\nprotects = "private-columns"'
    path = world(tmp_path, budget=budget, more=more)
    with Session(path) as session:
        for sql in PUBLIC:
            assert session.forecast(sql).cost.epsilon == 0
            answer = session.query(sql)
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
    columns = """
[columns.who]
role = "identifier"
[columns.ill]
role = "private"
values = [0, 1]
[columns.kind]
values = [0, 1, 2, 3, 4]
"""
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


def test_what_a_person_moves_is_as_many_times_as_large(tmp_path: Path) -> None:
    spread = {}
    for most in (1, 4):
        folder = tmp_path / str(most)
        folder.mkdir()
        with Session(visits(folder, most, 2000)) as session:
            answer = session.query("SELECT COUNT(*) FROM t WHERE ill = 1", measure=True)
        spread[most] = number(answer).error
    assert spread[1] is not None and spread[4] == pytest.approx(4 * spread[1], rel=1e-4)


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


@pytest.mark.parametrize("strategy", ["tables", "histogram", "cold", "warm", "auto"])
def test_every_strategy_answers_and_says_where_from(strategy: str, tmp_path: Path) -> None:
    path = world(tmp_path, budget=LAVISH, more=f'[answer]\nstrategy = "{strategy}"\n')
    with Session(path) as session:
        for sql in (COUNT, BY_SEX, "SELECT sex, ill, AVG(visits) FROM t GROUP BY 1, 2"):
            answer = session.query(sql)
            wide = "ill" in sql
            if strategy == "tables" and wide:
                assert answer.origin is Origin.UNVERIFIED
                assert all(cell.lo is None for cell in numbers(answer))
            else:
                assert answer.origin in (Origin.SURROGATE, Origin.MEASURED)
                assert all(cell.lo is not None for cell in numbers(answer))
        assert session.standing().strategy == ("warm" if strategy == "auto" else strategy)


def test_a_surprise_is_measured_charged_and_counted_for_who_asked(tmp_path: Path) -> None:
    path = write_policy(tmp_path)
    with Session(path, principal="alice") as session:
        easy = session.query(PAIRS)
        hard = session.query(PARITIES[0])
        standing = session.standing()
    assert (easy.origin, hard.origin) == (Origin.SURROGATE, Origin.MEASURED)
    assert hard.cost.epsilon > 0
    assert standing.principals == {"alice": 1} and standing.surprises == 1


def test_when_the_gate_is_closed_it_is_refused_with_what_is_left(tmp_path: Path) -> None:
    path = write_policy(tmp_path, settings=["surprises = 1"])
    with Session(path) as session:
        first = session.query(PARITIES[0])
        with pytest.raises(GateClosed, match="is left"):
            session.query(PAIRS)
        assert session.query(PARITIES[0]).rows == first.rows


def test_when_the_gate_is_closed_the_stand_in_goes_on_if_the_policy_says_so(tmp_path: Path) -> None:
    path = write_policy(tmp_path, settings=["surprises = 1", 'exhausted = "unverified"'])
    with Session(path) as session:
        session.query(PARITIES[0])
        spent = session.standing().spent
        answer = session.query(PAIRS)
        assert answer.origin is Origin.UNVERIFIED and answer.cost.epsilon == 0
        assert number(answer).lo is None and number(answer).session_hi is None
        assert number(answer).value == pytest.approx(1250, abs=300)
        assert session.standing().spent == spent


def test_a_ration_is_for_each_principal(tmp_path: Path) -> None:
    path = write_policy(tmp_path, settings=["ration = 1"])
    with Session(path, principal="alice") as session:
        assert session.query(PARITIES[0]).origin is Origin.MEASURED
        with pytest.raises(RationSpent):
            session.query(PAIRS)
    with Session(path, principal="bob") as session:
        assert session.query(PAIRS).origin is Origin.SURROGATE


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


@pytest.mark.parametrize("sql", HOSTILE, ids=range(len(HOSTILE)))
def test_what_cannot_be_answered_is_refused_before_anything_is_charged(
    sql: str, tmp_path: Path
) -> None:
    with Session(world(tmp_path, number=20)) as session:
        for measure in (False, True):
            with pytest.raises(Unsupported) as refusal:
                session.query(sql, measure=measure)
            assert str(refusal.value)
        assert session.standing().spent.epsilon == 0


def test_a_question_that_no_table_answers_is_refused_before_anything_is_charged(
    tmp_path: Path,
) -> None:
    wide = "".join(f"[columns.c{i}]\nvalues = {list(range(40))}\n" for i in range(4))
    csv(tmp_path / "wide.csv", [f"c{i}" for i in range(4)], [[j] * 4 for j in range(40)])
    path = policy(tmp_path, table='source = "wide.csv"', columns=wide)
    with Session(path) as session:
        with pytest.raises(Unsupported, match="ask for fewer"):
            session.query("SELECT c0, c1, SUM(c2), SUM(c3) FROM t GROUP BY c0, c1")
        assert session.standing().spent.epsilon == 0


def test_a_long_condition_is_answered_like_a_short_one(tmp_path: Path) -> None:
    long = " OR ".join(f"age = {i}" for i in range(1000))
    with Session(world(tmp_path)) as session:
        first = session.query("SELECT COUNT(*) FROM t WHERE age IS NOT NULL")
        again = session.query(f"SELECT COUNT(*) FROM t WHERE {long}")
    assert again.origin is Origin.CACHED and again.rows == first.rows


def test_a_policy_without_a_budget_is_one_sentence(tmp_path: Path) -> None:
    path = world(tmp_path, budget=None)
    with pytest.raises(Misconfigured, match="has no budget") as refusal:
        Session(path)
    assert "\n" not in str(refusal.value)
    assert set(modes(tmp_path)) == {"people.csv", "casemate.toml"}


def test_a_policy_of_which_no_column_can_be_asked_about_makes_no_ledger(tmp_path: Path) -> None:
    path = world(tmp_path, columns='[columns.sex]\nrole = "public"\n')
    with pytest.raises(Misconfigured, match="can be asked about"):
        Session(path)
    assert set(modes(tmp_path)) == {"people.csv", "casemate.toml"}


def test_a_histogram_of_too_large_a_grid_is_refused_before_anything_is_charged(
    tmp_path: Path,
) -> None:
    wide = "".join(f"[columns.c{i}]\nvalues = [0, 1]\n" for i in range(40))
    csv(tmp_path / "wide.csv", [f"c{i}" for i in range(40)], [[1] * 40])
    more = '[answer]\nstrategy = "histogram"\n'
    with pytest.raises(Misconfigured, match="histogram"):
        Session(policy(tmp_path, table='source = "wide.csv"', columns=wide, more=more))
    assert set(modes(tmp_path)) == {"wide.csv", "casemate.toml"}


def test_a_table_of_many_columns_is_opened_at_once(tmp_path: Path) -> None:
    wide = "".join(f"[columns.c{i}]\nvalues = [0, 1]\n" for i in range(60))
    csv(tmp_path / "wide.csv", [f"c{i}" for i in range(60)], [[1] * 60])
    with Session(policy(tmp_path, table='source = "wide.csv"', columns=wide)) as session:
        assert session.forecast("SELECT COUNT(*) FROM t WHERE c3 = 1").cost.epsilon > 0


def test_another_relation_needs_another_ledger(tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        session.query(COUNT)
    with pytest.raises((Refused, Misconfigured)):
        Session(policy(tmp_path, budget=f'{MODERATE}\nneighbours = "replace"'))


def test_a_larger_budget_goes_on_where_the_smaller_one_ended(tmp_path: Path) -> None:
    with Session(world(tmp_path)) as session:
        first = session.query(COUNT)
    with Session(policy(tmp_path, budget="epsilon = 2\ndelta = 1e-6")) as session:
        again = session.query(COUNT)
        more = session.query(BY_SEX)
        standing = session.standing()
    assert again.origin is Origin.CACHED and again.rows == first.rows
    assert standing.budget.epsilon == pytest.approx(2, abs=1e-6)
    assert more.remaining == standing.remaining


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
        session.query(COUNT)
    found = modes(rules)
    assert {"casemate.ledger", "casemate.ledger-gate", "casemate.ledger-gate.lock"} <= set(found)
    assert "casemate.ledger-key" not in found
    assert all(mode == 0o600 for name, mode in found.items() if name != "casemate.toml")
    assert os.listdir(data) == ["people.csv"] and not os.listdir(elsewhere)


def test_a_ledger_may_be_somewhere_else(tmp_path: Path) -> None:
    (tmp_path / "spent").mkdir()
    path = world(tmp_path, budget=f'{MODERATE}\nledger = "spent/mine.ledger"')
    with Session(path) as session:
        session.query(COUNT)
    assert {"mine.ledger", "mine.ledger-gate"} <= set(modes(tmp_path / "spent"))
    assert set(modes(tmp_path)) == {"people.csv", "casemate.toml", "spent"}


def test_people_with_several_rows_have_a_key_beside_the_ledger(tmp_path: Path) -> None:
    path = visits(tmp_path, 2, 100)
    with Session(path) as session:
        session.query(COUNT)
    assert modes(tmp_path)["casemate.ledger-key"] == 0o600
    key = (tmp_path / "casemate.ledger-key").read_bytes()
    with Session(path) as session:
        session.query(BY_KIND)
    assert (tmp_path / "casemate.ledger-key").read_bytes() == key


BY_KIND = "SELECT kind, COUNT(*) FROM t GROUP BY kind"


def test_a_session_that_cannot_begin_lets_go_of_the_table(tmp_path: Path) -> None:
    path = visits(tmp_path, 2, 100)
    (tmp_path / "casemate.ledger-key").write_bytes(b"short")
    with pytest.raises(Misconfigured, match="key"):
        Session(path)
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


def test_a_session_that_charges_takes_no_seed(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        Session(world(tmp_path), seed=1)  # type: ignore[call-arg]  # there is no such argument
    with Session(policy(tmp_path)) as session:
        assert not any("seeded" in note for note in session.query(COUNT).notes)


def test_two_tables_in_memory_do_not_answer_alike(tmp_path: Path) -> None:
    found = []
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        with Session(world(folder)) as session:
            found.append(session.query(BY_SEX).rows)
    assert found[0] != found[1]


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
        Session(policy(tmp_path, table='source = "rich.csv"', columns=COLUMNS))
    said += [str(mistake.value), caplog.text, *capsys.readouterr()]
    for text in said:
        assert str(MARK) not in text and "Zebulon" not in text and "Zorro" not in text
