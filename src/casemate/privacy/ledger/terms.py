"""What a ledger is about and what it has added up: its terms, and totals in exact rationals."""

import json
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Self

from casemate.errors import Misconfigured
from casemate.privacy.cost import Currency, rho_of

UNIT = Fraction(1, 10**12)
"""What one integer of the store is worth, in epsilon or in rho.

Totals are exact rationals; beside each the store keeps its whole units, rounded up, so that a
CHECK of the database itself refuses an overspending. Rounding the total once, not each charge,
lets n charges of budget/n fill a budget exactly.
"""

MOST_EPSILON = 10**6
"""No budget may be larger: it protects nobody, and its units must fit into 63 bits."""

FORMAT = "casemate.ledger/2"


@dataclass(frozen=True)
class Terms:
    """What one ledger is about; only the policy's hash and the budget may be amended later."""

    dataset: str
    policy: str
    neighbours: str
    protects: str
    epsilon: Fraction
    delta: Fraction
    budget: Fraction  # epsilon itself, or the rho it is worth at delta

    @classmethod
    def of(
        cls,
        *,
        dataset: str,
        policy: str,
        neighbours: str,
        protects: str,
        epsilon: Fraction,
        delta: Fraction,
    ) -> Self:
        """State the terms, converting (epsilon, delta) to rho when delta is not 0."""
        _require_word("neighbours", neighbours, ("add-remove", "replace"))
        _require_word("protects", protects, ("person", "private-columns"))
        require_text("dataset", dataset, 1, 500)
        require_text("policy", policy, 0, 500)
        exact = isinstance(epsilon, Fraction) and isinstance(delta, Fraction)
        if not exact or not 0 < epsilon <= MOST_EPSILON or not 0 <= delta < 1:
            raise ValueError(
                f"a budget needs Fractions with 0 < epsilon <= {MOST_EPSILON} and 0 <= delta < 1, "
                f"got {epsilon!r} and {delta!r}"
            )
        budget = rho_of(epsilon, delta) if delta else epsilon
        return cls(dataset, policy, neighbours, protects, epsilon, delta, budget)

    @property
    def currency(self) -> Currency:
        """Pure epsilon when delta is 0, rho otherwise."""
        return Currency.RHO if self.delta else Currency.EPSILON

    def to_text(self) -> str:
        """The terms as one line of JSON, always the same for the same terms."""
        facts = {name: str(value) for name, value in asdict(self).items()}
        return json.dumps({"format": FORMAT, **facts}, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read back what `to_text` wrote."""
        facts = json.loads(text)
        written = facts.pop("format")
        if written != FORMAT:
            raise Misconfigured(
                f"this ledger has the format {written!r} and this version of casemate reads "
                f"{FORMAT!r}; open it with the version that wrote it"
            )
        numbers = {name: Fraction(facts[name]) for name in ("epsilon", "delta", "budget")}
        return cls(**(facts | numbers))


@dataclass(frozen=True)
class Total:
    """A sum of costs in the budget's currency, and the first row that made it infinite, if any."""

    amount: Fraction = Fraction(0)
    infinite_since: int | None = None

    @property
    def infinite(self) -> bool:
        """Whether something left without noise, so that no finite guarantee is left."""
        return self.infinite_since is not None

    def plus(self, amount: Fraction) -> Self:
        """Add a price; past 512 bits the sum is rounded up, so that a ledger cannot be clogged."""
        total = self.amount + amount
        if total.denominator.bit_length() > 512:
            total = Fraction(-(-(total.numerator << 256) // total.denominator), 1 << 256)
        return replace(self, amount=total)

    @property
    def units(self) -> int:
        """The finite part in whole units, rounded up."""
        return whole_units(self.amount)

    def to_text(self) -> str:
        """The total as it is stored."""
        return str(self.amount) + (f" infinite {self.infinite_since}" if self.infinite else "")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read back what `to_text` wrote."""
        amount, _, since = text.partition(" infinite ")
        return cls(Fraction(amount), int(since) if since else None)


def whole_units(amount: Fraction) -> int:
    """The amount in the integer units of the store, rounded up."""
    return -(-amount // UNIT)


NOTHING = Total()


def require_text(name: str, value: str, least: int, most: int) -> None:
    """Demand text that every store can keep."""
    if not isinstance(value, str) or not least <= len(value) <= most or "\0" in value:
        raise ValueError(f"{name} must be text of {least} to {most} characters without NUL")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text that UTF-8 can express") from None


def _require_word(name: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise Misconfigured(f"{name} must be one of {', '.join(known)}, got {given!r}")
