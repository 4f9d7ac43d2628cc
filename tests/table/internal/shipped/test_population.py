"""Invented people who could exist: what is true of every household, and of many on average."""

import hashlib
from collections import defaultdict
from functools import lru_cache, partial
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from chance import assert_follows, assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import MT19937, PCG64, Generator, Philox

from casemate.table.shipped.population import MOST_ROWS, columns, policy
from casemate.table.shipped.population.census import LABELS, first_fit
from casemate.table.shipped.population.health import DECADES, DIAGNOSES, DIAGNOSIS, DISEASES
from casemate.table.shipped.population.households import SEATS
from casemate.table.shipped.population.odds import (
    AREA,
    CODE_OF,
    LEVELS,
    REGIONS,
    Odds,
    QuantileCurve,
    bands,
    below,
    chance,
    numbers,
)
from casemate.table.shipped.population.work import EARLIEST, EDUCATION, TRADE, TRADE_BY_SCHOOLING

Person = dict[str, Any]
ROWS = 60_000
FIRST = ROWS // SEATS  # as many households as surely came whole, so that they are independent
DIGEST = "5eb0852958fa3ad83aa2d7efb7f1da99b9d653ffed936cae496cb4d9ce6e562a"
COUPLES = ("spouse", "partner")
seeds = st.integers(0, 2**64 - 1)


@lru_cache(maxsize=3)  # the large tables are 60,000 dictionaries
def people(rows: int, seed: int) -> list[Person]:
    """The table row by row, slow and plain; a missing value is None."""
    table = columns(rows, Generator(Philox(seed)))
    lists = {
        name: [None if gone else value for value, gone in zip(values, missing, strict=True)]
        for name, series in table.items()
        for values, missing in [(series.values.tolist(), series.missing.tolist())]
    }
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def households(rows: list[Person]) -> list[list[Person]]:
    homes: dict[int, list[Person]] = defaultdict(list)
    for person in rows:
        homes[person["household_id"]].append(person)
    return list(homes.values())


def first_homes(seed: int) -> list[list[Person]]:
    """The first households of the stream, which are independent draws of one law."""
    return households(people(ROWS, seed))[:FIRST]


def couples(seed: int) -> list[tuple[Person, Person]]:
    homes = [home for home in first_homes(seed) if len(home) > 1]
    return [(home[0], home[1]) for home in homes if home[1]["relation"] in COUPLES]


# Exactly true, for every size and seed --------------------------------------------------------


