"""Plans for one record and for all: verified, as short as brute force, of public columns alone."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from attack.every_plan import as_csv, determined, selections, shortest, small_columns
from attack.plans import Exact, policy_of, truth

from casemate.attack.plan import Plan
from casemate.attack.plan.plan import Planner
from casemate.attack.plan.result import Planned
from casemate.attack.plan.setting import verify
from casemate.errors import Misconfigured
from casemate.query.language import Scalar
from casemate.table import Table


@pytest.fixture(scope="module")
def hospital() -> Iterator[Table]:
    with Table.open("hospital") as table:
        yield table


@pytest.fixture(scope="module")
def population() -> Iterator[Table]:
    with Table.open("population:2000") as table:
        yield table


def decoded(plan: Planned, table: Table) -> dict[Scalar, Scalar | Fraction]:
    """What the table's own answers to the queries are decoded to."""
    return plan.decode(Exact(table).answers(plan.queries))


def value(plan: Planned, table: Table) -> object:
    return plan.value(Exact(table).answers(plan.queries))


# As short as can be -----------------------------------------------------------------------------


def compared(tables: int, folder: Path, rng: Random) -> set[int]:
    """Plan for every record of some small tables, compare, and say which lengths occurred."""
    lengths = set()
    for number in range(tables):
        columns = small_columns(rng)
        count = len(columns[0][1])
        secret = [rng.randrange(100) for _ in range(count)]
        path = folder / f"{number}.csv"
        path.write_text(as_csv(columns, secret))
        with Table.open(path, private=["s"]) as table:
            for least in range(1, count + 1):
                planner = Planner(table, min_count=least, random=np.random.default_rng(number))
                sets = selections(columns, least)
                reached = [i for i in range(count) if determined(sets, count, i)]
                for target in range(count):
                    plan = planner.plan(target + 1)
                    assert bool(plan.queries) == (target in reached)
                    best = shortest(sets, count, target, 6_000)
                    if best is not None:
                        assert len(plan.queries) == best and plan.verified and plan.optimal
                        assert value(plan, table) == secret[target]
                        lengths.add(best)
                whole = planner.plan("all")
                assert whole.verified == bool(reached)
                if reached:
                    assert decoded(whole, table) == {i + 1: secret[i] for i in reached}
                    assert len(reached) <= len(whole.queries) <= len(sets)
                    assert whole.optimal == (len(whole.queries) == len(reached))
    return lengths


def test_on_small_tables_no_plan_is_longer_than_brute_force(tmp_path: Path, rng: Random) -> None:
    assert {1, 2} <= compared(2, tmp_path, rng)


@pytest.mark.slow
def test_on_many_small_tables_no_plan_is_longer_than_brute_force(
    tmp_path: Path, rng: Random
) -> None:
    assert {1, 2, 3, 4, 5} <= compared(60, tmp_path, rng)


@pytest.mark.parametrize(("least", "queries"), [(1, 1), (2, 2), (100, 2), (600, 4)])
def test_larger_minimum_counts_take_longer_trackers(
    least: int, queries: int, population: Table
) -> None:
    plan = Planner(population, "income", min_count=least).plan(7)
    assert plan.verified and len(plan.queries) == queries and min(plan.counts) >= least
    assert plan.optimal == (queries < 4) and plan.lower_bound == min(queries, 3)
    assert value(plan, population) == truth(population, "income")[6]


@pytest.mark.parametrize("least", [1, 10])
def test_a_larger_table_takes_one_query_for_each_record(least: int) -> None:
    with Table.open("population:60") as table:
        plan = Planner(table, "income", min_count=least).plan("all", seconds=60)
        assert plan.verified and min(plan.counts) >= least
        alone = 60 - len(plan.inseparable)
        assert len(plan.determined) == alone == len(plan.queries)
        assert plan.optimal and not plan.undetermined
        values = truth(table, "income")
        assert decoded(plan, table) == {r: values[int(str(r)) - 1] for r in decoded(plan, table)}


# What is secret ---------------------------------------------------------------------------------


def test_a_category_is_told_by_counts(population: Table) -> None:
    plan = Planner(population, "diagnosis", min_count=3).plan(9)
    assert plan.verified and len(plan.queries) == 2 * 11
    assert plan.lower_bound == 12 and not plan.optimal
    assert value(plan, population) == truth(population, "diagnosis")[8]
    with Table.open("population:20") as table:
        whole = Planner(table, "diagnosis", min_count=3).plan("all")
        assert whole.verified and len(whole.queries) == 11 * len(whole.determined)
        values = truth(table, "diagnosis")
        assert all(value == values[int(str(r)) - 1] for r, value in decoded(whole, table).items())


def test_a_boolean_is_one_count_and_may_be_missing(tmp_path: Path) -> None:
    csv = "a,b,s\n1,x,true\n2,x,\n3,y,false\n4,y,true\n"
    with Table.open(policy_of(tmp_path, csv, "values = [true, false]\nnullable = true\n")) as table:
        found = [Planner(table, min_count=2).plan(record) for record in (1, 2, 3, 4)]
        assert [value(plan, table) for plan in found] == [True, None, False, True]
        assert all(plan.verified and len(plan.queries) == 4 for plan in found)


def test_no_private_value_is_looked_at(tmp_path: Path) -> None:
    declared = 'type = "integer"\nmin = 0\nmax = 99\nnullable = true\n'
    plans = []
    for name, secret in (("x", "9"), ("y", ""), ("z", "{}")):
        rows = "".join(f"{i},{i * 7 % 5},{secret.format(i)}\n" for i in range(30))
        policy = policy_of(tmp_path, f"a,b,s\n{rows}", declared, name)
        with Table.open(policy) as table:
            planner = Planner(table, min_count=4)
            plans.append([planner.plan(record) for record in (1, 15)])
    assert plans[0] == plans[1] == plans[2]
    assert all(plan.verified for plan in plans[0])


