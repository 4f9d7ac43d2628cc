"""What a mechanism spends, as a value: a mechanism states it and the ledger interprets it."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Pure:
    """Pure epsilon-differential privacy; it implies epsilon^2/2-zCDP."""

    epsilon: Fraction


@dataclass(frozen=True)
class Concentrated:
    """Zero-concentrated differential privacy of rho."""

    rho: Fraction


@dataclass(frozen=True)
class Unbounded:
    """Something left without noise, so no finite budget covers it."""

    reason: str


Cost = Pure | Concentrated | Unbounded