def check_household(home: list[Person]) -> None:
    """What holds in every household, whoever lives in it."""
    head, *others = home
    relations = [person["relation"] for person in others]
    assert head["relation"] == "head" and "head" not in relations
    assert {person["household_size"] for person in home} == {len(home)} and len(home) <= SEATS
    for name in ("region", "area", "household_type"):
        assert len({person[name] for person in home}) == 1
    assert REGIONS[(head["area"] - 10_000) // 1_000].name == head["region"]
    assert sum(relation in COUPLES for relation in relations) <= 1
    married = [person["relation"] for person in home if person["marital"] == "married"]
    assert married == (["head", "spouse"] if "spouse" in relations else [])
    parents = [person["age"] for person in home if person["relation"] in ("head", *COUPLES)]
    for person in others:
        if person["relation"] == "child":
            assert min(parents) - person["age"] >= 18 and person["marital"] == "never married"
        if person["relation"] == "parent":
            assert person["age"] - head["age"] >= 20
    assert ("child" in relations) == (
        head["household_type"] in ("couple with children", "single parent", "three generations")
    )


def check_person(person: Person) -> None:
    """What holds of everybody, wherever they live."""
    age, working = person["age"], person["employment"] in ("employed", "self-employed")
    assert 0 <= age <= 97 and age >= EARLIEST[EDUCATION.index(person["education"])]
    assert age >= 19 or person["relation"] == "child"
    assert age >= 19 or person["marital"] == "never married"
    assert (person["employment"] == "child") == (age < 15)
    assert working == (person["occupation"] != "none") == (person["hours"] is not None)
    assert not working or 5 <= person["hours"] <= (20 if age < 18 else 80)
    assert person["employment"] != "retired" or age >= 30
    assert age >= 15 or person["income"] == 0
    assert person["income"] >= 0 or person["employment"] == "self-employed"


@given(st.integers(1, 300), seeds)
def test_there_are_exactly_the_rows_asked_for_in_whole_households(rows: int, seed: int) -> None:
    table = people(rows, seed)
    assert [person["person_id"] for person in table] == list(range(1, rows + 1))
    ids = [person["household_id"] for person in table]
    assert ids == sorted(ids) and set(ids) == set(range(1, ids[-1] + 1))
    for home in households(table):
        check_household(home)


def test_every_household_could_exist() -> None:
    for home in households(people(ROWS, 0)):
        check_household(home)


def test_everybody_could_exist() -> None:
    for person in people(ROWS, 0):
        check_person(person)


@pytest.mark.parametrize(
    "wrong",
    [
        {"household_size": 3},
        {"area": 29_999},
        {"marital": "married"},
        {"relation": "child"},
        {"relation": "spouse"},
    ],
)
def test_the_checks_above_would_notice_a_wrong_household(wrong: Person) -> None:
    home = next(home for home in households(people(ROWS, 0)) if home[-1]["relation"] == "housemate")
    with pytest.raises(AssertionError):
        check_household([*home[:-1], home[-1] | wrong])


@given(st.integers(1, 300), st.integers(0, 300), seeds)
def test_a_longer_table_of_the_seed_begins_with_the_shorter(
    rows: int, more: int, seed: int
) -> None:
    """Except for its last rows, where only what fitted could enter."""
    shorter, longer = people(rows, seed), people(rows + more, seed)
    same = max(0, rows - (SEATS - 1))
    assert shorter[:same] == longer[:same]


def test_one_seed_is_one_table_and_another_seed_is_another() -> None:
    fresh = people.__wrapped__
    assert fresh(2_000, 5) == fresh(2_000, 5) != fresh(2_000, 6)


def test_the_default_table_is_the_same_on_every_machine() -> None:
    """Integers only, from a stream that NumPy keeps fixed: this digest holds everywhere."""
    text = repr([list(person.values()) for person in people(10_000, 0)])
    assert hashlib.sha256(text.encode()).hexdigest() == DIGEST


@pytest.mark.parametrize("rows", [0, -1, MOST_ROWS + 1])
def test_a_size_that_cannot_be_is_refused(rows: int) -> None:
    with pytest.raises(ValueError, match="need 1 <= rows"):
        columns(rows, Generator(Philox(0)))


def test_a_generator_of_32_bit_words_is_refused_and_others_serve() -> None:
    assert len(columns(9, Generator(PCG64(0)))["age"].values) == 9
    with pytest.raises(ValueError, match="64-bit words"):
        columns(9, Generator(MT19937(0)))


@given(st.lists(st.integers(1, SEATS), min_size=1, max_size=40), st.integers(0, 200))
def test_households_enter_in_order_while_they_fit(sizes: list[int], room: int) -> None:
    entered = first_fit(np.array(sizes), room)
    for size, enters in zip(sizes, entered, strict=True):
        assert enters == (size <= room)
        room -= size * int(enters)


def test_a_bin_of_the_area_is_a_region() -> None:
    area = policy(1, 0).column("area")
    assert area is not None and area.bins == len(REGIONS) == len(set(LABELS["region"]))
    assert (area.low, area.high) == (10_000, 10_000 + 1_000 * len(REGIONS))
    assert len(set(CODE_OF.tolist())) == len(CODE_OF) > 300


def test_every_area_can_be_drawn() -> None:
    assert (np.diff(AREA.ends, prepend=0) > 0).all()


def test_illness_rises_with_age_and_the_rare_ones_are_rare() -> None:
    for sex in (0, 1):
        assert sorted(totals := [sum(row[sex]) for row in DISEASES]) == totals
        for rare in ("HIV", "multiple sclerosis"):
            assert all(row[sex][DIAGNOSES.index(rare) - 1] <= 60 for row in DISEASES)


# The tables of chances --------------------------------------------------------------------------

EVERY = np.arange(LEVELS, dtype=np.uint16)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=300).filter(any))
def test_odds_give_every_outcome_its_share_of_the_16_bit_numbers(weights: list[int]) -> None:
    drawn = np.bincount(Odds(weights).draw(EVERY), minlength=len(weights))
    for count, weight in zip(drawn.tolist(), weights, strict=True):
        assert abs(count - LEVELS * weight / sum(weights)) < 1
        assert weight or not count


