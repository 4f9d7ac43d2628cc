"""Plans for one record: verified, as short as brute force, and made of public columns alone."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from attack.every_plan import Column, as_csv, determined, selections, shortest, small_columns

from casemate.attack.plan import Plan
from casemate.attack.plan.check import proved
from casemate.attack.plan.plan import Planner
from casemate.attack.plan.result import Planned
from casemate.errors import Misconfigured
from casemate.query.engines import answers
from casemate.query.language import Scalar
from casemate.query.parse import parse
from casemate.table import Table
from casemate.table.shipped.tables import PATIENTS

HOSPITAL: list[Column] = [
    (True, [row[2] for row in PATIENTS]),
    (False, [row[3] for row in PATIENTS]),
]


@pytest.fixture(scope="module")
def hospital() -> Iterator[Table]:
    with Table.open("hospital") as table:
        yield table


@pytest.fixture(scope="module")
def population() -> Iterator[Table]:
    with Table.open("population:2000") as table:
        yield table


def told(plan: Planned, table: Table) -> list[Scalar]:
    """What the table answers to the queries of a plan."""
    aggregates = [parse(sql, table.policy)[0] for sql in plan.queries]
    return [each[()] for each in answers(aggregates, table.source)]


def value(plan: Planned, table: Table) -> object:
    return plan.value(told(plan, table))  # type: ignore[arg-type]  # numbers


# As short as can be -----------------------------------------------------------------------------


@pytest.mark.parametrize("least", range(1, 7))
def test_in_the_hospital_no_plan_is_longer_than_brute_force(least: int, hospital: Table) -> None:
    planner = Planner(hospital, min_count=least)
    sets = selections(HOSPITAL, least)
    for target in range(6):
        plan = planner.plan(target + 1)
        best = shortest(sets, 6, target)
        if best is None:
            assert (plan.queries, plan.impossible, plan.verified) == ((), True, False)
        else:
            assert (len(plan.queries), plan.verified, plan.optimal) == (best, True, True)
            assert value(plan, hospital) == Fraction(PATIENTS[target][4])


def compared(tables: int, folder: Path, rng: Random) -> set[int]:
    """Plan for every record of some small tables, compare, and say which lengths occurred."""
    lengths = set()
    for number in range(tables):
        columns = small_columns(rng)
        count = len(columns[0][1])
        path = folder / f"{number}.csv"
        path.write_text(as_csv(columns, [rng.randrange(100) for _ in range(count)]))
        with Table.open(path, private=["s"]) as table:
            for least in range(1, count + 1):
                planner = Planner(table, min_count=least, random=np.random.default_rng(number))
                sets = selections(columns, least)
                for target in range(count):
                    plan = planner.plan(target + 1)
                    assert bool(plan.queries) == determined(sets, count, target)
                    best = shortest(sets, count, target, 20_000)
                    if best is not None:
                        assert (len(plan.queries), plan.verified) == (best, True)
                        assert plan.optimal
                        lengths.add(best)
    return lengths


def test_on_small_tables_no_plan_is_longer_than_brute_force(tmp_path: Path, rng: Random) -> None:
    assert {1, 2, 3} <= compared(5, tmp_path, rng)


@pytest.mark.slow
def test_on_many_small_tables_no_plan_is_longer_than_brute_force(
    tmp_path: Path, rng: Random
) -> None:
    assert {1, 2, 3, 4, 5} <= compared(100, tmp_path, rng)


def test_no_query_selects_fewer_records_than_it_must(population: Table) -> None:
    for least in (1, 7, 100, 400):
        plan = Planner(population, "income", min_count=least).plan(19)
        assert plan.verified and min(plan.counts) >= least


@pytest.mark.parametrize(("least", "queries"), [(1, 1), (2, 2), (100, 2), (600, 4)])
def test_larger_minimum_counts_take_longer_trackers(
    least: int, queries: int, population: Table
) -> None:
    plan = Planner(population, "income", min_count=least).plan(7)
    assert plan.verified and len(plan.queries) == queries


# What it is worth -------------------------------------------------------------------------------


def test_the_answers_add_up_to_the_value(population: Table, rng: Random) -> None:
    column = population.source.read(f"SELECT * FROM {population.source.relation()} AS t")["income"]
    for least in (1, 5, 50):
        planner = Planner(population, "income", min_count=least)
        for record in rng.sample(range(1, 2001), 5):
            plan = planner.plan(record)
            if plan.queries:
                assert value(plan, population) == column.values[record - 1]


def test_a_category_is_told_by_counts(population: Table) -> None:
    frame = population.source.read(f"SELECT * FROM {population.source.relation()} AS t")
    plan = Planner(population, "diagnosis", min_count=3).plan(9)
    assert plan.verified and len(plan.queries) == 2 * 11
    assert plan.lower_bound == 12 and not plan.optimal
    assert value(plan, population) == frame["diagnosis"].values[8]


def test_a_boolean_is_one_count_and_may_be_missing(tmp_path: Path) -> None:
    path, policy = tmp_path / "t.csv", tmp_path / "t.toml"
    path.write_text("a,b,s\n1,x,true\n2,x,\n3,y,false\n4,y,true\n")
    policy.write_text(
        '[table]\nsource = "t.csv"\n[columns.a]\nrole = "public"\n[columns.s]\n'
        'role = "private"\nvalues = [true, false]\nnullable = true\n'
    )
    with Table.open(policy) as table:
        found = [Planner(table, min_count=2).plan(record) for record in (1, 2, 3, 4)]
        assert [value(plan, table) for plan in found] == [True, None, False, True]
        assert all(plan.verified and len(plan.queries) == 4 for plan in found)


def test_a_column_with_declared_numbers_is_summed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,s\n1,2\n2,5\n3,2\n4,5\n")
    policy = tmp_path / "t.toml"
    policy.write_text(
        '[table]\nsource = "t.csv"\n[columns.a]\nrole = "public"\n[columns.s]\n'
        'role = "private"\nvalues = [2, 5]\n'
    )
    with Table.open(policy) as table:
        plan = Planner(table, min_count=2).plan(3)
        assert plan.verified and plan.optimal and value(plan, table) == 2


def test_no_private_value_is_looked_at(tmp_path: Path) -> None:
    public = [("a", range(30)), ("b", [i * 7 % 5 for i in range(30)])]
    plans = []
    for number, secret in enumerate((["9"] * 30, [""] * 30, [str(i) for i in range(30)])):
        rows = zip(*(column for _, column in public), secret, strict=True)
        path = tmp_path / f"{number}.csv"
        path.write_text("a,b,s\n" + "".join(f"{a},{b},{s}\n" for a, b, s in rows))
        policy = tmp_path / f"{number}.toml"
        policy.write_text(
            f'[table]\nsource = "{number}.csv"\n[columns.a]\nrole = "public"\n[columns.b]\n'
            'role = "public"\n[columns.s]\nrole = "private"\ntype = "integer"\nmin = 0\nmax = 99\n'
            "nullable = true\n"
        )
        plans.append([Plan.of(policy, record, min_count=4) for record in (1, 7, 15)])
    assert plans[0] == plans[1] == plans[2]
    assert all(plan.verified for plan in plans[0])


# Whether that is believed -----------------------------------------------------------------------


def test_a_wrong_plan_is_not_verified(hospital: Table) -> None:
    setting = Planner(hospital, min_count=2).setting
    plan = Plan.of(hospital, 2, min_count=2)
    reading = setting.read(plan.queries)
    right = dict(enumerate(plan.combination))
    assert proved(reading, setting.secret, [(1, right)], 2)
    assert not proved(reading, setting.secret, [(2, right)], 2)  # another record
    assert not proved(reading, setting.secret, [(1, right)], 6)  # a query is too small
    assert not proved(reading, setting.secret, [(1, {**right, 0: Fraction(2)})], 2)
    assert not proved(reading, setting.secret, [(1, {0: Fraction(1)})], 2)


def test_a_plan_says_what_is_not_proved(population: Table) -> None:
    plan = Planner(population, "income", min_count=600).plan(7)
    assert plan.verified and not plan.optimal and plan.lower_bound == 3


# No plan ----------------------------------------------------------------------------------------


def test_twins_cannot_be_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,s\n1,x,5\n1,x,6\n2,x,7\n3,y,8\n")
    plan = Plan.of(path, 1, private="s")
    assert (plan.queries, plan.impossible, plan.inseparable) == ((), True, (2,))
    assert plan.reason == (
        "record 1 agrees with 1 other in every public column that queries can use, so none tells "
        "them apart"
    )
    assert Plan.of(path, 3, private="s").verified


def test_rows_of_one_person_are_taken_for_themselves(tmp_path: Path) -> None:
    """The two rows of p are twins, but they have one value: nothing is claimed to be impossible."""
    (tmp_path / "t.csv").write_text("a,who,s\n1,p,5\n1,p,5\n2,q,7\n3,r,8\n")
    policy = tmp_path / "t.toml"
    policy.write_text(
        '[table]\nsource = "t.csv"\nperson = "who"\nrows_per_person = 2\n'
        '[columns.a]\nrole = "public"\n[columns.who]\nrole = "identifier"\n'
        '[columns.s]\nrole = "private"\nper_person = "constant"\nmin = 0\nmax = 9\n'
    )
    plan = Plan.of(policy, 1)
    assert not plan.queries and not plan.impossible
    other = Plan.of(policy, 3, min_count=2)
    assert other.verified and other.lower_bound == 1 and not other.optimal


@pytest.mark.parametrize(
    ("least", "most", "reason"),
    [
        (2, 1, "record 1 needs at least 2 queries, and the limit is 1"),
        (5, None, "all queries with at least 5 records together do not determine record 1"),
    ],
)
def test_no_plan_is_said_and_proved(
    least: int, most: int | None, reason: str, hospital: Table
) -> None:
    plan = Plan.of(hospital, 1, min_count=least, max_queries=most)
    assert (plan.queries, plan.verified, plan.optimal) == ((), False, False)
    assert (plan.impossible, plan.reason) == (True, reason)


def test_a_plan_that_was_only_not_found_is_not_said_to_be_impossible(population: Table) -> None:
    plan = Planner(population, "income", min_count=600).plan(7, max_queries=3)
    assert not plan.queries and not plan.impossible
    assert plan.reason is not None and "it is not proved that there is none" in plan.reason


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": 9}, "there is no record 9"),
        ({"target": "Jeremy"}, "there is no record Jeremy"),
        ({"min_count": 0}, "a minimum count of 0 does not suit a table of 6 records"),
        ({"min_count": 7}, "a minimum count of 7 does not suit a table of 6 records"),
        ({"max_queries": 0}, "a plan of at most 0 queries is none"),
        ({"seconds": 0}, "0 seconds are no time"),
        ({"private": ["ZIP", "Gender"]}, "a plan is for one private column"),
        ({"private": "ZIP", "dialect": "klingon"}, "no SQL dialect 'klingon'"),
        ({"table": "population:50"}, "several columns are private"),
        ({"table": "population:50", "private": "incme"}, "'incme', which is not there"),
    ],
)
def test_bad_input_is_one_sentence(options: dict[str, object], sentence: str) -> None:
    given = {"table": "hospital", "target": 2, **options}
    with pytest.raises(Misconfigured, match=sentence) as caught:
        Plan.of(**given)  # type: ignore[arg-type]  # wrong on purpose
    assert "\n" not in str(caught.value)


def test_a_table_needs_a_public_and_a_private_column(tmp_path: Path, hospital: Table) -> None:
    path = tmp_path / "t.csv"
    path.write_text("s\n1\n2\n")
    with pytest.raises(Misconfigured, match="no column is public"):
        Plan.of(path, 1, private="s")
    with pytest.raises(Misconfigured, match="no column is private"):
        Plan.of(path, 1)
    with pytest.raises(Misconfigured, match="'ZIP' is not private"):
        Plan.of(hospital, 1, private="ZIP")


def test_a_private_text_needs_declared_values(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,s\n1,x\n2,y\n")
    with pytest.raises(Misconfigured, match="neither a number nor a category"):
        Plan.of(path, 1, private="s")


def test_a_category_with_one_value_is_no_secret(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,s\n1,x\n2,x\n")
    policy = tmp_path / "t.toml"
    policy.write_text(
        '[table]\nsource = "t.csv"\n[columns.a]\nrole = "public"\n[columns.s]\n'
        'role = "private"\nvalues = ["x"]\n'
    )
    with pytest.raises(Misconfigured, match="has one possible value"):
        Plan.of(policy, 1)


def test_a_column_with_infinite_numbers_is_left_out_and_nothing_is_claimed(tmp_path: Path) -> None:
    """Record 1 and record 2 differ in that column alone, so they are not said to be twins."""
    (tmp_path / "t.csv").write_text("a,b,s\n1,inf,5\n1,2.5,6\n2,3.5,7\n3,0.5,8\n")
    plan = Plan.of(tmp_path / "t.csv", 1, private="s")
    assert not plan.queries and not plan.impossible
    assert Plan.of(tmp_path / "t.csv", 3, private="s").verified


def test_answers_have_to_be_as_many_as_queries() -> None:
    plan = Plan.of("hospital", 2, min_count=2)
    with pytest.raises(ValueError, match="2 queries, and 1 answers came"):
        plan.value([1])
    with pytest.raises(ValueError, match="not for one record"):
        replace(plan, combination=()).value([1, 1])


# Many targets -----------------------------------------------------------------------------------


def verified(table: Table, private: str, targets: int, least: int, rng: Random) -> int:
    """Plan for random records; every plan is verified, and twins have none. How many had one."""
    planner = Planner(table, private, min_count=least)
    count, found = planner.setting.language.count, 0
    for _ in range(targets):
        plan = planner.plan(planner.setting.name(rng.randrange(count)))
        assert plan.verified == bool(plan.queries)
        assert plan.queries or plan.inseparable
        found += plan.verified
    return found


@pytest.mark.parametrize(("name", "private"), [("population", "income"), ("rand_hie", "outpdol")])
def test_random_targets_have_verified_plans(name: str, private: str, rng: Random) -> None:
    with Table.open(name) as table:
        for least in (1, 5, 100):
            assert verified(table, private, 4, least, rng) > 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "private"), [("population", "income"), ("rand_hie", "outpdol")])
def test_a_thousand_random_targets_have_verified_plans(
    name: str, private: str, rng: Random
) -> None:
    with Table.open(name) as table:
        for least in (1, 2, 5, 20, 100):
            assert verified(table, private, 100, least, rng) > 90
