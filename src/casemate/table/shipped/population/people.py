"""What people learned, do all day, have in a year, and see doctors for.

Schooling follows birth cohort and sex, and runs in families: some of those who live with a head
have the head's rank, each in their own cohort. Work follows age, sex and schooling.

Pay follows occupation, hours, age, schooling, sex and place, times a heavy-tailed luck; those who
do not work have a pension, a benefit or nothing. Incomes are told in round figures, and are cut off
at both ends as in a public-use file.

A diagnosis depends on age and sex: most become commoner with age, a few are rare at every age.
Visits depend on how grave the diagnosis is and on having insurance at all; insurance follows work
and age, and one household's members of the same standing have the same.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from casemate.table.shipped.population.distributions import (
    AGE_LIMIT,
    LABELS,
    PARAMETERS,
    Codes,
    Odds,
    QuantileCurve,
    bands,
    chance,
    interpolate,
    numbers,
)
from casemate.table.shipped.population.households import CHILD, HEAD, PAY_LEVEL_OF, Households

_EDUCATION, _EMPLOYMENT, _OCCUPATION, _INCOME, _INSURANCE, _DIAGNOSIS = (
    PARAMETERS[section]
    for section in ("education", "employment", "occupation", "income", "insurance", "diagnosis")
)

EARLIEST_AGE = tuple(_EDUCATION["earliest_age"])
REACHABLE = bands(*EARLIEST_AGE[1:])
COHORT = bands(*_EDUCATION["cohort_from"])
SCHOOLING = Odds(_EDUCATION["by_cohort_and_sex"])

EMPLOYED, SELF_EMPLOYED, UNEMPLOYED = map(
    LABELS["employment"].index, ("employed", "self-employed", "unemployed")
)
STAGE = bands(*_EMPLOYMENT["stage_from"])
STATUS = Odds(_EMPLOYMENT["by_stage_and_sex"])
JOB_LOST, JOB_FOUND = np.array(_EDUCATION["job_lost"]), np.array(_EDUCATION["job_found"])

TRADE_GROUP = np.array(_EDUCATION["trade_group"])
TRADE = Odds(_OCCUPATION["by_group_and_sex"])  # of those who work

HOURS_A_WEEK = np.array(_OCCUPATION["hours"])
HOURS_AT = Odds(_OCCUPATION["hours_by_self_employed_and_sex"])
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
    trade = TRADE.draw(numbers(random, len(working)), TRADE_GROUP[education], homes.sex)
    at = HOURS_AT.draw(numbers(random, len(working)), own_boss, homes.sex)
    hours = HOURS_A_WEEK[at]
    hours = np.where(homes.age < 18, np.minimum(hours, SCHOOLDAY_HOURS), hours)
    return Work(education, employment, trade * working, hours * working)


def _education(random: Generator, homes: Households) -> Codes:
    """The level people end up with by their rank, as far as their age allows it by now."""
    own, alike = numbers(random, 2, len(homes.age))
    heads = own[homes.relation == HEAD][homes.home]
    share = np.where(
        homes.relation == CHILD, _EDUCATION["children_like_head"], _EDUCATION["others_like_head"]
    )
    rank = np.where(chance(alike, share), heads, own)
    return np.minimum(SCHOOLING.draw(rank, COHORT[homes.age], homes.sex), REACHABLE[homes.age])


def _employment(random: Generator, homes: Households, education: Codes) -> Codes:
    """Status by age and sex; then the less schooled lose jobs and the more schooled find them."""
    status = STATUS.draw(numbers(random, len(education)), STAGE[homes.age], homes.sex)
    moved = numbers(random, len(education))
    lost = (status == EMPLOYED) & chance(moved, JOB_LOST[education])
    found = (status == UNEMPLOYED) & chance(moved, JOB_FOUND[education])
    return np.where(lost, UNEMPLOYED, np.where(found, EMPLOYED, status))


# Income ------------------------------------------------------------------------------------------


LOWEST_INCOME, HIGHEST_INCOME = _INCOME["bounds"]
PAY_BY_OCCUPATION = np.array(_OCCUPATION["pay"])
BENEFIT = np.array(_EMPLOYMENT["benefit"])
NO_INCOME = np.array(_EMPLOYMENT["no_income"])
PAY_BY_EDUCATION = np.array(_EDUCATION["pay"])
PAY_BY_AGE = interpolate(_INCOME["by_age"], AGE_LIMIT)
PAY_BY_SEX = np.array(_INCOME["by_sex"])
LUCK = QuantileCurve(*_INCOME["luck_by_self_employed"])
ROUNDING_UNITS = np.array(_INCOME["units"])
ROUNDED_TO = Odds(_INCOME["rounded_to_unit"])


def draw_income(random: Generator, homes: Households, work: Work) -> Codes:
    """Draw each member's income in a year."""
    pay = PAY_BY_OCCUPATION[work.occupation] * work.hours // 40 * PAY_BY_AGE[homes.age] // 1000
    base = np.where(work.hours > 0, pay, BENEFIT[work.employment])
    place = PAY_LEVEL_OF[homes.area[homes.home]]
    level = PAY_BY_EDUCATION[work.education] * PAY_BY_SEX[homes.sex] * place // 1000
    own_boss = (work.employment == SELF_EMPLOYED).astype(np.uint8)
    luck = LUCK.draw(numbers(random, len(base)), own_boss).astype(np.int64)
    income = _round_as_reported(random, base * level // 1_000_000 * luck // 1000)
    income[chance(numbers(random, len(income)), NO_INCOME[work.employment])] = 0
    return income


def _round_as_reported(random: Generator, exact: Codes) -> Codes:
    """The amount as people give it: rounded, and cut off at both ends."""
    unit = ROUNDING_UNITS[ROUNDED_TO.draw(numbers(random, len(exact)))]
    small = np.abs(exact) < 3 * unit  # nobody calls 7,000 ten thousand
    unit = np.where(small, np.minimum(unit, 100), unit)
    reported: Codes = (exact + unit // 2) // unit * unit
    return np.clip(reported, LOWEST_INCOME, HIGHEST_INCOME)


# Health: insurance, diagnoses and visits ---------------------------------------------------------


UNINSURED = LABELS["insurance"].index("none")
PENSION_BAND = bands(*_INSURANCE["pension_from"])
COVER = Odds(_INSURANCE["by_pension_and_employment"])

DECADES = bands(*_DIAGNOSIS["band_from"])
DIAGNOSIS = Odds(_DIAGNOSIS["by_age_and_sex"])
GRAVITY = np.array(_DIAGNOSIS["gravity"])
VISITS_A_YEAR = np.array(_DIAGNOSIS["visits"])
VISITS_AT = Odds(_DIAGNOSIS["visits_by_gravity_and_insurance"])


@dataclass(frozen=True, eq=False)
class Health:
    """Insurance, diagnosis and visits of every member, in the households' order."""

    insurance: Codes
    diagnosis: Codes
    visits: Codes


def draw_health(random: Generator, homes: Households, employment: Codes) -> Health:
    """Draw each member's insurance, diagnosis and visits in a year."""
    shared = numbers(random, len(homes.size))[homes.home]
    insurance = COVER.draw(shared, PENSION_BAND[homes.age], employment)
    own, how_often = numbers(random, 2, len(homes.age))
    diagnosis = DIAGNOSIS.draw(own, DECADES[homes.age], homes.sex)
    insured = (insurance != UNINSURED).astype(np.uint8)
    visits = VISITS_A_YEAR[VISITS_AT.draw(how_often, GRAVITY[diagnosis], insured)]
    return Health(insurance, diagnosis, visits)
