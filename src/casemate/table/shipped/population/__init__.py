"""`population`: a person-level table of any size from a seeded generator of our own.

The people are invented. The tables of chances behind them were written for this package; they
follow no real survey closely and describe no real place. They stand in `population.toml`, and
`distributions` draws from them. `households` draws who lives where and with whom, `people` what
they do, earn and suffer from, and `census` makes a table of them.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.table.shipped.population.census import (
        DEFAULT_ROWS,
        DEFAULT_SEED,
        MOST_ROWS,
        columns,
        policy,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
