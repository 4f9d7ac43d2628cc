"""What a mechanism spends, as a value, and the one conversion between two ways of counting it.

A mechanism states its cost and the ledger interprets it: in pure epsilon when the budget has
delta = 0, in rho (zero-concentrated differential privacy, zCDP) otherwise. For a list of
costs that is finished there is a tighter report, which the ledger never uses.

Source     Bun and Steinke, arXiv:1605.02065, Proposition 1.4: epsilon implies epsilon^2/2-zCDP.
           Canonne, Kamath and Steinke, arXiv:2004.00010, section 2.3: rho-zCDP implies
           (epsilon, delta) for every epsilon >= 0 with delta the infimum over alpha > 1 of
           exp((alpha-1)(alpha rho - epsilon)) / (alpha-1) * (1 - 1/alpha)^alpha.
Guarantee  `epsilon_of` is never too small and `rho_of` never too large, and
           `epsilon_of(rho_of(epsilon, delta), delta) <= epsilon`. Every single alpha is a valid
           bound, so only the evaluation at the alpha chosen has to be rounded outwards.
Exact      Decimal logarithms are correctly rounded, so the next number up or down encloses the
           true one; each other step is rounded in the direction that is safe.
Cost       About a millisecond a conversion; those asked for again are remembered.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from casemate.errors import Misconfigured


@dataclass(frozen=True)
class Pure:
    """Pure epsilon-differential privacy; it implies epsilon^2/2-zCDP."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _require_exact("epsilon", self.epsilon)


@dataclass(frozen=True)
class Concentrated:
    """Zero-concentrated differential privacy of rho."""

    rho: Fraction

    def __post_init__(self) -> None:
        _require_exact("rho", self.rho)


@dataclass(frozen=True)
class Unbounded:
    """Something left without noise, so no finite budget covers it."""

    reason: str


Cost = Pure | Concentrated | Unbounded


class Currency(StrEnum):
    """What a budget is counted in."""

    EPSILON = "epsilon"
    RHO = "rho"


def price(cost: Pure | Concentrated, currency: Currency) -> Fraction | None:
    """What the cost takes from a budget of this currency; None when it cannot be paid in it.

    >>> price(Pure(Fraction(1, 2)), Currency.RHO)
    Fraction(1, 8)
    """
    match cost, currency:
        case Pure(epsilon), Currency.EPSILON:
            return Fraction(epsilon)
        case Pure(epsilon), Currency.RHO:
            return Fraction(epsilon) ** 2 / 2
        case Concentrated(rho), Currency.RHO:
            return Fraction(rho)
    return Fraction(0) if cost == Concentrated(Fraction(0)) else None  # zCDP bounds no epsilon


@lru_cache(1024, typed=True)
def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon that rho-zCDP gives at `delta`, rounded up.

    >>> f"{float(epsilon_of(Fraction(1, 50), Fraction(1, 10**6))):.4f}"
    '0.8999'
    """
    _require_exact("rho", rho)
    log_inverse_delta = _log_inverse(delta)
    if rho == 0:
        return Fraction(0)
    target = _decimal(rho, _NEAREST)

    def slope(t: Decimal) -> Decimal:  # of epsilon in alpha = 1 + t, times t^2
        return target * t * t + (1 + t).ln() - log_inverse_delta

    t = _root(slope, delta)
    up = _UP.multiply(_UP.add(1, t), _decimal(rho, _UP))
    return max(Fraction(0), Fraction(_SHORT_UP.add(up, _above(t, log_inverse_delta))))


@lru_cache(1024, typed=True)
def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The most rho whose epsilon at `delta` is at most `epsilon`, rounded down.

    >>> f"{float(rho_of(Fraction(1), Fraction(1, 10**6))):.5f}"
    '0.02436'
    """
    _require_exact("epsilon", epsilon)
    log_inverse_delta = _log_inverse(delta)
    target = _decimal(epsilon, _NEAREST)

    def excess(
        t: Decimal,
    ) -> Decimal:  # of `epsilon` over that of the rho whose best alpha is 1 + t
        log_alpha = (1 + t).ln()
        best = (log_inverse_delta - log_alpha) * (2 * t + 1) / (t * t) + t.ln() - log_alpha
        return target - best

    t = _root(excess, delta)
    available = _DOWN.subtract(_decimal(epsilon, _DOWN), _above(t, log_inverse_delta))
    if available <= 0:
        return Fraction(0)
    down = _SHORT_DOWN.divide(available, _UP.add(1, t))
    # One unit in the last place less, so that converting back stays within `epsilon`.
    return max(Fraction(0), Fraction(_SHORT_DOWN.next_minus(down)))


def _above(t: Decimal, log_inverse_delta: Decimal) -> Decimal:
    """At least epsilon - alpha rho, that is ln(1 - 1/alpha) + (ln(1/delta) - ln alpha)/t."""
    log_alpha = _DOWN.next_minus(_DOWN.ln(_DOWN.add(1, t)))
    log_t = _UP.next_plus(_UP.ln(t))
    tail = _UP.divide(_UP.subtract(log_inverse_delta, log_alpha), t)
    return _UP.add(_UP.subtract(log_t, log_alpha), tail)


def _log_inverse(delta: Fraction) -> Decimal:
    """ln(1/delta), rounded up."""
    if not isinstance(delta, Fraction) or not 0 < delta < 1:
        raise ValueError(f"delta must be a Fraction above 0 and below 1, got {delta!r}")
    return _DOWN.next_minus(_DOWN.ln(_decimal(delta, _DOWN))).copy_negate()


def _root(rising: Callable[[Decimal], Decimal], delta: Fraction) -> Decimal:
    """Where a rising function of t changes sign between almost 0 and 1/delta, to 18 digits."""
    low, high = Decimal("1e-30"), _decimal(1 / delta, _UP)
    with localcontext(_NEAREST):
        while high > low * _ROOT_RATIO:
            middle = (low * high).sqrt()
            if rising(middle) < 0:
                low = middle
            else:
                high = middle
    return high


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _require_exact(name: str, value: object) -> None:
    if not isinstance(value, Fraction) or value < 0:
        raise ValueError(f"{name} must be a Fraction that is not negative, got {value!r}")


_context = partial(Context, Emin=-(10**9), Emax=10**9)
_NEAREST, _UP, _DOWN = (_context(60, way) for way in (ROUND_HALF_EVEN, ROUND_CEILING, ROUND_FLOOR))
_SHORT_UP, _SHORT_DOWN = _context(30, ROUND_CEILING), _context(20, ROUND_FLOOR)
_ROOT_RATIO = Decimal("1.000000000000000001")


# A tighter report -------------------------------------------------------------------------------
#
# A tighter (epsilon, delta) for a finished list of costs: a report, never the gate.
#
# Source     dp-accounting (extra `accounting`). Any epsilon-private step is a post-processing of
#            one randomised response (Kairouz, Oh and Viswanath, arXiv:1311.0776), so pure costs
#            compose by the privacy loss distribution of that; a list with zCDP costs by Rényi
#            divergences.
# Guarantee  Holds when the costs were fixed before the first answer. The ledger allows them to be
#            chosen along the way, for which only its own sums are proved, so it never uses this.
#            Floating point, rounded up where the library can.

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
