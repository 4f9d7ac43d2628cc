"""Bits by fewer queries than records, fixed or chosen one by one; other values that stop early."""

import math
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from attack.plans import Exact, policy_of, truth
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.plan import AdaptivePlan, Plan
from casemate.attack.plan.adaptive import AdaptiveFindings, costs
from casemate.attack.plan.detecting_matrix import (
    Design,
    DetectingMatrix,
    sums_necessary,
    sums_needed,
)
from casemate.attack.plan.plan import Planner
from casemate.errors import Misconfigured
from casemate.table import Table

KINDS = {
    "number": ("min = 0\nmax = 1\n", (0, 1)),
    "category": ('values = ["no", "yes"]\n', ("no", "yes")),
    "boolean": ("values = [false, true]\n", (False, True)),
    "declared": ("values = [0, 1]\n", (0, 1)),
}


def bit_table(folder: Path, bits: list[int], kind: str = "number", key: str = "1{:03}") -> Path:
    """A table with a public column that is different in every record, and bits of some kind."""
    declared, values = KINDS[kind]
    rows = (f"{key.format(i)},{i % 3},{str(values[bit]).lower()}" for i, bit in enumerate(bits))
    return policy_of(folder, "\n".join(["k,g,s", *rows, ""]), declared)


# Detecting matrices -----------------------------------------------------------------------------


@pytest.mark.parametrize("bits", range(1, 13))
def test_no_two_bit_strings_have_the_same_sums(bits: int) -> None:
    """By brute force, without the decoder."""
    strings = np.array(list(product((0, 1), repeat=bits)))
    sums = strings @ DetectingMatrix(bits).rows.T.astype(np.int64)
    assert len(np.unique(sums, axis=0)) == 2**bits


@given(st.lists(st.integers(0, 1), min_size=1, max_size=400))
def test_the_bits_are_decoded_from_their_sums(bits: list[int]) -> None:
    matrix = DetectingMatrix(len(bits))
    assert matrix.decode((matrix.rows @ np.array(bits)).tolist()).tolist() == bits


def test_the_number_of_sums_is_about_twice_what_counting_demands() -> None:
    assert all(sums_needed(k * 2 ** (k - 1)) == 2**k - 1 for k in range(1, 11))
    needed = {bits: sums_needed(bits) for bits in range(2, 1100)}
    assert needed[1024] == 255 <= 2.6 * 1024 / math.log2(1024)
    assert all(sums_necessary(n) <= sums <= 2.7 * n / math.log2(n) for n, sums in needed.items())
    assert all(sums < n for n, sums in needed.items() if n > 3)


@pytest.mark.parametrize("sums", [[3, 0, 0], [0, 0, 1], [-1, 0, 0], [2, 2, 3]])
def test_sums_that_no_bits_have_are_noticed(sums: list[int]) -> None:
    with pytest.raises(ValueError, match="not the sums of bits"):
        DetectingMatrix(4).decode(sums)


# As SQL -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "key", "least"),
    [
        *((kind, "1{:03}", 1) for kind in KINDS),
        *(("number", "k{}'", least) for least in (1, 2, 5, 17, 20)),
    ],
)
def test_bits_of_every_kind_are_decoded(
    kind: str, key: str, least: int, tmp_path: Path, rng: Random
) -> None:
    """Sets that are too small are asked for by their complements."""
    bits = [rng.randrange(2) for _ in range(40)]
    with Table.open(bit_table(tmp_path, bits, kind, key)) as table:
        plan = Plan.of(table, "all", min_count=least)
        assert plan.verified and plan.design is not None and min(plan.counts) >= least
        assert 19 == sums_needed(40) <= len(plan.queries) <= 19 + (least > 1)
        expected = [KINDS[kind][1][bit] for bit in bits]
        assert list(plan.decode(Exact(table).answers(plan.queries)).values()) == expected


def test_a_minimum_count_above_half_needs_another_plan(tmp_path: Path) -> None:
    with Table.open(bit_table(tmp_path, [0, 1] * 10)) as table:
        plan = Plan.of(table, "all", min_count=12)
        assert plan.design is None and plan.verified and len(plan.determined) < 20


def test_a_design_that_is_not_what_it_says_is_not_verified(tmp_path: Path) -> None:
    with Table.open(bit_table(tmp_path, [0, 1] * 5)) as table:
        setting = Planner(table).setting
        assert setting.subsets is not None
        design = Design(setting.subsets)
        queries = list(design.queries())
        assert design.verify(setting.read(queries))
        queries[0], queries[1] = queries[1], queries[0]
        assert not design.verify(setting.read(queries))


