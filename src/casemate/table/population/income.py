"""What people have in a year, in the figure they would give.

Pay follows occupation, hours, age, schooling, sex and place, times a heavy-tailed luck; those who
do not work have a pension, a benefit or nothing. Incomes are told in round figures, and are cut off
at both ends as in a public-use file.
"""

import numpy as np
from numpy.random import Generator

from casemate.table.population.households import Households
from casemate.table.population.odds import AGES, Codes, Curve, Odds, chance, interpolate, numbers
from casemate.table.population.places import PAY_OF
from casemate.table.population.work import SELF_EMPLOYED, Work

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
LUCK = Curve(  # in thousandths; by self-employed, whose losses are the negative incomes
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
