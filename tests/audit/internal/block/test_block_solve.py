"""The block of seven people of the literature, and blocks small enough to try everybody."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, product
from random import Random
from statistics import median

import pytest

from casemate.audit.block.model import (
    Block,
    PeopleCell,
    Person,
    Statistic,
    certain,
    shared,
    solve_block,
)
from casemate.audit.time_limit import SearchLimit

ATTRIBUTES = {"sex": ("F", "M"), "race": ("B", "W"), "married": ("M", "S")}
MARRIED_FROM_15 = ((PeopleCell({"married": ("M",)}), PeopleCell(at_least=15)),)
PUBLISHED = {  # cell, how many, median age, mean age; means are printed to one decimal
    "1A": (PeopleCell(), 7, 30, "38.0"),
    "2A": (PeopleCell({"sex": ("F",)}), 4, 30, "33.5"),
    "2B": (PeopleCell({"sex": ("M",)}), 3, 30, "44.0"),
    "2C": (PeopleCell({"race": ("B",)}), 4, 51, "48.5"),
    "2D": (PeopleCell({"race": ("W",)}), 3, 24, "24.0"),
    "3B": (PeopleCell({"married": ("M",)}, at_least=18), 4, 51, "54.0"),
    "4A": (PeopleCell({"sex": ("F",), "race": ("B",)}), 3, 36, "36.7"),
}
WITHHELD = [
    PeopleCell({"married": ("S",)}, at_least=18),
    PeopleCell({"race": ("B",), "sex": ("M",)}),
    PeopleCell({"race": ("W",), "sex": ("F",)}),
    PeopleCell({"race": ("W",), "sex": ("M",)}),
    PeopleCell(at_most=4),
    PeopleCell(at_most=17),
    PeopleCell(at_least=64),
]


def seven(*dropped: str, withheld: bool = False) -> Block:
    statistics = [
        Statistic(cell, count, middle, Fraction(mean), Fraction(1, 20))
        for name, (cell, count, middle, mean) in PUBLISHED.items()
        if name not in dropped
    ]
    if withheld:
        statistics += [Statistic(cell, (0, 2)) for cell in WITHHELD]
    return Block(7, 0, 125, ATTRIBUTES, tuple(statistics), MARRIED_FROM_15)


def people(text: str) -> tuple[Person, ...]:
    return tuple((int(each[:-3]), *each[-3:]) for each in text.split())


TRUTH = people("8FBS 18MWS 24FWS 30MWM 36FBM 66FBM 84MBM")


@pytest.mark.parametrize("dropped", [(), ("2A",), ("2B",), ("2C",), ("2D",)])
def test_the_published_block_has_one_solution_and_no_single_cell_protects_it(
    dropped: tuple[str, ...],
) -> None:
    found = solve_block(seven(*dropped))
    assert found.complete
    assert found.tables == (TRUTH,)


def test_without_both_tables_by_sex_there_are_eight() -> None:
    found = solve_block(seven("2A", "2B"))
    assert found.complete and len(found.tables) == 8
    assert found.common == people("8FBS 36FBM 66FBM 84MBM")
    assert certain(seven("2A", "2B")).people == found.common


def test_without_the_table_of_black_women_there_are_two() -> None:
    found = solve_block(seven("4A"))
    second = people("2FBS 12MWS 24FWM 30MBM 36FWS 72FBM 90MBM")
    assert found.complete and set(found.tables) == {TRUTH, second}
    assert found.common == ()


def test_without_the_table_of_married_adults_there_are_sixty_four() -> None:
    found = solve_block(seven("3B"))
    assert found.complete and len(found.tables) == 64
    assert certain(seven("3B")).people == found.common


def test_that_cells_were_withheld_for_being_small_is_knowledge_too() -> None:
    assert len(solve_block(seven("2A", "2B", withheld=True)).tables) == 6


def test_means_read_as_rounded_to_whole_years_leave_more_room() -> None:
    rounded = [
        Statistic(c, n, m, Fraction(mean), Fraction(1, 2)) for c, n, m, mean in PUBLISHED.values()
    ]
    block = Block(7, 0, 125, ATTRIBUTES, tuple(rounded), MARRIED_FROM_15)
    assert len(solve_block(block).tables) > 1


def test_an_enumeration_that_is_cut_short_says_so() -> None:
    found = solve_block(seven("3B"), most=10)
    assert len(found.tables) == 10 and not found.complete
    assert solve_block(seven("3B"), most=64).complete
    limit = SearchLimit(seconds=math.inf, work=1e-6, workers=1)
    assert not solve_block(seven("2A", "2B"), limit).complete


def test_who_is_certain_is_decided_among_those_that_some_solutions_share() -> None:
    some = solve_block(seven("2A", "2B"), most=2).common
    assert set(some) >= set(people("8FBS 36FBM 66FBM 84MBM"))
    assert certain(seven("2A", "2B"), among=some).people == people("8FBS 36FBM 66FBM 84MBM")
    assert certain(seven("2A", "2B"), among=()).people == ()


def test_who_is_certain_is_undecided_at_the_limit() -> None:
    found = certain(seven(), SearchLimit(seconds=math.inf, work=1e-6, workers=1))
    assert found.people == ()


# Against everybody who could live there -----------------------------------------------------------

SMALL = {"sex": ("F", "M"), "race": ("A", "B", "C")}


def inside(cell: PeopleCell, person: Person) -> bool:
    values = dict(zip(SMALL, person[1:], strict=True))
    low = -math.inf if cell.at_least is None else cell.at_least
    high = math.inf if cell.at_most is None else cell.at_most
    fits = all(values[name] in wanted for name, wanted in cell.where.items())
    return fits and low <= int(person[0]) <= high


def gives(statistic: Statistic, table: tuple[Person, ...]) -> bool:
    ages = [int(person[0]) for person in table if inside(statistic.cell, person)]
    least, most = statistic.count if isinstance(statistic.count, tuple) else (statistic.count,) * 2
    if not least <= len(ages) <= most:
        return False
    if statistic.median is not None and 2 * median(ages) != 2 * statistic.median:
        return False
    if statistic.mean is None:
        return True
    return abs(Fraction(sum(ages), len(ages)) - statistic.mean) <= statistic.mean_within


def random_cell(rng: Random) -> PeopleCell:
    where: dict[str, tuple[str, ...]] = {}
    if rng.randrange(2):
        where["sex"] = (rng.choice(SMALL["sex"]),)
    if rng.randrange(2):
        where["race"] = tuple(rng.sample(SMALL["race"], rng.randint(1, 2)))
    return PeopleCell(where, rng.choice([None, None, 1]), rng.choice([None, None, 2]))


def publish(rng: Random, cell: PeopleCell, table: tuple[Person, ...]) -> Statistic:
    ages = [int(person[0]) for person in table if inside(cell, person)]
    if not ages or rng.random() < 0.2:
        return Statistic(cell, (0, len(ages)))
    mean = Fraction(round(Fraction(sum(ages), len(ages)) * 2), 2)
    middle = Fraction(int(2 * median(ages)), 2)
    return Statistic(cell, len(ages), middle, mean, Fraction(1, 4))


def test_small_blocks_have_exactly_the_solutions_of_brute_force(rng: Random) -> None:
    everybody: list[Person] = [
        (age, *values) for age in range(4) for values in product(*SMALL.values())
    ]
    adult = (PeopleCell({"race": ("C",)}), PeopleCell(at_least=2))
    tables = [
        table
        for table in combinations_with_replacement(sorted(everybody), 3)
        if all(inside(adult[1], each) for each in table if inside(adult[0], each))
    ]
    for _ in range(20):
        truth = rng.choice(tables)
        cells = [PeopleCell(), *(random_cell(rng) for _ in range(rng.randint(1, 4)))]
        statistics = tuple(publish(rng, cell, truth) for cell in cells)
        expected = [table for table in tables if all(gives(each, table) for each in statistics)]
        block = Block(3, 0, 3, SMALL, statistics, (adult,))
        found = solve_block(block)
        assert found.complete
        assert [tuple(sorted(table)) for table in found.tables] == sorted(expected)
        assert Counter(certain(block).people) == Counter(shared(expected))


def test_a_contradictory_block_has_no_solution() -> None:
    statistics = (Statistic(PeopleCell(), 2, 1, 1), Statistic(PeopleCell(at_least=2), 2))
    assert solve_block(Block(2, 0, 3, SMALL, statistics)).tables == ()
    assert solve_block(Block(2, 0, 3, SMALL, (Statistic(PeopleCell(), 3),))).tables == ()
    assert (
        solve_block(Block(2, 0, 3, SMALL, (Statistic(PeopleCell(), 2, Fraction(1, 3)),))).tables
        == ()
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Statistic(PeopleCell(), (0, 2), median=3), "exact and positive count"),
        (lambda: Statistic(PeopleCell(), 0, mean=3), "exact and positive count"),
        (lambda: Block(0, 0, 9, SMALL, ()), "at least one person"),
        (lambda: Block(1, 9, 0, SMALL, ()), "low <= high"),
        (
            lambda: Block(1, 0, 9, SMALL, (Statistic(PeopleCell({"sex": ("X",)}), 1),)),
            "not declared",
        ),
    ],
)
def test_a_block_that_makes_no_sense_is_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]  # a lambda
