"""What people learned and what they do all day.

Schooling follows birth cohort and sex, and runs in families: some of those who live with a head
have the head's rank, each in their own cohort. Work follows age, sex and schooling.

What people have in a year, in the figure they would give.

Pay follows occupation, hours, age, schooling, sex and place, times a heavy-tailed luck; those who
do not work have a pension, a benefit or nothing. Incomes are told in round figures, and are cut off
at both ends as in a public-use file.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from casemate.table.shipped.population.households import CHILD, HEAD, Households
from casemate.table.shipped.population.odds import (
    AGES,
    PAY_OF,
    Codes,
    Odds,
    QuantileCurve,
    bands,
    chance,
    interpolate,
    numbers,
)

EDUCATION = (
    "none",
    "primary",
    "lower secondary",
    "upper secondary",
    "some college",
    "bachelor",
    "master",
    "doctorate",
)
EARLIEST = (0, 12, 15, 18, 19, 21, 23, 26)  # the age at which each level can have been reached
REACHABLE = bands(*EARLIEST[1:])
COHORT = bands(30, 45, 60, 75)
SCHOOLING = Odds(  # by cohort, youngest first, then sex
    [
        [[5, 15, 70, 260, 230, 280, 120, 20], [6, 20, 100, 310, 230, 230, 87, 17]],
        [[8, 22, 75, 260, 220, 255, 135, 25], [9, 26, 95, 310, 215, 225, 96, 24]],
        [[12, 35, 100, 320, 225, 195, 98, 15], [12, 38, 110, 335, 200, 195, 90, 20]],
        [[20, 65, 150, 370, 190, 125, 72, 8], [18, 60, 140, 340, 190, 150, 82, 20]],
        [[40, 140, 210, 390, 120, 68, 29, 3], [35, 130, 190, 345, 130, 105, 50, 15]],
    ]
)
OTHERS_ALIKE, CHILD_ALIKE = 480, 330  # share, in thousandths, who have the head's rank

EMPLOYMENT = (
    "child",
    "student",
    "employed",
    "self-employed",
    "unemployed",
    "homemaker",
    "retired",
    "unable to work",
)
EMPLOYED, SELF_EMPLOYED, UNEMPLOYED = 2, 3, 4
WORKING_AGE = 15
STAGE = bands(WORKING_AGE, 18, 23, 30, 55, 62, 67, 75)
STATUS = Odds(  # by stage of life, then sex
    [
        [[1, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]],
        [[0, 905, 58, 0, 22, 10, 0, 5], [0, 900, 65, 0, 25, 4, 0, 6]],
        [[0, 480, 400, 10, 70, 30, 0, 10], [0, 440, 430, 15, 90, 10, 0, 15]],
        [[0, 90, 715, 35, 45, 90, 0, 25], [0, 80, 770, 55, 60, 10, 0, 25]],
        [[0, 15, 700, 65, 35, 135, 5, 45], [0, 8, 770, 120, 37, 15, 5, 45]],
        [[0, 2, 560, 75, 28, 130, 115, 90], [0, 2, 610, 140, 33, 20, 110, 85]],
        [[0, 0, 300, 55, 12, 90, 480, 63], [0, 0, 360, 105, 15, 15, 445, 60]],
        [[0, 0, 110, 30, 4, 50, 780, 26], [0, 0, 140, 70, 6, 6, 755, 23]],
        [[0, 0, 15, 8, 0, 30, 920, 27], [0, 0, 25, 25, 0, 2, 925, 23]],
    ]
)
JOB_LOST = np.array([150, 120, 90, 25, 10, 0, 0, 0])  # in thousandths, by education
JOB_FOUND = np.array([0, 0, 0, 0, 200, 500, 600, 600])

OCCUPATION = (
    "none",
    "manager",
    "professional",
    "technician",
    "clerk",
    "sales",
    "service",
    "care",
    "craft",
    "machine operator",
    "transport",
    "labourer",
    "farming",
)
TRADE_BY_SCHOOLING = np.array([0, 0, 0, 1, 2, 3, 4, 4])
TRADE = Odds(  # of those who work, by schooling, then sex
    [
        [
            [0, 15, 5, 10, 60, 140, 290, 190, 25, 95, 20, 120, 30],
            [0, 25, 5, 20, 20, 60, 120, 15, 265, 110, 130, 180, 50],
        ],
        [
            [0, 50, 20, 40, 200, 190, 210, 170, 15, 50, 20, 30, 5],
            [0, 65, 20, 60, 60, 100, 100, 20, 260, 105, 120, 75, 15],
        ],
        [
            [0, 90, 90, 130, 240, 150, 120, 140, 8, 16, 9, 5, 2],
            [0, 120, 90, 170, 85, 125, 90, 20, 170, 50, 50, 20, 10],
        ],
        [
            [0, 160, 440, 110, 120, 75, 40, 42, 3, 4, 3, 2, 1],
            [0, 225, 385, 140, 65, 90, 30, 8, 30, 10, 10, 4, 3],
        ],
        [
            [0, 160, 710, 50, 35, 20, 10, 12, 1, 1, 1, 0, 0],
            [0, 230, 640, 60, 20, 25, 8, 4, 6, 3, 2, 1, 1],
        ],
    ]
)

HOURS = (5, 8, 10, 15, 16, 20, 24, 25, 30, 32, 35, 36, 37, 38, 40, 42, 45, 48, 50, 55, 60, 70, 80)
HOURS_AT = Odds(  # by self-employed, then sex
    [
        [
            [5, 8, 14, 22, 20, 62, 38, 45, 85, 55, 75, 40, 35, 40, 360, 15, 38, 10, 25, 5, 5, 1, 1],
            [
                2,
                4,
                8,
                12,
                10,
                30,
                14,
                20,
                32,
                22,
                45,
                25,
                35,
                45,
                465,
                25,
                75,
                25,
                70,
                18,
                15,
                5,
                2,
            ],
        ],
        [
            [
                20,
                25,
                45,
                50,
                20,
                95,
                25,
                60,
                100,
                20,
                70,
                10,
                5,
                10,
                215,
                10,
                55,
                15,
                75,
                20,
                40,
                10,
                5,
            ],
            [
                6,
                8,
                18,
                20,
                10,
                45,
                10,
                30,
                55,
                15,
                50,
                8,
                5,
                10,
                275,
                15,
                85,
                25,
                135,
                45,
                90,
                30,
                10,
            ],
        ],
    ]
)
SCHOOLDAY_HOURS = 20  # at most, below the age of 18


@dataclass(frozen=True, eq=False)
class Work:
    """Schooling and work of every member, in the households' order."""

    education: Codes
    employment: Codes
    occupation: Codes
    hours: Codes  # a week; 0 for those who do not work


