"""Learning a secret vector through yes/no answers: learners, noise laws, and the limit of all.

`attack` runs against a table and `report` writes what came of it. `oracle` is the protocol,
`table_oracle` a table behind it, `streams` the queries, `laws` the noise, `limit` the least error
that anybody can have, and `choice` the learners by name: `bisection` (the source's algorithm;
`bisection_simulation` runs it compiled) and Kalman filters, which all go through the stages of
`oracle`: `kalman` for noise of a known scale (`square_root`), of any (`scale_bank`) and of any
symmetric law (`offset_grid`); `edge` at the edges of a known law (`thresholds` says where, a guard
watches that the law holds); `automatic`, which looks for an edge by itself.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.one_bit.attack import OneBitAttack
    from casemate.attack.one_bit.automatic import AutomaticKalman
    from casemate.attack.one_bit.bisection import OnlineBisection, phases
    from casemate.attack.one_bit.bisection_simulation import BisectionRun, simulate
    from casemate.attack.one_bit.edge import EdgeKalman
    from casemate.attack.one_bit.kalman import OneBitKalman
    from casemate.attack.one_bit.laws import MixtureLaw, effective_scale, parse_law
    from casemate.attack.one_bit.limit import half_of_everything, one_bit_limit
    from casemate.attack.one_bit.oracle import OneBitLearner, ThresholdOracle
    from casemate.attack.one_bit.streams import generic, near_basis
    from casemate.attack.one_bit.table_oracle import TableOracle
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
