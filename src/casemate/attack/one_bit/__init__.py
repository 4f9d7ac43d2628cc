"""Learning a secret vector through yes/no answers: learners, noise laws, and the limit of all."""

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
    from casemate.attack.one_bit.oracle import OneBitLearner, TableOracle, ThresholdOracle, play
    from casemate.attack.one_bit.streams import generic, near_basis
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
