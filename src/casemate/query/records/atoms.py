"""Predicates as unions of conjunctions of per-column conditions, in two-valued logic.

A row is selected where its predicate is true, so three-valued logic ends at the root: "is true"
and "is false" are pushed down to the atoms, and from there on everything is a plain set of rows.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    columns_of,
)

MOST_TERMS = 64
"""Past this many conjunctions a predicate is evaluated by the engine as a whole."""


@dataclass(frozen=True)
class Atom:
    """The rows on which a condition is true, or those on which it is false; never both."""

    condition: Expression
    holds: bool

    @property
    def column(self) -> ColumnRef | None:
        """The one column it reads, or None when it reads several."""
        columns = columns_of(self.condition)
        return next(iter(columns)) if len(columns) == 1 else None


@dataclass(frozen=True)
class Both:
    """The rows in every part."""

    parts: tuple["Formula", ...]


@dataclass(frozen=True)
class Either:
    """The rows in at least one part."""

    parts: tuple["Formula", ...]


Formula = Atom | Both | Either
ALL = Both(())
NONE = Either(())


def formula(predicate: Expression, holds: bool = True) -> Formula:
    """The rows on which a predicate is true (or false, which is not the rest of them)."""
    if isinstance(predicate, Literal):
        return ALL if predicate.value is holds else NONE
    if isinstance(predicate, Call):
        if predicate.operation is Operation.NOT:
            return formula(predicate.arguments[0], not holds)
        if predicate.operation in (Operation.AND, Operation.OR):
            parts = tuple(formula(each, holds) for each in predicate.arguments)
            conjunctive = (predicate.operation is Operation.AND) is holds
            return Both(parts) if conjunctive else Either(parts)
    return Atom(predicate, holds)


def atoms_of(found: Formula) -> Iterator[Atom]:
    """Every atom of a formula."""
    if isinstance(found, Atom):
        yield found
    else:
        for part in found.parts:
            yield from atoms_of(part)


Subject = ColumnRef | Atom
"""What a condition is about: one column, or an atom of several columns by itself."""

Term = dict[Subject, Formula]
"""A conjunction: a condition for each subject."""


def subject(found: Formula) -> Subject | None:
    """What a whole formula is about, or None when it is about several things."""
    subjects = {atom.column or atom for atom in atoms_of(found)}
    return next(iter(subjects)) if len(subjects) == 1 else None


def terms(found: Formula, most: int = MOST_TERMS) -> list[Term] | None:
    """The formula as a union of conjunctions, or None when it takes too many."""
    about = subject(found)
    if about is not None:
        return [{about: found}]
    if isinstance(found, Atom):
        return [{found: found}]
    if isinstance(found, Either):
        return _union(found, most)
    return _intersection(found, most)


def _union(found: Either, most: int) -> list[Term] | None:
    branches: list[Term] = []
    for part in _gathered(found.parts, Either):
        sub = terms(part, most)
        if sub is None or len(branches) + len(sub) > most:
            return None
        branches += sub
    return branches


def _intersection(found: Both, most: int) -> list[Term] | None:
    choices: list[list[Term]] = []
    size = 1
    for part in _gathered(found.parts, Both):
        sub = terms(part, most)
        size *= len(sub) if sub is not None else most + 1
        if sub is None or size > most:
            return None
        choices.append(sub)
    return [_merged(chosen) for chosen in product(*choices)]


def _gathered(parts: tuple[Formula, ...], kind: type[Both] | type[Either]) -> list[Formula]:
    """The parts, with those about the same column joined into one."""
    by_subject: dict[Subject, list[Formula]] = defaultdict(list)
    mixed: list[Formula] = []
    for part in parts:
        about = subject(part)
        if about is None:
            mixed.append(part)
        else:
            by_subject[about].append(part)
    joined = [group[0] if len(group) == 1 else kind(tuple(group)) for group in by_subject.values()]
    return [*joined, *mixed]


def _merged(chosen: tuple[Term, ...]) -> Term:
    found: dict[Subject, list[Formula]] = defaultdict(list)
    for term in chosen:
        for about, condition in term.items():
            found[about].append(condition)
    return {
        about: group[0] if len(group) == 1 else Both(tuple(group)) for about, group in found.items()
    }
