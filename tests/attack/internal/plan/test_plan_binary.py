"""All bits of a table by fewer queries than records."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from attack.bit_tables import KINDS, written

from casemate.attack.plan import Plan
from casemate.attack.plan.plan import Planner
from casemate.attack.plan.result import Design, sums_needed
from casemate.query.engines import answers
from casemate.query.parse import parse
from casemate.table import Table


def told(queries: tuple[str, ...], table: Table) -> list[int]:
    aggregates = [parse(sql, table.policy)[0] for sql in queries]
    return [int(str(each[()] or 0)) for each in answers(aggregates, table.source)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", ["integer", "text"])
def test_bits_of_every_kind_are_decoded(kind: str, key: str, tmp_path: Path, rng: Random) -> None:
    bits = [rng.randrange(2) for _ in range(40)]
    with Table.open(written(tmp_path, bits, kind, key)) as table:
        plan = Plan.of(table, "all")
        assert plan.verified and plan.design is not None
        assert len(plan.queries) == sums_needed(40) == 19
        no, yes = {"category": ("no", "yes"), "boolean": (False, True)}.get(kind, (0, 1))
        expected = [yes if bit else no for bit in bits]
        assert list(plan.decode(told(plan.queries, table)).values()) == expected


@pytest.mark.parametrize("least", [2, 5, 17, 20])
def test_small_sets_are_asked_for_by_their_complements(
    least: int, tmp_path: Path, rng: Random
) -> None:
    bits = [rng.randrange(2) for _ in range(40)]
    with Table.open(written(tmp_path, bits, "number")) as table:
        plan = Plan.of(table, "all", min_count=least)
        assert plan.verified and min(plan.counts) >= least
        assert len(plan.queries) <= sums_needed(40) + 1
        assert list(plan.decode(told(plan.queries, table)).values()) == bits


def test_a_minimum_count_above_half_needs_another_plan(tmp_path: Path) -> None:
    with Table.open(written(tmp_path, [0, 1] * 10, "number")) as table:
        plan = Plan.of(table, "all", min_count=12)
        assert plan.design is None and plan.verified and len(plan.determined) < 20


def test_a_thousand_bits_take_255_queries(tmp_path: Path, rng: Random) -> None:
    bits = [rng.randrange(2) for _ in range(1024)]
    with Table.open(written(tmp_path, bits, "number")) as table:
        planner = Planner(table)
        design = Design(planner.setting.subsets) if planner.setting.subsets else None
        assert design is not None and len(design.sets) == 255 and not design.whole
        sums = (np.array(design.sets) @ np.array(bits)).tolist()
        assert design.decode(sums).tolist() == bits


def test_a_design_that_is_not_what_it_says_is_not_verified(tmp_path: Path) -> None:
    with Table.open(written(tmp_path, [0, 1] * 5, "number")) as table:
        setting = Planner(table).setting
        assert setting.subsets is not None
        design = Design(setting.subsets)
        queries = list(design.queries())
        assert design.proved(setting.read(queries))
        queries[0], queries[1] = queries[1], queries[0]
        assert not design.proved(setting.read(queries))


def test_without_a_column_that_tells_all_apart_there_is_a_query_for_each(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,s\n" + "".join(f"{i % 4},{i // 4},1\n" for i in range(12)))
    policy = tmp_path / "t.toml"
    policy.write_text(
        '[table]\nsource = "t.csv"\n[columns.a]\nrole = "public"\n[columns.b]\nrole = "public"\n'
        '[columns.s]\nrole = "private"\nmin = 0\nmax = 1\n'
    )
    plan = Plan.of(policy, "all", min_count=2)
    assert plan.design is None and plan.verified and len(plan.queries) == 12