def test_without_a_column_that_tells_all_apart_there_is_a_query_for_each(tmp_path: Path) -> None:
    rows = "".join(f"{i % 4},{i // 4},1\n" for i in range(12))
    plan = Plan.of(policy_of(tmp_path, f"a,b,s\n{rows}", "min = 0\nmax = 1\n"), "all", min_count=2)
    assert plan.design is None and plan.verified and len(plan.queries) == 12


# Looking at the answers -------------------------------------------------------------------------


def learned(table: Table, least: int = 1) -> tuple[AdaptiveFindings, int]:
    """What was found by queries that are all large enough, and how many a fixed plan has."""
    planner = Planner(table, min_count=least)
    plan = AdaptivePlan(planner, "all")
    found = plan.run(Exact(table))
    assert min(planner.setting.read(found.queries).counts) >= least
    return found, len(plan.fixed.queries)


@pytest.mark.parametrize("kind", ["number", "category", "boolean"])
@pytest.mark.parametrize(("ones", "least"), [(0, 3), (1, 20), (3, 1), (20, 3), (39, 1), (40, 20)])
def test_all_bits_are_right_with_at_most_one_query_more(
    ones: int, least: int, kind: str, tmp_path: Path, rng: Random
) -> None:
    bits = [1] * ones + [0] * (40 - ones)
    rng.shuffle(bits)
    with Table.open(bit_table(tmp_path, bits, kind)) as table:
        found, fixed = learned(table, least)
        assert list(found.values.values()) == [KINDS[kind][1][bit] for bit in bits]
        assert len(found.queries) <= fixed + 1
        assert ones not in (0, 40) or len(found.queries) == 1
        assert ones not in (1, 39) or len(found.queries) <= 7


def test_costs_are_the_worst_of_all_ways_to_fall_and_halving_finds_few_ones() -> None:
    """Against a run of the rule itself on every bit string of a small set."""

    def asked(bits: tuple[int, ...]) -> int:
        size, ones = len(bits), sum(bits)
        if size < 2 or ones in (0, size):
            return 0
        if costs(size)[ones] >= sums_needed(size):
            return sums_needed(size)
        return 1 + asked(bits[: size // 2]) + asked(bits[size // 2 :])

    for size in range(1, 10):
        worst = [0] * (size + 1)
        for bits in product((0, 1), repeat=size):
            worst[sum(bits)] = max(worst[sum(bits)], asked(bits))
        assert worst == costs(size).tolist()
    assert all(costs(size).max() <= sums_needed(size) for size in (17, 69, 256, 1000))
    assert all(costs(1024)[2**k] <= 2**k * (11 - k) for k in range(4))


def numbers(folder: Path, values: list[int], unique: bool) -> Path:
    rows = "".join(f"{i if unique else i // 2},{i % 2},{value}\n" for i, value in enumerate(values))
    return policy_of(folder, f"a,b,s\n{rows}", "min = 0\nmax = 9\n")


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("choices", [(0,), (0, 0, 0, 9, 4), (4,)])
def test_numbers_within_bounds_are_right_and_stop_early(
    choices: tuple[int, ...], unique: bool, tmp_path: Path, rng: Random
) -> None:
    values = [rng.choice(choices) for _ in range(16)]
    with Table.open(numbers(tmp_path, values, unique)) as table:
        for least in (1, 3):
            found, fixed = learned(table, least)
            assert found.values == {i + 1: value for i, value in enumerate(values)}
            assert len(found.queries) <= fixed + 1
            assert any(values) or not unique or len(found.queries) == 1


@pytest.mark.parametrize(
    ("values", "queries"),
    [([0, 0, 0, 0, 0, 0], 1), ([9, 9, 9, 9, 9, 9], 1), ([0, 0, 0, 5, 0, 9], 2)],
)
def test_one_record_is_settled_by_a_sum_at_an_end(
    values: list[int], queries: int, tmp_path: Path
) -> None:
    with Table.open(numbers(tmp_path, values, True)) as table:
        planner = Planner(table, min_count=2)
        for record in range(1, 7):
            plan = AdaptivePlan(planner, record)
            found = plan.run(Exact(table))
            assert found.values == {record: values[record - 1]}
            assert len(found.queries) <= queries <= len(plan.fixed.queries) < plan.most


def test_a_category_of_many_values_is_settled_value_by_value() -> None:
    with Table.open("population:25") as table:
        plan = AdaptivePlan(Planner(table, "diagnosis", min_count=2), "all")
        found, true = plan.run(Exact(table)), truth(table, "diagnosis")
        assert all(value == true[int(str(r)) - 1] for r, value in found.values.items())
        assert len(found.values) == len(plan.fixed.determined)
        assert len(found.queries) < 0.6 * len(plan.fixed.queries)


def test_nothing_to_ask_is_said() -> None:
    with Table.open("hospital") as table, pytest.raises(Misconfigured, match="nothing to ask"):
        AdaptivePlan(Planner(table, min_count=6), 1)