def test_odds_follow_their_circumstance() -> None:
    odds = Odds([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert odds.draw(EVERY[:4], a, b).tolist() == [0, 1, 1, 0]


@given(st.integers(1, 200))
def test_below_is_as_even_as_65536_numbers_allow(many: int) -> None:
    counts = np.bincount(below(EVERY, np.array(many)))
    assert len(counts) == many and counts.max() - counts.min() <= 1


@given(st.integers(0, 1000))
def test_chance_is_true_for_its_share_of_the_numbers(thousandths: int) -> None:
    assert chance(EVERY, thousandths).sum() == thousandths * LEVELS // 1000


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=9))
def test_a_curve_passes_through_its_knots(values: list[int]) -> None:
    at = [1000 * k // (len(values) - 1) for k in range(len(values))]
    drawn = QuantileCurve(list(zip(at, values, strict=True))).draw(EVERY)
    for where, value in zip(at[:-1], values[:-1], strict=True):
        assert drawn[where * LEVELS // 1000] == value
    assert drawn.min() >= min(values) and drawn.max() <= max(values)


def test_bands_count_the_edges_passed() -> None:
    assert bands(15, 30)[[0, 14, 15, 29, 30, 99]].tolist() == [0, 0, 1, 1, 2, 2]


# True with a stated probability -----------------------------------------------------------------


def cdf_of(ends: Any, code: int) -> float:
    return 0.0 if code < 0 else float(ends[code]) / LEVELS


def test_the_numbers_are_uniform(seed: int) -> None:
    drawn = numbers(Generator(Philox(seed)), 20_000).tolist()
    assert_follows(drawn, lambda number: (number + 1) / LEVELS)
    with pytest.raises(AssertionError):
        assert_follows([number // 2 for number in drawn], lambda number: (number + 1) / LEVELS)


def diagnoses(seed: int, decade: int, sex: int) -> list[int]:
    """Independent given ages and sexes, which is all that a diagnosis depends on."""
    return [
        DIAGNOSES.index(person["diagnosis"])
        for person in people(ROWS, seed)
        if DECADES[person["age"]] == decade and person["sex"] == ("female", "male")[sex]
    ]


@pytest.mark.parametrize("decade", range(len(DISEASES)))
@pytest.mark.parametrize("sex", [0, 1])
def test_diagnoses_follow_age_and_sex(decade: int, sex: int, seed: int) -> None:
    assert_follows(diagnoses(seed, decade, sex), partial(cdf_of, DIAGNOSIS.ends[decade, sex]))


@pytest.mark.parametrize(("decade", "sex"), [(0, 0), (3, 0), (5, 1)])
def test_the_test_above_would_notice_another_age(decade: int, sex: int, seed: int) -> None:
    another = (decade + 2) % len(DISEASES)
    with pytest.raises(AssertionError):
        assert_follows(diagnoses(seed, decade, sex), partial(cdf_of, DIAGNOSIS.ends[another, sex]))


def occupations(seed: int, group: int, sex: str) -> list[int]:
    return [
        LABELS["occupation"].index(person["occupation"])
        for person in people(ROWS, seed)
        if person["occupation"] != "none"
        and person["sex"] == sex
        and TRADE_BY_SCHOOLING[EDUCATION.index(person["education"])] == group
    ]


@pytest.mark.parametrize("group", range(5))
def test_occupations_follow_schooling_and_sex(group: int, seed: int) -> None:
    for code, sex in enumerate(LABELS["sex"]):
        assert_follows(occupations(seed, group, sex), partial(cdf_of, TRADE.ends[group, code]))


def test_the_test_above_would_notice_the_other_sex(seed: int) -> None:
    with pytest.raises(AssertionError):
        assert_follows(occupations(seed, 1, "male"), partial(cdf_of, TRADE.ends[1, 0]))


def test_areas_have_their_sizes(seed: int) -> None:
    index = {code: place for place, code in enumerate(CODE_OF.tolist())}
    places = [index[home[0]["area"]] for home in first_homes(seed)]
    assert_follows(places, partial(cdf_of, AREA.ends))
    with pytest.raises(AssertionError):
        assert_follows(places, lambda place: (place + 1) / len(CODE_OF))


def test_about_half_are_women(seed: int, rng: Random) -> None:
    """One member by lot from each household, so that the draws are independent."""
    homes = first_homes(seed)
    women = sum(rng.choice(home)["sex"] == "female" for home in homes)
    assert_rate_at_most(women, FIRST, 0.56)
    assert_rate_at_most(FIRST - women, FIRST, 0.5)
    alone = [home[0] for home in homes if home[0]["household_type"] == "single parent"]
    with pytest.raises(AssertionError):
        assert_rate_at_most(sum(p["sex"] == "female" for p in alone), len(alone), 0.56)


def test_partners_are_of_similar_age_and_strangers_are_not(seed: int) -> None:
    pairs = couples(seed)
    apart = sum(abs(a["age"] - b["age"]) > 10 for a, b in pairs)
    assert_rate_at_most(apart, len(pairs), 0.05)
    strangers = pairwise(pairs)
    apart = sum(abs(a["age"] - b["age"]) > 10 for (a, _), (_, b) in strangers)
    with pytest.raises(AssertionError):
        assert_rate_at_most(apart, len(pairs) - 1, 0.05)


def test_partners_are_schooled_alike_and_strangers_are_not(seed: int) -> None:
    pairs = couples(seed)
    unlike = sum(a["education"] != b["education"] for a, b in pairs)
    assert_rate_at_most(unlike, len(pairs), 0.56)
    strangers = pairwise(pairs)
    unlike = sum(a["education"] != b["education"] for (a, _), (_, b) in strangers)
    with pytest.raises(AssertionError):
        assert_rate_at_most(unlike, len(pairs) - 1, 0.56)


def heads_earning(seed: int, levels: tuple[str, ...]) -> list[int]:
    homes = first_homes(seed)
    chosen = (home[0] for home in homes if 30 <= home[0]["age"] < 60)
    return [head["income"] for head in chosen if head["education"] in levels]


def test_a_graduate_usually_earns_more(seed: int) -> None:
    """Heads of different households are independent; the n-th graduate against the n-th other."""
    graduates = heads_earning(seed, ("bachelor", "master", "doctorate"))
    others = heads_earning(seed, ("lower secondary", "upper secondary", "some college"))
    pairs = list(zip(graduates, others, strict=False))
    assert_rate_at_most(sum(a <= b for a, b in pairs), len(pairs), 0.35)
    alike = list(zip(others[::2], others[1::2], strict=False))
    with pytest.raises(AssertionError):
        assert_rate_at_most(sum(a <= b for a, b in alike), len(alike), 0.35)


def test_half_of_the_incomes_are_whole_thousands(seed: int) -> None:
    homes = first_homes(seed)
    incomes = [home[0]["income"] for home in homes if home[0]["income"] > 0]
    assert_rate_at_most(sum(x % 1_000 != 0 for x in incomes), len(incomes), 0.52)
    with pytest.raises(AssertionError):
        assert_rate_at_most(sum((x + 130) % 1_000 != 0 for x in incomes), len(incomes), 0.52)


def test_incomes_have_a_heavy_tail(seed: int) -> None:
    """One head in a hundred has over 200,000; with all incomes shrunk to a fourth, far fewer."""
    incomes = [home[0]["income"] for home in first_homes(seed)]
    assert_rate_at_most(sum(x <= 200_000 for x in incomes), FIRST, 0.99)
    with pytest.raises(AssertionError):
        assert_rate_at_most(sum(x / 4 <= 200_000 for x in incomes), FIRST, 0.99)
