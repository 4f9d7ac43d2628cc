"""Who lives with whom: households of seven kinds, their members' ages, sexes and marriages.

A household is drawn as a row of seats: the head has the first, a spouse or partner the second,
children the next five, and the head's parent the last; housemates sit from the second on. The
members are those whose seat is taken, household by household.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from casemate.table.shipped.population.odds import (
    AREA,
    LAND_OF,
    Codes,
    Odds,
    QuantileCurve,
    bands,
    below,
    chance,
    numbers,
)

SEATS = 8
CHILDREN = slice(2, 7)
YOUNGEST_PARENT = 18  # years between a child and the younger of its parents, at least
OLDEST_PARENT = 45  # the same, at most, for the youngest child
OLDEST_CHILD = 26  # at home with its parents, at most
OLDEST_WITH_CHILDREN = 62
OLDEST = 97

KINDS = (
    "lone adult",
    "lone elderly",
    "couple",
    "couple with children",
    "single parent",
    "three generations",
    "shared",
)
LONE, ELDERLY, COUPLE, FAMILY, SINGLE_PARENT, THREE_GENERATIONS, SHARED = range(7)

RELATIONS = ("nobody", "head", "spouse", "partner", "child", "parent", "housemate")
NOBODY, HEAD, SPOUSE, PARTNER, CHILD, PARENT, HOUSEMATE = range(7)

SEXES = ("female", "male")
FEMALE, MALE = 0, 1

MARITAL = ("never married", "separated", "divorced", "widowed", "married")
NEVER_MARRIED, MARRIED = 0, 4

KIND = Odds(  # by land: city, town, country
    [
        [200, 110, 240, 225, 92, 33, 100],
        [140, 120, 275, 290, 88, 45, 42],
        [112, 132, 305, 300, 68, 66, 17],
    ]
)
HEAD_IS_MALE = np.array([540, 310, 500, 500, 190, 480, 510])  # in thousandths, by kind
HEAD_AGE = QuantileCurve(  # by kind
    [(0, 19), (120, 25), (400, 36), (700, 51), (1000, 65)],
    [(0, 65), (350, 72), (700, 81), (950, 90), (1000, 98)],
    [(0, 20), (150, 29), (350, 47), (600, 61), (900, 77), (1000, 94)],
    [(0, 20), (100, 28), (350, 36), (650, 44), (900, 53), (1000, 63)],
    [(0, 19), (150, 27), (500, 39), (850, 49), (1000, 63)],
    [(0, 24), (300, 38), (700, 47), (1000, 63)],
    [(0, 19), (500, 25), (850, 36), (1000, 61)],
)
OLDER_MAN = QuantileCurve(
    [(0, -9), (60, -3), (250, 0), (500, 2), (750, 4), (940, 9), (990, 15), (1000, 21)]
)
SAME_SEX = 17  # of a thousand couples
MARRIED_SHARE = np.array([250, 550, 760, 880, 950])[bands(25, 32, 42, 60)]  # by the head's age
CHILDREN_WANTED = Odds(  # beyond the first, by kind from couple with children on
    [[370, 430, 145, 40, 15], [560, 310, 95, 25, 10], [380, 390, 160, 50, 20]]
)
YEARS_BETWEEN = Odds([20, 130, 320, 240, 140, 90, 60])  # a child and the next; 0 for twins
HOUSEMATES = Odds([0, 520, 290, 140, 50])  # besides the head
BOY, GRANDFATHER = 512, 240  # in thousandths
UNMARRIED = Odds(  # never married, separated, divorced, widowed; by age, then sex
    [
        [[985, 9, 5, 1], [992, 5, 3, 0]],
        [[840, 55, 100, 5], [890, 40, 68, 2]],
        [[450, 120, 400, 30], [540, 105, 345, 10]],
        [[230, 80, 530, 160], [330, 85, 530, 55]],
        [[90, 25, 335, 550], [170, 40, 500, 290]],
        [[50, 6, 104, 840], [80, 14, 236, 670]],
    ]
)
UNMARRIED_BAND = bands(25, 35, 50, 65, 80)


@dataclass(frozen=True, eq=False)
class Households:
    """Many households: `kind`, `area` and `size` of each; the rest of each member, in order."""

    kind: Codes
    area: Codes
    size: Codes
    home: Codes  # the number of the member's household
    relation: Codes
    age: Codes
    sex: Codes
    marital: Codes


@dataclass(frozen=True, eq=False)
class _Seats:
    """The same households while they fill: one row each, one column per seat."""

    kind: Codes
    relation: Codes
    age: Codes
    sex: Codes

    @classmethod
    def empty(cls, kind: Codes) -> "_Seats":
        """Households in which nobody sits yet."""
        shape = (len(kind), SEATS)
        return cls(
            kind, np.zeros(shape, np.uint8), np.zeros(shape, np.int16), np.zeros(shape, np.uint8)
        )

    def take(self, seats: slice | int, who: Codes, relation: int, age: Codes, sex: Codes) -> None:
        """Seat people where `who` is true."""
        self.relation[:, seats] = np.where(who, relation, self.relation[:, seats])
        self.age[:, seats] = np.where(who, age, self.age[:, seats])
        self.sex[:, seats] = np.where(who, sex, self.sex[:, seats])


def draw_households(random: Generator, count: int) -> Households:
    """Draw `count` households, each independent of the others."""
    area = AREA.draw(numbers(random, count))
    kind = KIND.draw(numbers(random, count), LAND_OF[area])
    seats = _Seats.empty(kind)
    _seat_head(random, seats)
    _seat_partner(random, seats)
    _seat_children(random, seats)
    _seat_parent(random, seats)
    _seat_housemates(random, seats)
    taken = seats.relation != NOBODY
    home = np.repeat(np.arange(count), taken.sum(axis=1))
    relation, age, sex = seats.relation[taken], seats.age[taken], seats.sex[taken]
    marital = _marital(random, relation, age, sex, seats.relation[home, 1] == SPOUSE)
    return Households(kind, area, taken.sum(axis=1), home, relation, age, sex, marital)


def _seat_head(random: Generator, seats: _Seats) -> None:
    count = len(seats.kind)
    age = HEAD_AGE.draw(numbers(random, count), seats.kind)
    male = chance(numbers(random, count), HEAD_IS_MALE[seats.kind])
    seats.take(0, np.ones(count, bool), HEAD, age, male)


def _seat_partner(random: Generator, seats: _Seats) -> None:
    count, head, kind = len(seats.kind), seats.age[:, 0], seats.kind
    sex = seats.sex[:, 0] ^ ~chance(numbers(random, count), SAME_SEX)
    older = OLDER_MAN.draw(numbers(random, count))
    age = head + np.where(sex == MALE, older, -older)
    parents = kind != COUPLE
    age = np.clip(age, 19, np.where(parents, OLDEST_WITH_CHILDREN, OLDEST))
    couple = np.isin(kind, (COUPLE, FAMILY, THREE_GENERATIONS))
    married = chance(numbers(random, count), MARRIED_SHARE[head])
    seats.take(1, couple & married, SPOUSE, age, sex)
    seats.take(1, couple & ~married, PARTNER, age, sex)


def _seat_children(random: Generator, seats: _Seats) -> None:
    """Seat the youngest first: each is at least as old as the one before, or has left home."""
    count, (head, partner) = len(seats.kind), seats.age[:, :2].T
    parent = np.where(seats.relation[:, 1] == NOBODY, head, np.minimum(head, partner))
    limit = np.minimum(OLDEST_CHILD, parent - YOUNGEST_PARENT)
    start = np.maximum(0, parent - OLDEST_PARENT)
    years = YEARS_BETWEEN.draw(numbers(random, count, 5)).astype(np.int16)
    years[:, 0] = start + below(numbers(random, count), limit - start + 1)
    age = np.cumsum(years, axis=1, dtype=np.int16)
    family = np.isin(seats.kind, (FAMILY, SINGLE_PARENT, THREE_GENERATIONS))
    more = CHILDREN_WANTED.draw(numbers(random, count), np.where(family, seats.kind - FAMILY, 0))
    here = (np.arange(5) <= more[:, None]) & (age <= limit[:, None]) & family[:, None]
    seats.take(CHILDREN, here, CHILD, age, chance(numbers(random, count, 5), BOY))


def _seat_parent(random: Generator, seats: _Seats) -> None:
    count = len(seats.kind)
    age = np.minimum(OLDEST, seats.age[:, 0] + 20 + below(numbers(random, count), np.array(19)))
    male = chance(numbers(random, count), GRANDFATHER)
    seats.take(SEATS - 1, seats.kind == THREE_GENERATIONS, PARENT, age, male)


def _seat_housemates(random: Generator, seats: _Seats) -> None:
    count, others = len(seats.kind), slice(1, 5)
    age = seats.age[:, :1] + below(numbers(random, count, 4), np.array(13)) - 6
    many = HOUSEMATES.draw(numbers(random, count))
    here = (np.arange(4) < many[:, None]) & (seats.kind == SHARED)[:, None]
    sex = chance(numbers(random, count, 4), 500)
    seats.take(others, here, HOUSEMATE, np.maximum(age, 19), sex)


def _marital(
    random: Generator, relation: Codes, age: Codes, sex: Codes, spouse_here: Codes
) -> Codes:
    """Married people live with their spouse, and children at home have not married yet."""
    marital = UNMARRIED.draw(numbers(random, len(age)), UNMARRIED_BAND[age], sex)
    marital[relation == CHILD] = NEVER_MARRIED
    marital[(relation == SPOUSE) | ((relation == HEAD) & spouse_here)] = MARRIED
    return marital
