"""The pieces of a search for plans, each against the slow obvious way."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from attack.every_plan import determined, shortest
from attack.plans import every_box, small_language

from casemate.attack.plan.everybody import chain_sums, everybody
from casemate.attack.plan.language import (
    Box,
    Language,
    Writer,
    pack_bits,
    read_language,
    record_places,
    unpack_bits,
)
from casemate.attack.plan.setting import PlanSecret
from casemate.attack.plan.sides import Boxes, Effort, Unfinished
from casemate.attack.plan.target import ExhaustiveSearch, ShortestPlan, Targets, signed_plan
from casemate.query import Aggregate, Function
from casemate.query.parse import parse
from casemate.query.records import membership
from casemate.table import Role, Table

DIALECTS = (
    *("postgres", "duckdb", "mysql", "bigquery", "spark", "tsql", "sqlite", "snowflake"),
    *("oracle", "clickhouse", "redshift", "trino"),
)

# Queries as sets and as text --------------------------------------------------------------------


@pytest.fixture(scope="module")
def language(people: Table) -> Language:
    return read_language(people.policy, people.source)


def any_box(language: Language, rng: Random) -> Box:
    """A condition on each of a few axes, of every shape."""
    box = {}
    for number in rng.sample(range(len(language.axes)), rng.randint(0, 3)):
        axis = language.axes[number]
        places = sorted(rng.choices(range(axis.last + 1), k=2))
        box[number] = (places[0], places[1] if axis.ordered else places[0])
    return box


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_text_of_a_query_selects_what_the_query_selects(
    dialect: str, language: Language, people: Table, rng: Random
) -> None:
    public = {column.name for column in people.policy.columns if column.role is Role.PUBLIC}
    assert {axis.column.name for axis in language.axes} == public
    column = people.policy.column("income")
    assert column is not None
    secret, writer = PlanSecret(column), Writer(dialect)
    boxes = [any_box(language, rng) for _ in range(30)]
    every = [
        {number: (place, place)}
        for number, axis in enumerate(language.axes)
        for place in range(axis.last + 1)
    ]
    boxes += rng.sample(every, 30)
    texts = [secret.box_statement(box, 1, language, writer) for box in boxes]
    parsed = [parse(text, people.policy, dialect)[0] for text in texts]
    counted = [Aggregate(Function.COUNT, None, each.predicate) for each in parsed]
    found = membership(counted, people.source)
    for number, box in enumerate(boxes):
        assert pack_bits(found.mask(number)) == language.members(box), texts[number]


def test_records_that_agree_in_every_public_column_are_twins(language: Language) -> None:
    few = Language(language.axes[:1], np.arange(language.count))
    groups = {tuple(sorted([place, *few.twins(place)])) for place in range(few.count)}
    assert sorted(place for group in groups for place in group) == list(range(few.count))
    assert set(record_places(few.alone)) == {group[0] for group in groups if len(group) == 1}


# Boxes that keep strangers out ------------------------------------------------------------------


def test_a_box_is_found_iff_there_is_one(rng: Random) -> None:
    found_some = found_none = 0
    for _ in range(60):
        language = small_language(rng)
        target, strangers, friends = (rng.getrandbits(language.count) for _ in range(3))
        target %= language.count
        strangers &= ~(1 << target)
        least = rng.randint(0, 2)
        right = [
            members
            for members in map(language.members, every_box(language))
            if members >> target & 1
            and not members & strangers
            and (members & friends).bit_count() >= least
        ]
        search = Boxes(language, target, range(len(language.axes)), Effort(10_000))
        boxes = list(search.around(strangers, friends, least))
        assert len({frozenset(box.items()) for box in boxes}) == len(boxes)
        given = [language.members(box) for box in boxes]
        assert set(given) <= set(right)
        assert all(any(not members & ~wide for wide in given) for members in right)
        found_some, found_none = found_some + bool(right), found_none + (not right)
    assert found_some > 5 and found_none > 5
    for effort in (Effort(0), Effort(5, until=0.0)):
        with pytest.raises(Unfinished):
            next(Boxes(language, target, range(len(language.axes)), effort).around(1, 1, 0))


# The fewest of given queries --------------------------------------------------------------------


Matrix = np.ndarray[tuple[int, int], np.dtype[np.bool_]]


def some_sets(rng: Random) -> tuple[list[frozenset[int]], Matrix]:
    """Random sets, now and then of the kind that halves or thirds are needed for."""
    count = rng.randint(2, 6)
    records = range(count)
    if rng.random() < 0.4:
        sets = {frozenset(rng.sample(records, count - 1)) for _ in range(count + 1)}
    else:
        sets = {frozenset(i for i in records if rng.random() < 0.5) for _ in range(8)}
    kept = sorted((each for each in sets if each), key=sorted)
    return kept, np.array([[i in each for i in records] for each in kept], np.bool_)


def adds_up(chosen: dict[int, Fraction], matrix: Matrix, target: int) -> bool:
    rows = matrix.astype(int).tolist()
    total = [sum(w * rows[i][j] for i, w in chosen.items()) for j in range(matrix.shape[1])]
    return total == [int(j == target) for j in range(matrix.shape[1])]


def test_the_shortest_plan_is_the_shortest(rng: Random) -> None:
    lengths, coefficients, effort = set(), set(), Effort(10**9)
    for number in range(60):
        sets, matrix = some_sets(rng)
        count = matrix.shape[1]
        search = ExhaustiveSearch(matrix, np.random.default_rng(number))
        for target in range(count):
            best = shortest(sets, count, target)
            tried = (search.of(m, target, effort) for m in range(1, len(sets) + 1))
            found = next((each for each in tried if each is not None), None)
            assert (found is None) == (best is None)
            if found is not None:
                assert len(found) == best and adds_up(found, matrix, target)
                lengths.add(len(found))
                coefficients |= {abs(weight) for weight in found.values()}
    assert {1, 2, 3, 4} <= lengths
    assert {Fraction(1), Fraction(1, 2)} <= coefficients


def test_a_long_search_gives_up() -> None:
    matrix = np.eye(9, dtype=np.bool_) | np.eye(9, k=1, dtype=np.bool_)
    search = ExhaustiveSearch(matrix, np.random.default_rng(0))
    assert search.steps(5) > search.steps(4) > search.steps(3) > search.steps(2)
    with pytest.raises(Unfinished):
        search.of(6, 0, Effort(3))


def test_added_and_subtracted_rows_make_the_shortest_plan_of_that_kind(rng: Random) -> None:
    some, random = 0, np.random.default_rng(0)
    for _ in range(15):
        sets, matrix = some_sets(rng)
        best = shortest(sets, matrix.shape[1], 0)
        found = signed_plan(matrix, 0, 5.0, random)
        if found is not None:
            assert adds_up({i: Fraction(sign) for i, sign in found.items()}, matrix, 0)
            assert best is not None and len(found) >= best
            assert signed_plan(matrix, 0, 5.0, random, most=len(found) - 1) is None
            some += 1
    assert some > 2
    assert signed_plan(matrix, 0, 0.0, random) is None


# Where the selections are too many to enumerate, on tables where they are not -------------------


def without_enumeration(language: Language, least: int) -> Targets:
    """A search that believes that there are too many selections."""
    targets = Targets(language, least, np.random.default_rng(0))
    targets.__dict__["every"] = None
    return targets


def is_right(found: ShortestPlan, language: Language, target: int, least: int) -> bool:
    """Whether the queries are large enough and add up to the record."""
    total = np.full(language.count, Fraction(0), object)
    for weight, box in found.terms:
        members = language.members(box)
        if members.bit_count() < least:
            return False
        total += weight * unpack_bits(members, language.count).astype(int)
    return total.tolist() == [int(i == target) for i in range(language.count)]


def test_nothing_wrong_is_found_or_claimed(rng: Random) -> None:
    lengths = set()
    for _ in range(8):
        language = small_language(rng)
        members = {language.members(box) for box in every_box(language)}
        for least in range(1, language.count + 1):
            sets = [frozenset(record_places(m)) for m in members if m.bit_count() >= least]
            targets = without_enumeration(language, least)
            for target in range(language.count):
                found = targets.plan(target, seconds=2.0)
                if found.terms:
                    assert is_right(found, language, target, least)
                    most = len(found.terms) - 1
                    assert not most or len(targets.plan(target, most).terms) <= most
                if not determined(sets, language.count, target):
                    assert not found.terms
                    continue
                best = shortest(sets, language.count, target, 2_000)
                assert not found.impossible
                if best is not None:
                    assert found.at_least <= best <= (len(found.terms) or best)
                    assert best > 2 or len(found.terms) == best == found.at_least
                    lengths.add(len(found.terms))
    assert {1, 2} <= lengths


# Chains -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [2, 3, 7])
def test_a_chain_takes_one_query_for_each_record_and_each_is_large_enough(
    least: int, language: Language
) -> None:
    chains = list(chain_sums(language, least))
    assert chains
    for sums in chains:
        queries = set()
        for record, terms in sums:
            total = np.zeros(language.count, np.int64)
            for sign, box in terms:
                members = language.members(box)
                assert members.bit_count() >= least
                queries.add(members)
                total += sign * unpack_bits(members, language.count)
            assert np.flatnonzero(total).tolist() == [record] and total[record] == 1
        assert len(queries) == len(sums)


@pytest.mark.slow
def test_ten_thousand_records_take_as_many_queries() -> None:
    with Table.open("population") as table:
        language = read_language(table.policy, table.source)
    found = everybody(Targets(language, 5, np.random.default_rng(0)), 600.0)
    assert len(found.combinations) >= 0.99 * language.alone.bit_count()
    assert len(found.boxes) <= 1.02 * len(found.combinations)
