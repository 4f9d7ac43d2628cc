"""Who pays for people's doctors, what they are diagnosed with, and how often they go.

A diagnosis depends on age and sex: most become commoner with age, a few are rare at every age.
Visits depend on how grave the diagnosis is and on having insurance at all; insurance follows work
and age, and one household's members of the same standing have the same.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from casemate.table.shipped.population.households import Households
from casemate.table.shipped.population.odds import Codes, Odds, bands, numbers

INSURANCE = ("employer", "public", "own", "none")
UNINSURED = 3
PENSION_BAND = bands(65)
COVER = Odds(  # by being 65 or over, then employment
    [
        [
            [520, 380, 50, 50],
            [560, 240, 110, 90],
            [780, 80, 70, 70],
            [190, 130, 500, 180],
            [200, 480, 80, 240],
            [520, 280, 90, 110],
            [450, 330, 160, 60],
            [130, 800, 30, 40],
        ],
        [
            [0, 1, 0, 0],
            [0, 970, 20, 10],
            [330, 640, 20, 10],
            [60, 850, 80, 10],
            [20, 960, 10, 10],
            [40, 920, 30, 10],
            [60, 890, 45, 5],
            [20, 970, 5, 5],
        ],
    ]
)

DIAGNOSES = (
    "none",
    "hypertension",
    "diabetes",
    "asthma",
    "depression",
    "arthritis",
    "heart disease",
    "cancer",
    "epilepsy",
    "kidney disease",
    "HIV",
    "multiple sclerosis",
)
DECADES = bands(15, 30, 45, 60, 75)
DISEASES = (  # of ten thousand people, by age, then sex; the rest have none
    ((2, 25, 700, 60, 5, 20, 8, 60, 5, 1, 0), (3, 28, 850, 40, 4, 25, 10, 70, 6, 1, 0)),
    ((60, 60, 800, 1200, 40, 30, 20, 70, 15, 6, 6), (110, 60, 650, 650, 30, 40, 18, 75, 15, 20, 3)),
    (
        (450, 220, 750, 1350, 250, 80, 90, 70, 40, 18, 22),
        (750, 300, 500, 750, 180, 130, 60, 75, 45, 60, 8),
    ),
    (
        (1500, 650, 650, 1200, 1000, 260, 320, 70, 90, 20, 30),
        (1900, 850, 400, 700, 650, 550, 260, 75, 110, 60, 11),
    ),
    (
        (2400, 1100, 450, 700, 1700, 600, 650, 80, 180, 10, 18),
        (2300, 1300, 300, 420, 1050, 1200, 750, 85, 240, 30, 7),
    ),
    (
        (2400, 1050, 300, 450, 1950, 1250, 750, 90, 330, 3, 7),
        (2150, 1200, 250, 320, 1200, 1950, 1050, 95, 430, 8, 3),
    ),
)
DIAGNOSIS = Odds([[[10_000 - sum(row), *row] for row in sexes] for sexes in DISEASES])

GRAVITY = np.array([0, 1, 1, 1, 1, 1, 2, 2, 1, 2, 2, 2])
VISITS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40)
VISITS_AT = Odds(  # by gravity, then having insurance
    [
        [
            [560, 210, 110, 50, 30, 15, 10, 6, 4, 2, 1, 1, 1, 0],
            [300, 260, 170, 100, 65, 35, 25, 18, 12, 7, 4, 2, 1, 1],
        ],
        [
            [220, 200, 170, 120, 90, 60, 50, 35, 25, 15, 8, 4, 2, 1],
            [60, 100, 140, 150, 140, 100, 90, 75, 55, 45, 25, 12, 6, 2],
        ],
        [
            [90, 100, 120, 120, 110, 90, 90, 85, 70, 55, 35, 20, 10, 5],
            [15, 30, 55, 70, 85, 90, 110, 120, 120, 110, 85, 60, 35, 15],
        ],
    ]
)


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
    visits = np.array(VISITS)[VISITS_AT.draw(how_often, GRAVITY[diagnosis], insured)]
    return Health(insurance, diagnosis, visits)