# Whether that is believed -----------------------------------------------------------------------


def test_a_wrong_plan_is_not_verified(hospital: Table) -> None:
    setting = Planner(hospital, min_count=2).setting
    plan = Plan.of(hospital, 2, min_count=2)
    reading = setting.read(plan.queries)
    right = dict(enumerate(plan.combination))
    assert verify(reading, setting.secret, [(1, right)], 2)
    assert not verify(reading, setting.secret, [(2, right)], 2)  # another record
    assert not verify(reading, setting.secret, [(1, right)], 6)  # a query is too small
    assert not verify(reading, setting.secret, [(1, {**right, 0: Fraction(2)})], 2)
    assert not verify(reading, setting.secret, [(1, {0: Fraction(1)})], 2)


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
    path.write_text("a,s\n1,5\n1,6\n2,7\n2,8\n")
    plan = Plan.of(path, "all", private="s")
    assert (plan.queries, plan.impossible, plan.inseparable) == ((), True, (1, 2, 3, 4))
    assert plan.reason is not None and plan.reason.startswith("every record agrees with another")


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
    ("target", "least", "most", "reason"),
    [
        (1, 2, 1, "record 1 needs at least 2 queries, and the limit is 1"),
        (1, 5, None, "all queries with at least 5 records together do not determine record 1"),
        ("all", 2, 5, "6 records need at least 6 queries, and the limit is 5"),
    ],
)
def test_no_plan_is_said_and_proved(
    target: Scalar, least: int, most: int | None, reason: str, hospital: Table
) -> None:
    plan = Plan.of(hospital, target, min_count=least, max_queries=most)
    assert (plan.queries, plan.verified, plan.optimal) == ((), False, False)
    assert (plan.impossible, plan.reason) == (True, reason)


def test_a_plan_that_was_only_not_found_is_not_said_to_be_impossible(population: Table) -> None:
    plan = Planner(population, "income", min_count=600).plan(7, max_queries=3)
    assert not plan.queries and not plan.impossible
    assert plan.reason is not None and "it is not proved that there is none" in plan.reason


def test_a_column_with_infinite_numbers_is_left_out_and_nothing_is_claimed(tmp_path: Path) -> None:
    """Record 1 and record 2 differ in that column alone, so they are not said to be twins."""
    (tmp_path / "t.csv").write_text("a,b,s\n1,inf,5\n1,2.5,6\n2,3.5,7\n3,0.5,8\n")
    plan = Plan.of(tmp_path / "t.csv", 1, private="s")
    assert not plan.queries and not plan.impossible
    assert Plan.of(tmp_path / "t.csv", 3, private="s").verified


# Bad input --------------------------------------------------------------------------------------


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
        ({"csv": "s\n1\n2\n", "private": "s"}, "no column is public"),
        ({"csv": "s\n1\n2\n"}, "no column is private"),
        ({"csv": "a,s\n1,x\n2,y\n", "private": "s"}, "neither a number nor a category"),
        ({"csv": "a,s\n1,x\n2,x\n", "policy": 'values = ["x"]\n'}, "has one possible value"),
    ],
)
def test_bad_input_is_one_sentence(options: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"table": "hospital", "target": 2} | options
    if (csv := given.pop("csv", None)) is not None:
        policy = policy_of(tmp_path, csv, given.pop("policy", ""))
        given["table"] = policy if "policy" in options else policy.with_suffix(".csv")
    with pytest.raises(Misconfigured, match=sentence) as caught:
        Plan.of(**given)
    assert "\n" not in str(caught.value)


def test_a_column_of_an_open_table_must_be_private(hospital: Table) -> None:
    with pytest.raises(Misconfigured, match="'ZIP' is not private"):
        Plan.of(hospital, 1, private="ZIP")


@pytest.mark.parametrize(
    ("changes", "answers", "sentence"),
    [
        ({}, [1], "2 queries, and 1 answers came"),
        ({"combination": ()}, [1, 1], "not for one record"),
        ({"values": ("no", "yes")}, [1, 2], "no value of the category"),
        ({"values": ("no", "yes")}, [3, 1], "no value of the category"),
        ({"values": ("no", "yes")}, [1.5, 1], "no value of the category"),
    ],
)
def test_answers_that_are_not_those_of_the_queries_are_refused(
    changes: dict[str, Any], answers: list[float], sentence: str
) -> None:
    plan = replace(Plan.of("hospital", 2, min_count=2), **changes)
    with pytest.raises(ValueError, match=sentence):
        plan.value(answers)


# Many targets -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("name", "private"), [("population", "income"), ("rand_hie", "outpdol")])
def test_five_hundred_random_targets_have_verified_plans(
    name: str, private: str, rng: Random
) -> None:
    """Every plan is verified, and whoever has none is a twin."""
    with Table.open(name) as table:
        for least in (1, 2, 5, 20, 100):
            planner = Planner(table, private, min_count=least)
            places = rng.sample(range(planner.setting.language.count), 100)
            plans = [planner.plan(planner.setting.name(place), seconds=120) for place in places]
            assert all(plan.verified == bool(plan.queries) for plan in plans)
            assert all(plan.queries or plan.inseparable for plan in plans)
            assert sum(plan.verified for plan in plans) > 90
