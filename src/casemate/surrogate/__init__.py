"""A public stand-in for the table: answers questions, learns from measurements, opens nothing.

`dense` is the stand-in that holds every cell (a `histogram`) and replays every measurement by the
steps of `projection`; `mixture` is the one of products for large universes, fitted by
`mixture_residuals`. `stand_in` says what every stand-in can do, chooses between them and rebuilds
one from a transcript alone, `kept_fit` keeps it for the next process, and `typical_error` estimates
how far it is off.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.surrogate.dense import WIDE_TABLE_ATTRIBUTES
    from casemate.surrogate.histogram import MAX_DENSE_CELLS, Histogram, caches_marginal
    from casemate.surrogate.kept_fit import KeptFit
    from casemate.surrogate.projection import exponential_tilt, worst_cell
    from casemate.surrogate.stand_in import DailyStandIn, Make, StandIn, Surrogate, stand_in_for
    from casemate.surrogate.typical_error import MAX_REFITTED_CELLS, MAX_REPLICATES, TypicalErrors
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
