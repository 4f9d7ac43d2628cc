"""The records that one published sum adds up, as a predicate and a cell."""

from dataclasses import dataclass

from casemate.query.answers import Key
from casemate.query.expression import Expression

Family = tuple[Expression, tuple[Expression, ...]]
"""A predicate and keys: selections that differ in their cell alone."""


@dataclass(frozen=True)
class Selection:
    """The records that one equation adds up: a predicate's, in one cell of its keys."""

    predicate: Expression
    keys: tuple[Expression, ...] = ()
    key: Key = ()

    @property
    def family(self) -> Family:
        """What it shares with the other cells of its GROUP BY."""
        return self.predicate, self.keys
