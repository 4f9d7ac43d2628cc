"""A public stand-in for the table: answers questions, learns from measurements, opens nothing.

`Surrogate` is the protocol; `dense` holds every cell, `mixture` products for large universes,
`replay` replays every measurement, `projection` and `weights` are updates.
`stand_in` rebuilds one from a transcript alone, and `typical_error` estimates how far it is off.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.surrogate.dense import LARGEST_DENSE, Histogram, remembers
    from casemate.surrogate.projection import most_off, tilted
    from casemate.surrogate.protocol import Surrogate
    from casemate.surrogate.replay import WIDE
    from casemate.surrogate.stand_in import DENSEST, Make, StandIn, stand_in_for
    from casemate.surrogate.typical_error import LARGEST, WORLDS, TypicalErrors
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
