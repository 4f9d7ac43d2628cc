"""A tighter (epsilon, delta) for a finished list of costs: a report, never the gate.

Source     dp-accounting (extra `accounting`). Any epsilon-private step is a post-processing of one
           randomised response (Kairouz, Oh and Viswanath, arXiv:1311.0776), so pure costs compose
           by the privacy loss distribution of that; a list with zCDP costs by Rényi divergences.
Guarantee  Holds when the costs were fixed before the first answer. The ledger allows them to be
           chosen along the way, for which only its own sums are proved, so it never uses this.
           Floating point, rounded up where the library can.
"""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from casemate.errors import Misconfigured
from casemate.privacy.cost import Concentrated, Cost, Currency, Pure, epsilon_of, price

MOST_POINTS = 10**6
"""Points of the grid on which a privacy loss distribution is kept."""


def tighter_epsilon(costs: Sequence[Cost], delta: Fraction) -> float:
    """The least epsilon at `delta` known for these costs, had they been fixed in advance."""
    finite = [cost for cost in costs if isinstance(cost, Pure | Concentrated)]
    if len(finite) < len(costs):
        return math.inf
    library = _library()
    pure = Counter(cost.epsilon for cost in finite if isinstance(cost, Pure) and cost.epsilon)
    rho = sum((cost.rho for cost in finite if isinstance(cost, Concentrated)), Fraction(0))
    known = [float(epsilon_of(_total_rho(finite), delta))]
    if rho:
        known.append(_by_divergences(library, pure, rho, delta))
    elif pure:
        known += [float(sum(pure.elements())), _by_distribution(library, pure, delta)]
    return min(known)


def _total_rho(costs: Sequence[Pure | Concentrated]) -> Fraction:
    return sum((price(cost, Currency.RHO) or Fraction(0) for cost in costs), Fraction(0))


def _by_distribution(library: Any, pure: Counter[Fraction], delta: Fraction) -> float:
    points = min(MOST_POINTS, 1000 * pure.total())
    interval = float(sum(pure.elements()) / points)
    steps = [
        library.pld.privacy_loss_distribution.from_privacy_parameters(
            library.pld.common.DifferentialPrivacyParameters(float(epsilon), 0.0), interval
        ).self_compose(times)
        for epsilon, times in pure.items()
    ]
    composed = steps[0]
    for step in steps[1:]:
        composed = composed.compose(step)
    return float(composed.get_epsilon_for_delta(float(delta)))


def _by_divergences(
    library: Any,
    pure: Counter[Fraction],
    rho: Fraction,
    delta: Fraction,
) -> float:
    relation = library.NeighboringRelation.REPLACE_ONE  # of the one bit that is randomised
    accountant = library.rdp.RdpAccountant(neighboring_relation=relation)
    accountant.compose(library.ZCDpEvent(float(rho), 0.0))
    for epsilon, times in pure.items():
        kept = 2 / (1 + math.exp(float(epsilon)))  # the chance of answering at random
        accountant.compose(library.RandomizedResponseDpEvent(kept, 2), times)
    return float(accountant.get_epsilon(float(delta)))


def _library() -> Any:
    try:
        import dp_accounting
        import dp_accounting.pld
        import dp_accounting.rdp
    except ImportError as reason:
        raise Misconfigured(
            "a tighter report needs dp-accounting; install casemate[accounting]"
        ) from reason
    return dp_accounting
