"""A private answer as a value: rows, what is proven of them, what they cost and what is left."""

from dataclasses import dataclass
from fractions import Fraction

from casemate.doors import Answered, Doorway, answered_key
from casemate.grid import Cell, Origin, Outcome
from casemate.privacy import epsilon_of
from casemate.privacy.ledger import Terms


@dataclass(frozen=True)
class Spending:
    """An amount of privacy: rho, and the epsilon it is at the policy's delta.

    Epsilons of this kind do not add up; rhos do. A budget with delta = 0 has no rho.
    """

    rho: Fraction | None
    epsilon: Fraction

    @classmethod
    def of(cls, amount: Fraction, terms: Terms) -> "Spending":
        """An amount in the ledger's currency."""
        if not terms.delta:
            return cls(None, amount)
        return cls(amount, epsilon_of(amount, terms.delta) if amount else Fraction(0))


@dataclass(frozen=True)
class Spent:
    """What is spent in all before and after an answer, and what may be.

    Epsilons of parts do not add up, and these need not: each is of all that had left by then.
    """

    before: Spending
    after: Spending
    budget: Spending

    @classmethod
    def of(cls, before: Fraction, after: Fraction, terms: Terms) -> "Spent":
        """Amounts in the ledger's currency."""
        return cls(*(Spending.of(each, terms) for each in (before, after, terms.budget)))


@dataclass(frozen=True)
class Answer:
    """What a statement shows; every noised cell of it comes from one origin."""

    sql: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    origin: Origin
    confidence: float
    cost: Spending
    remaining: Spending
    spent: Spent
    notes: tuple[str, ...] = ()
    exact: bool = False  # about public columns alone, and without noise


def stored_outcome(doors: Doorway, text: str) -> Outcome | None:
    """The answer that was given to a question, if there is one; nothing is read."""
    entry = doors.transcript.find(answered_key(text, doors.edition))
    if entry is None:
        return None
    content = entry.content
    assert isinstance(content, Answered), "the key of an answer holds an answer"
    return Outcome.from_text(content.answer).again()


@dataclass(frozen=True)
class Forecast:
    """What a statement would cost at most, and why."""

    sql: str
    cost: Spending
    remaining: Spending
    spent: Spent
    known: bool  # it was answered before, so it costs nothing
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BudgetStanding:
    """Where a dataset's budget stands."""

    dataset: str
    budget: Spending
    spent: Spending
    remaining: Spending
    delta: Fraction
    neighbours: str
    protects: str
    strategy: str
    questions: int  # that the gate was asked
    surprises: int  # that it found
    surprises_left: int
    principals: dict[str, int]  # surprises of each
    statement: str
    tighter_epsilon: float | None = None
    tighter_note: str = ""  # what it assumes, or why it is not known
    notes: tuple[str, ...] = ()
