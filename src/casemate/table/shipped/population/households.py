"""Who lives where and with whom: households of seven kinds in twenty invented regions.

A household is drawn as a row of seats: the head has the first, a spouse or partner the second,
children the next five, and the head's parent the last; housemates sit from the second on. The
members are those whose seat is taken, household by household.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from casemate.table.shipped.population.distributions import (
    LABELS,
    PARAMETERS,
    Codes,
    Odds,
    QuantileCurve,
    bands,
    below,
    chance,
    numbers,
)

# Regions of unequal size, each cut into areas with a code ----------------------------------------
#
# Region number r holds the codes from 10000 + 1000 r to 10999 + 1000 r, so that equal bins of width
# 1,000 over the codes are the regions.


FIRST_CODE = 10_000
CODES_PER_REGION = 1_000


class HomeRegion(NamedTuple):
    """A region: its share of the households, its land, its level of pay, its number of areas."""

    name: str
    weight: int
    land: str
    pay: int  # in thousandths
    areas: int


LANDS = PARAMETERS["region"]["lands"]
REGIONS = tuple(HomeRegion(*row) for row in PARAMETERS["region"]["rows"])


def _weights(region: HomeRegion) -> list[int]:
    """The areas of a region by falling size, with its own weight in all."""
    parts = [840_000 // (place + 6) for place in range(region.areas)]
    return [region.weight * part * 1_000 // sum(parts) for part in parts]


_PLACES = [(number, place) for number, r in enumerate(REGIONS) for place in range(r.areas)]

AREA = Odds([weight for region in REGIONS for weight in _weights(region)])
REGION_OF = np.array([number for number, _ in _PLACES], dtype=np.uint8)
CODE_OF = np.array(
    [FIRST_CODE + CODES_PER_REGION * number + 1 + 23 * place for number, place in _PLACES]
)
LAND_OF = np.array([LANDS.index(REGIONS[number].land) for number, _ in _PLACES], dtype=np.uint8)
PAY_LEVEL_OF = np.array(  # neighbourhoods of one region differ by up to a tenth
    [REGIONS[number].pay + 10 * (37 * place % 21 - 10) for number, place in _PLACES]
)


# Households --------------------------------------------------------------------------------------


SEATS_PER_HOUSEHOLD = 8
CHILDREN_SEATS = slice(2, 7)
YOUNGEST_PARENT = 18  # years between a child and the younger of its parents, at least
OLDEST_PARENT = 45  # the same, at most, for the youngest child
OLDEST_CHILD = 26  # at home with its parents, at most
OLDEST_WITH_CHILDREN = 62
OLDEST_MEMBER = 97

_HOUSEHOLD, _MEMBER = PARAMETERS["household"], PARAMETERS["member"]
_, _, COUPLE, FAMILY, SINGLE_PARENT, THREE_GENERATIONS, SHARED = range(7)
NOBODY, HEAD, SPOUSE, PARTNER, CHILD, PARENT, HOUSEMATE = range(7)
MALE = LABELS["sex"].index("male")
NEVER_MARRIED, MARRIED = map(LABELS["marital"].index, ("never married", "married"))

KIND = Odds(_HOUSEHOLD["type_by_land"])
HEAD_IS_MALE = np.array(_HOUSEHOLD["head_is_male_by_type"])
HEAD_AGE = QuantileCurve(*_HOUSEHOLD["head_age_by_type"])
MAN_IS_OLDER_BY = QuantileCurve(_HOUSEHOLD["man_is_older_by"])
MARRIED_SHARE = np.array(_HOUSEHOLD["married_by_head_age"])[bands(*_HOUSEHOLD["married_from"])]
MORE_CHILDREN = Odds(_HOUSEHOLD["more_children_by_type"])
YEARS_BETWEEN = Odds(_HOUSEHOLD["years_between_children"])
HOUSEMATES = Odds(_HOUSEHOLD["housemates"])
UNMARRIED = Odds(_MEMBER["unmarried_by_age_and_sex"])
UNMARRIED_BAND = bands(*_MEMBER["unmarried_from"])


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
        shape = (len(kind), SEATS_PER_HOUSEHOLD)
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
    sex = seats.sex[:, 0] ^ ~chance(numbers(random, count), _HOUSEHOLD["same_sex_couple"])
    older = MAN_IS_OLDER_BY.draw(numbers(random, count))
    age = head + np.where(sex == MALE, older, -older)
    parents = kind != COUPLE
    age = np.clip(age, 19, np.where(parents, OLDEST_WITH_CHILDREN, OLDEST_MEMBER))
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
    more = MORE_CHILDREN.draw(numbers(random, count), np.where(family, seats.kind - FAMILY, 0))
    here = (np.arange(5) <= more[:, None]) & (age <= limit[:, None]) & family[:, None]
    seats.take(
        CHILDREN_SEATS,
        here,
        CHILD,
        age,
        chance(numbers(random, count, 5), _HOUSEHOLD["child_is_male"]),
    )


def _seat_parent(random: Generator, seats: _Seats) -> None:
    count = len(seats.kind)
    age = np.minimum(
        OLDEST_MEMBER, seats.age[:, 0] + 20 + below(numbers(random, count), np.array(19))
    )
    male = chance(numbers(random, count), _HOUSEHOLD["grandparent_is_male"])
    seats.take(SEATS_PER_HOUSEHOLD - 1, seats.kind == THREE_GENERATIONS, PARENT, age, male)


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
