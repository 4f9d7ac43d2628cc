"""What every stand-in for a table can do."""

from collections.abc import Sequence
from typing import Protocol

from casemate.surrogate.product import Floats, Measurement, Product, Scope


class Surrogate(Protocol):
    """A public stand-in for a table of counts: it answers, and learns from what was measured.

    It sees nothing but measurements, so whatever it answers costs no privacy; and it is a
    deterministic function of them and of its settings, so a transcript rebuilds it.
    """

    @property
    def total(self) -> float:
        """How many records it believes there are."""
        ...

    def answer(self, product: Product) -> float:
        """Its value of one question, in counts."""
        ...

    def answers(self, products: Sequence[Product]) -> Floats:
        """Its values of many questions, in counts."""
        ...

    def marginal(self, scope: Scope) -> Floats:
        """Its counts over a scope, one axis for each attribute."""
        ...

    def update(self, measurement: Measurement) -> None:
        """Learn from what a mechanism published."""
        ...


class Fitted(Surrogate, Protocol):
    """A stand-in that fits what was measured together, and all that came before."""

    def learn(self, measurements: Sequence[Measurement], sweeps: int = ...) -> None:
        """Learn from what was published together, going over everything so many times."""
        ...
