"""What a mechanism spends, as a value, and the one conversion between two ways of counting it.

A mechanism states its cost and the ledger interprets it: in pure epsilon when the budget has
delta = 0, in rho (zero-concentrated differential privacy, zCDP) otherwise.

Source     Bun and Steinke, arXiv:1605.02065, Proposition 1.4: epsilon implies epsilon^2/2-zCDP.
           Canonne, Kamath and Steinke, arXiv:2004.00010, section 2.3: rho-zCDP implies
           (epsilon, delta) for every epsilon >= 0 with delta the infimum over alpha > 1 of
           exp((alpha-1)(alpha rho - epsilon)) / (alpha-1) * (1 - 1/alpha)^alpha.
Guarantee  `epsilon_of` is never too small and `rho_of` never too large, and
           `epsilon_of(rho_of(epsilon, delta), delta) <= epsilon`. Every single alpha is a valid
           bound, so only the evaluation at the alpha chosen has to be rounded outwards.
Exact      Decimal logarithms are correctly rounded, so the next number up or down encloses the
           true one; each other step is rounded in the direction that is safe.
Cost       About a millisecond a conversion.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from enum import StrEnum
from fractions import Fraction


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
    room = _DOWN.subtract(_decimal(epsilon, _DOWN), _above(t, log_inverse_delta))
    if room <= 0:
        return Fraction(0)
    down = _SHORT_DOWN.divide(room, _UP.add(1, t))
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
        while high > low * _CLOSE:
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


def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emin=-(10**9), Emax=10**9)


_NEAREST, _UP, _DOWN = (_context(60, way) for way in (ROUND_HALF_EVEN, ROUND_CEILING, ROUND_FLOOR))
_SHORT_UP, _SHORT_DOWN = _context(30, ROUND_CEILING), _context(20, ROUND_FLOOR)
_CLOSE = Decimal("1.000000000000000001")