def draw_work(random: Generator, homes: Households) -> Work:
    """Draw what each member of the households learned and does."""
    education = _education(random, homes)
    employment = _employment(random, homes, education)
    own_boss = (employment == SELF_EMPLOYED).astype(np.uint8)
    working = own_boss | (employment == EMPLOYED)
    trade = TRADE.draw(numbers(random, len(working)), TRADE_BY_SCHOOLING[education], homes.sex)
    at = HOURS_AT.draw(numbers(random, len(working)), own_boss, homes.sex)
    hours = np.array(HOURS)[at]
    hours = np.where(homes.age < 18, np.minimum(hours, SCHOOLDAY_HOURS), hours)
    return Work(education, employment, trade * working, hours * working)


def _education(random: Generator, homes: Households) -> Codes:
    """The level people end up with by their rank, as far as their age allows it by now."""
    own, alike = numbers(random, 2, len(homes.age))
    heads = own[homes.relation == HEAD][homes.home]
    share = np.where(homes.relation == CHILD, CHILD_ALIKE, OTHERS_ALIKE)
    rank = np.where(chance(alike, share), heads, own)
    return np.minimum(SCHOOLING.draw(rank, COHORT[homes.age], homes.sex), REACHABLE[homes.age])


def _employment(random: Generator, homes: Households, education: Codes) -> Codes:
    """Status by age and sex; then the less schooled lose jobs and the more schooled find them."""
    status = STATUS.draw(numbers(random, len(education)), STAGE[homes.age], homes.sex)
    moved = numbers(random, len(education))
    lost = (status == EMPLOYED) & chance(moved, JOB_LOST[education])
    found = (status == UNEMPLOYED) & chance(moved, JOB_FOUND[education])
    return np.where(lost, UNEMPLOYED, np.where(found, EMPLOYED, status))


