"""Invented people who could exist: what is true of every household, and of many on average."""

import hashlib
from collections import defaultdict
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pytest
from chance import assert_follows
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import MT19937, PCG64, Generator, Philox
from table.stored import cells_of

from casemate.table.shipped.population import MOST_ROWS, columns
from casemate.table.shipped.population.census import first_fit
from casemate.table.shipped.population.distributions import LABELS, UNIFORM_LEVELS, Odds, numbers
from casemate.table.shipped.population.households import (
    AREA,
    CODE_OF,
    REGIONS,
    SEATS_PER_HOUSEHOLD,
)
from casemate.table.shipped.population.people import DECADES, DIAGNOSIS, EARLIEST_AGE
from casemate.table.sources import Series

Person = dict[str, Any]
ROWS = 60_000
FIRST = ROWS // SEATS_PER_HOUSEHOLD
"""As many households as surely came whole, so that they are independent."""

DIGEST = "5eb0852958fa3ad83aa2d7efb7f1da99b9d653ffed936cae496cb4d9ce6e562a"
COUPLES = ("spouse", "partner")
seeds = st.integers(0, 2**64 - 1)


@lru_cache(maxsize=3)  # the large tables are 60,000 dictionaries
def people(rows: int, seed: int) -> list[Person]:
    """The table row by row, slow and plain; a missing value is None."""
    table = columns(rows, Generator(Philox(seed)))
    lists = {
        name: cells_of(Series(series.values.astype(object), series.missing))
        for name, series in table.items()
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


# Exactly true, for every size and seed --------------------------------------------------------


def check_household(home: list[Person]) -> None:
    """What holds in every household, whoever lives in it."""
    head, *others = home
    relations = [person["relation"] for person in others]
    assert head["relation"] == "head" and "head" not in relations
    assert {person["household_size"] for person in home} == {len(home)}
    assert len(home) <= SEATS_PER_HOUSEHOLD
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
    assert 0 <= age <= 97 and age >= EARLIEST_AGE[LABELS["education"].index(person["education"])]
    assert age >= 19 or person["relation"] == "child"
    assert age >= 19 or person["marital"] == "never married"
    assert (person["employment"] == "child") == (age < 15)
    assert working == (person["occupation"] != "none") == (person["hours"] is not None)
    assert not working or 5 <= person["hours"] <= (20 if age < 18 else 80)
    assert person["employment"] != "retired" or age >= 30
    assert age >= 15 or person["income"] == 0
    assert person["income"] >= 0 or person["employment"] == "self-employed"


@settings(max_examples=8)
@given(st.integers(1, 300), seeds)
def test_there_are_exactly_the_rows_asked_for_in_whole_households(rows: int, seed: int) -> None:
    table = people(rows, seed)
    assert [person["person_id"] for person in table] == list(range(1, rows + 1))
    ids = [person["household_id"] for person in table]
    assert ids == sorted(ids) and set(ids) == set(range(1, ids[-1] + 1))
    for home in households(table):
        check_household(home)


def test_every_household_and_everybody_in_it_could_exist() -> None:
    for home in households(people(ROWS, 0)):
        check_household(home)
        for person in home:
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


@settings(max_examples=8)
@given(st.integers(1, 300), st.integers(0, 300), seeds)
def test_a_longer_table_of_the_seed_begins_with_the_shorter(
    rows: int, more: int, seed: int
) -> None:
    """Except for its last rows, where only what fitted could enter."""
    shorter, longer = people(rows, seed), people(rows + more, seed)
    same = max(0, rows - (SEATS_PER_HOUSEHOLD - 1))
    assert shorter[:same] == longer[:same]


def test_the_default_table_is_the_same_on_every_machine() -> None:
    """Integers only, from a stream that NumPy keeps fixed: this digest holds everywhere."""
    text = repr([list(person.values()) for person in people(10_000, 0)])
    assert hashlib.sha256(text.encode()).hexdigest() == DIGEST


def test_a_size_that_cannot_be_and_a_generator_of_32_bit_words_are_refused() -> None:
    for rows in (0, -1, MOST_ROWS + 1):
        with pytest.raises(ValueError, match="need 1 <= rows"):
            columns(rows, Generator(Philox(0)))
    assert len(columns(9, Generator(PCG64(0)))["age"].values) == 9
    with pytest.raises(ValueError, match="64-bit words"):
        columns(9, Generator(MT19937(0)))


@given(st.lists(st.integers(1, SEATS_PER_HOUSEHOLD), min_size=1, max_size=40), st.integers(0, 200))
def test_households_enter_in_order_while_they_fit(sizes: list[int], room: int) -> None:
    entered = first_fit(np.array(sizes), room)
    for size, enters in zip(sizes, entered, strict=True):
        assert enters == (size <= room)
        room -= size * int(enters)


# The tables of chances --------------------------------------------------------------------------

EVERY = np.arange(UNIFORM_LEVELS, dtype=np.uint16)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=300).filter(any))
def test_odds_give_every_outcome_its_share_of_the_16_bit_numbers(weights: list[int]) -> None:
    drawn = np.bincount(Odds(weights).draw(EVERY), minlength=len(weights))
    for count, weight in zip(drawn.tolist(), weights, strict=True):
        assert abs(count - UNIFORM_LEVELS * weight / sum(weights)) < 1
        assert weight or not count


# True with a stated probability -----------------------------------------------------------------


def cdf_of(ends: Any, code: int) -> float:
    return 0.0 if code < 0 else float(ends[code]) / UNIFORM_LEVELS


def test_the_numbers_are_uniform(seed: int) -> None:
    drawn = numbers(Generator(Philox(seed)), 20_000).tolist()
    uniform = partial(cdf_of, range(1, UNIFORM_LEVELS + 1))
    assert_follows(drawn, uniform)
    with pytest.raises(AssertionError):
        assert_follows([number // 2 for number in drawn], uniform)


def diagnoses(seed: int, decade: int, sex: int) -> list[int]:
    """Independent given ages and sexes, which is all that a diagnosis depends on."""
    return [
        LABELS["diagnosis"].index(person["diagnosis"])
        for person in people(ROWS, seed)
        if DECADES[person["age"]] == decade and person["sex"] == ("female", "male")[sex]
    ]


@pytest.mark.parametrize("decade", range(len(DIAGNOSIS.ends)))
@pytest.mark.parametrize("sex", [0, 1])
def test_diagnoses_follow_age_and_sex(decade: int, sex: int, seed: int) -> None:
    assert_follows(diagnoses(seed, decade, sex), partial(cdf_of, DIAGNOSIS.ends[decade, sex]))


@pytest.mark.parametrize(("decade", "sex"), [(0, 0), (3, 0), (5, 1)])
def test_the_test_above_would_notice_another_age(decade: int, sex: int, seed: int) -> None:
    another = (decade + 2) % len(DIAGNOSIS.ends)
    with pytest.raises(AssertionError):
        assert_follows(diagnoses(seed, decade, sex), partial(cdf_of, DIAGNOSIS.ends[another, sex]))


def test_areas_have_their_sizes(seed: int) -> None:
    index = {code: place for place, code in enumerate(CODE_OF.tolist())}
    places = [index[home[0]["area"]] for home in first_homes(seed)]
    assert_follows(places, partial(cdf_of, AREA.ends))
    with pytest.raises(AssertionError):
        assert_follows(places, lambda place: (place + 1) / len(CODE_OF))
