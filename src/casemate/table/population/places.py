"""Where people live: twenty invented regions of unequal size, each cut into areas with a code.

Region number r holds the codes from 10000 + 1000 r to 10999 + 1000 r, so that equal bins of width
1,000 over the codes are the regions.
"""

from typing import NamedTuple

import numpy as np

from casemate.table.population.odds import Odds

CITY, TOWN, COUNTRY = 0, 1, 2
FIRST_CODE = 10_000
CODES_PER_REGION = 1_000


class Region(NamedTuple):
    """A region: its share of the households, its land, its level of pay, its number of areas."""

    name: str
    weight: int
    land: int
    pay: int  # in thousandths
    areas: int


REGIONS = (
    Region("Ambermouth", 168, CITY, 1190, 40),
    Region("Kingsholt", 112, CITY, 1110, 34),
    Region("Port Selwyn", 94, CITY, 1060, 32),
    Region("Ravensford", 78, TOWN, 1010, 28),
    Region("Upper Tarn", 66, TOWN, 980, 26),
    Region("Millbrae", 60, TOWN, 1000, 24),
    Region("Eastmarsh", 54, TOWN, 960, 24),
    Region("Corran Vale", 50, TOWN, 1030, 22),
    Region("Linden Hills", 46, CITY, 1150, 20),
    Region("Saltbury", 42, TOWN, 940, 20),
    Region("Northmoor", 38, COUNTRY, 880, 20),
    Region("Brackwater", 34, TOWN, 930, 18),
    Region("Thornley", 30, COUNTRY, 910, 16),
    Region("Fenwold", 27, COUNTRY, 870, 16),
    Region("Ashby Plain", 24, COUNTRY, 900, 14),
    Region("Westering", 21, COUNTRY, 890, 14),
    Region("Glen Harrow", 18, COUNTRY, 860, 12),
    Region("Stonehythe", 15, TOWN, 920, 10),
    Region("Long Islands", 13, COUNTRY, 850, 10),
    Region("High Cairn", 10, COUNTRY, 840, 8),
)


def _weights(region: Region) -> list[int]:
    """The areas of a region by falling size, with its own weight in all."""
    parts = [840_000 // (place + 6) for place in range(region.areas)]
    return [region.weight * part * 1_000 // sum(parts) for part in parts]


_PLACES = [(number, place) for number, r in enumerate(REGIONS) for place in range(r.areas)]

AREA = Odds([weight for region in REGIONS for weight in _weights(region)])
REGION_OF = np.array([number for number, _ in _PLACES], dtype=np.uint8)
CODE_OF = np.array(
    [FIRST_CODE + CODES_PER_REGION * number + 1 + 23 * place for number, place in _PLACES]
)
LAND_OF = np.array([REGIONS[number].land for number, _ in _PLACES], dtype=np.uint8)
PAY_OF = np.array(  # neighbourhoods of one region differ by up to a tenth
    [REGIONS[number].pay + 10 * (37 * place % 21 - 10) for number, place in _PLACES]
)