# Income -----------------------------------------------------------------------------------------


LOWEST, HIGHEST = -50_000, 1_000_000
PAY = np.array([0, 78, 70, 56, 40, 38, 28, 31, 48, 42, 43, 32, 31]) * 1_000  # 40 hours a week
BENEFIT = np.array([0, 6, 0, 0, 11, 4, 25, 13]) * 1_000  # of those who do not work
NOTHING = np.array([1000, 400, 0, 0, 180, 560, 12, 70])  # in thousandths, have no income at all
BY_EDUCATION = np.array([700, 760, 820, 930, 1020, 1260, 1450, 1650])
BY_AGE = interpolate(
    [(0, 400), (15, 450), (22, 650), (30, 920), (40, 1080), (50, 1130), (60, 1080), (100, 600)],
    AGES,
)
BY_SEX = np.array([850, 1000])
MOST_LUCK = [(0, 80), (10, 200), (50, 390), (100, 510), (250, 730), (500, 1000), (750, 1360)]
BEST_LUCK = [(900, 1900), (950, 2450), (990, 4300), (999, 9500), (1000, 15000)]
MOST_TRADE = [(0, -600), (30, 0), (80, 150), (250, 480), (500, 900), (750, 1500)]
BEST_TRADE = [(900, 2700), (950, 4000), (990, 9000), (999, 18000), (1000, 25000)]
LUCK = QuantileCurve(  # in thousandths; by self-employed, whose losses are the negative incomes
    [*MOST_LUCK, *BEST_LUCK],
    [*MOST_TRADE, *BEST_TRADE],
)
UNITS = np.array([10, 100, 1_000, 5_000, 10_000])
ROUNDED_TO = Odds([50, 330, 280, 145, 195])


def draw_income(random: Generator, homes: Households, work: Work) -> Codes:
    """Draw each member's income in a year."""
    pay = PAY[work.occupation] * work.hours // 40 * BY_AGE[homes.age] // 1000
    base = np.where(work.hours > 0, pay, BENEFIT[work.employment])
    place = PAY_OF[homes.area[homes.home]]
    level = BY_EDUCATION[work.education] * BY_SEX[homes.sex] * place // 1000
    own_boss = (work.employment == SELF_EMPLOYED).astype(np.uint8)
    luck = LUCK.draw(numbers(random, len(base)), own_boss).astype(np.int64)
    income = _told(random, base * level // 1_000_000 * luck // 1000)
    income[chance(numbers(random, len(income)), NOTHING[work.employment])] = 0
    return income


def _told(random: Generator, exact: Codes) -> Codes:
    """The amount as people give it: rounded, and cut off at both ends."""
    unit = UNITS[ROUNDED_TO.draw(numbers(random, len(exact)))]
    few = np.abs(exact) < 3 * unit  # nobody calls 7,000 ten thousand
    unit = np.where(few, np.minimum(unit, 100), unit)
    told: Codes = (exact + unit // 2) // unit * unit
    return np.clip(told, LOWEST, HIGHEST)
