"""Plans for everybody: one query for each record where the language allows it."""

from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from attack.every_plan import as_csv, determined, selections, small_columns

from casemate.attack.plan import Plan
from casemate.attack.plan.chains import best_chains
from casemate.attack.plan.everybody import everybody
from casemate.attack.plan.language import Language, read_language, unpacked
from casemate.attack.plan.plan import Planner
from casemate.attack.plan.result import Planned
from casemate.attack.plan.target import Targets
from casemate.query.engines import answers
from casemate.query.language import Scalar
from casemate.query.parse import parse
from casemate.table import Table


def decoded(plan: Planned, table: Table) -> dict[Scalar, Scalar | Fraction]:
    """What the table's own answers to the queries are decoded to."""
    aggregates = [parse(sql, table.policy)[0] for sql in plan.queries]
    told = [each[()] for each in answers(aggregates, table.source)]
    return plan.decode(told)  # type: ignore[arg-type]  # numbers


def truth(table: Table, column: str) -> list[object]:
    frame = table.source.read(f"SELECT * FROM {table.source.relation()} AS t")
    return list(frame[column].values.tolist())


@pytest.mark.parametrize(("least", "queries"), [(1, 6), (2, 6), (3, 6)])
def test_in_the_hospital_six_queries_determine_six_people(least: int, queries: int) -> None:
    with Table.open("hospital") as table:
        plan = Plan.of(table, "all", min_count=least)
        assert (len(plan.queries), plan.verified, plan.optimal) == (queries, True, True)
        assert [value for _, value in sorted(decoded(plan, table).items(), key=str)] == [
            Fraction(str(each)) for each in truth(table, "Blood sugar")
        ]


def test_everybody_whom_any_plan_determines_is_determined(tmp_path: Path, rng: Random) -> None:
    for number in range(6):
        columns = small_columns(rng)
        count, secret = len(columns[0][1]), [rng.randrange(50) for _ in columns[0][1]]
        path = tmp_path / f"{number}.csv"
        path.write_text(as_csv(columns, secret))
        with Table.open(path, private=["s"]) as table:
            for least in range(1, count + 1):
                sets = selections(columns, least)
                reached = [i for i in range(count) if determined(sets, count, i)]
                plan = Plan.of(table, "all", min_count=least)
                assert plan.verified == bool(reached)
                if reached:
                    assert decoded(plan, table) == {i + 1: secret[i] for i in reached}
                    assert len(reached) <= len(plan.queries) <= len(sets)
                    assert plan.optimal == (len(plan.queries) == len(reached))


@pytest.mark.parametrize("least", [1, 2, 5, 10])
def test_a_larger_table_takes_one_query_for_each_record(least: int) -> None:
    with Table.open("population:150") as table:
        plan = Planner(table, "income", min_count=least).plan("all", seconds=60)
        assert plan.verified and min(plan.counts) >= least
        alone = 150 - len(plan.inseparable)
        assert len(plan.determined) == alone and not plan.undetermined
        assert len(plan.queries) == alone and plan.optimal
        values = truth(table, "income")
        assert decoded(plan, table) == {r: values[int(str(r)) - 1] for r in decoded(plan, table)}


def test_a_large_minimum_count_takes_a_few_more() -> None:
    with Table.open("population:150") as table:
        plan = Planner(table, "income", min_count=25).plan("all", seconds=60)
        assert plan.verified and len(plan.determined) == 150 - len(plan.inseparable)
        assert len(plan.queries) <= 150


def test_a_category_takes_a_count_for_each_value_but_one() -> None:
    with Table.open("population:30") as table:
        plan = Planner(table, "diagnosis", min_count=3).plan("all")
        assert plan.verified and len(plan.queries) == 11 * len(plan.determined)
        values = truth(table, "diagnosis")
        assert all(value == values[int(str(r)) - 1] for r, value in decoded(plan, table).items())


def test_a_limit_on_the_number_of_queries_is_kept() -> None:
    plan = Plan.of("hospital", "all", min_count=2, max_queries=5)
    assert (plan.queries, plan.impossible, plan.lower_bound) == ((), True, 6)
    assert plan.reason == "6 records need at least 6 queries, and the limit is 5"
    assert Plan.of("hospital", "all", min_count=2, max_queries=6).verified


def test_nobody_is_determined_where_everybody_has_a_twin(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,s\n1,5\n1,6\n2,7\n2,8\n")
    plan = Plan.of(path, "all", private="s")
    assert (plan.queries, plan.impossible, plan.inseparable) == ((), True, (1, 2, 3, 4))
    assert plan.reason is not None and plan.reason.startswith("every record agrees with another")


# Chains -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [2, 3, 7])
def test_a_chain_takes_one_query_for_each_record_and_each_is_large_enough(least: int) -> None:
    with Table.open("population:200") as table:
        language: Language = read_language(table.policy, table.source)
    chains = best_chains(language, least)
    assert chains
    for chain in chains:
        sums, queries = list(chain.combinations(least)), set()
        assert [record for record, _ in sums] == list(chain.records)
        for record, terms in sums:
            total = np.zeros(language.count, np.int64)
            for sign, box in terms:
                members = language.members(box)
                assert members.bit_count() >= least
                queries.add(members)
                total += sign * unpacked(members, language.count)
            assert np.flatnonzero(total).tolist() == [record] and total[record] == 1
        assert len(queries) == len(sums)


@pytest.mark.slow
def test_ten_thousand_records_take_as_many_queries() -> None:
    with Table.open("population") as table:
        language = read_language(table.policy, table.source)
    found = everybody(Targets(language, 5, np.random.default_rng(0)), 600.0)
    assert len(found.combinations) >= 0.99 * language.alone.bit_count()
    assert len(found.boxes) <= 1.02 * len(found.combinations)
