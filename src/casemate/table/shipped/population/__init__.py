"""`population`: a person-level table of any size from a seeded generator of our own.

The people are invented. The tables of chances behind them were written for this package; they
follow no real survey closely and describe no real place.
"""

from casemate.table.shipped.population.census import (
    DEFAULT_ROWS,
    DEFAULT_SEED,
    MOST_ROWS,
    columns,
    policy,
)

__all__ = ["DEFAULT_ROWS", "DEFAULT_SEED", "MOST_ROWS", "columns", "policy"]
