"""Randomness with a price: mechanisms take numbers and give numbers; none of them knows SQL.

`noise` draws exact noise, `mechanisms` use it, `cost` says what that costs, and `ledger` charges
the budget, before anything is drawn.
`book` is how a store survives a crash on disk or in PostgreSQL. `generalisation` computes what
partial privacy guarantees.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.privacy.cost import (
        Concentrated,
        Cost,
        Currency,
        Pure,
        epsilon_of,
        price,
        rho_of,
        tighter_epsilon,
    )
    from casemate.privacy.generalisation import GeneralisationSetting, best
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
