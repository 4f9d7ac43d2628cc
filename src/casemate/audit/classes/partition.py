"""Classes of units that no fact tells apart, and what each of them may be.

Two units are of one class where every fact counts them in the same way and the same was known of
them. Exchanging the values of two units of a class leads to a table that gives the same answers, so
whoever shares a class with somebody of another value is not exposed.

Exact      Classes are found by random keys and then compared entry by entry: a collision would be
           noticed, and is then resolved by sorting.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.classes.facts import LinearFact, NumberFacts, OrderFact
from casemate.published import Range
from casemate.query.records import Cut

KEY_SEED = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False, repr=False)
class ClassRow:
    """A linear fact over classes: the coefficients of the total and of the number of values.

    `past` are those of how many values are past each of the fact's cuts.
    """

    fact: LinearFact
    classes: NDArray[np.int64]
    alpha: tuple[int, ...]
    beta: tuple[int, ...]
    past: tuple[tuple[Cut, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class ClassOrder:
    """An extreme or a median over classes, of which each unit counts so many times."""

    fact: OrderFact
    classes: NDArray[np.int64]
    times: NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Classes:
    """The classes of some facts: their units, what was known of them, and facts in their terms."""

    facts: NumberFacts
    label: NDArray[np.int64]  # the class of each unit, -1 where nothing was published about it
    order: NDArray[np.int64]  # the units, class by class
    start: NDArray[np.int64]
    rows: tuple[ClassRow, ...]
    orders: tuple[ClassOrder, ...]
    compared: tuple[ClassRow, ...]
    priors: tuple[Range, ...]
    may_miss: NDArray[np.bool_]

    @classmethod
    def of(cls, facts: NumberFacts) -> "Classes":
        """The classes of all units that anything was published about."""
        label = _labels(facts)
        order = facts.asked[np.argsort(label, kind="stable")]
        count = int(label.max(initial=-1)) + 1
        start = np.searchsorted(np.sort(label), np.arange(count + 1))
        place = np.full(len(facts.present), -1, np.int64)
        place[facts.asked] = label
        rows = tuple(_class_row(fact, place) for fact in facts.linear)
        orders = tuple(_class_order(fact, place) for fact in facts.order)
        compared = tuple(_class_row(fact, place) for fact in facts.compared)
        first = order[start[:-1]]
        priors = [facts.priors[which] for which in facts.prior[first].tolist()]
        return cls(
            facts,
            place,
            order,
            start,
            rows,
            orders,
            compared,
            tuple(priors),
            facts.may_miss[first],
        )

    def __len__(self) -> int:
        return len(self.start) - 1

    def members(self, which: int) -> NDArray[np.int64]:
        """The units of a class."""
        return self.order[self.start[which] : self.start[which + 1]]

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """How many units each class has."""
        return np.diff(self.start)

    @cached_property
    def there(self) -> NDArray[np.int64]:
        """How many of them have a value."""
        return _reduce(np.add, self.facts.present[self.order].astype(np.int64), self.start)

    @cached_property
    def total(self) -> list[Fraction]:
        """What the values of each class add up to."""
        numbers = np.where(self.facts.present, self.facts.number, 0)[self.order]
        largest = max(abs(int(numbers.min(initial=0))), abs(int(numbers.max(initial=0))))
        if largest * max(1, len(numbers)) >= 2**62:
            numbers = numbers.astype(object)
        sums = _reduce(np.add, numbers, self.start).tolist()
        return [Fraction(int(each), self.facts.scale) for each in sums]

    @cached_property
    def constant(self) -> NDArray[np.bool_]:
        """Whether all units of a class are missing, or all have the same value."""
        numbers = self.facts.number[self.order]
        same = _reduce(np.minimum, numbers, self.start) == _reduce(np.maximum, numbers, self.start)
        found: NDArray[np.bool_] = (self.there == 0) | ((self.there == self.size) & same)
        return found

    def value(self, which: int) -> Fraction | None:
        """The value of the first unit of a class."""
        return self.facts.value(int(self.order[self.start[which]]))

    @cached_property
    def in_rows(self) -> list[list[tuple[int, int, int]]]:
        """The linear facts that each class is in, with its two coefficients there."""
        found: list[list[tuple[int, int, int]]] = [[] for _ in range(len(self))]
        for number, row in enumerate(self.rows):
            for which, alpha, beta in zip(row.classes.tolist(), row.alpha, row.beta, strict=True):
                found[which].append((number, alpha, beta))
        return found

    @cached_property
    def equations(self) -> tuple[ClassRow, ...]:
        """The linear facts, those with cuts last."""
        return (*self.rows, *self.compared)

    @cached_property
    def cuts(self) -> list[set[Cut]]:
        """The cuts that the values of each class are compared with."""
        found: list[set[Cut]] = [set() for _ in range(len(self))]
        for row in self.compared:
            for cut, factors in row.past:
                for which in row.classes[np.array(factors, object) != 0].tolist():
                    found[which].add(cut)
        return found

    @cached_property
    def in_orders(self) -> list[list[int]]:
        """The extremes and medians that each class is in."""
        found: list[list[int]] = [[] for _ in range(len(self))]
        for number, each in enumerate(self.orders):
            for which in each.classes.tolist():
                found[which].append(number)
        return found


def _reduce(operation: np.ufunc, values: NDArray[Any], start: NDArray[np.int64]) -> NDArray[Any]:
    """One number for each class; every class has a unit."""
    if len(start) < 2:
        return values[:0]
    found: NDArray[Any] = operation.reduceat(values, start[:-1])
    return found


def _class_row(fact: LinearFact, place: NDArray[np.int64]) -> ClassRow:
    classes, first = np.unique(place[fact.unit], return_index=True)
    alpha, beta, *past = (
        tuple(int(each) for each in side[first].tolist())
        for side in (fact.alpha, fact.beta, *(factors for _, factors in fact.cuts))
    )
    cuts = tuple((cut, each) for (cut, _), each in zip(fact.cuts, past, strict=True))
    return ClassRow(fact, classes, alpha, beta, cuts)


def _class_order(fact: OrderFact, place: NDArray[np.int64]) -> ClassOrder:
    classes, first = np.unique(place[fact.unit], return_index=True)
    return ClassOrder(fact, classes, fact.times[first])


# Which units are alike ----------------------------------------------------------------------------


def _labels(facts: NumberFacts) -> NDArray[np.int64]:
    """The class of each unit that is asked about, in their order."""
    unit, token = _entries(facts)
    order = np.lexsort((token, unit))
    unit, token = unit[order], token[order]
    place = np.searchsorted(facts.asked, unit)
    start = np.searchsorted(place, np.arange(len(facts.asked) + 1))
    key = _keys(token, start)
    _, first, label = np.unique(key, return_index=True, return_inverse=True)
    if _alike(token, start, first[label]):
        return label.astype(np.int64)
    signatures: dict[bytes, int] = {}
    parts = (token[a:b].tobytes() for a, b in pairwise(start.tolist()))
    exact = [signatures.setdefault(each, len(signatures)) for each in parts]
    return np.array(exact, np.int64)


def _entries(facts: NumberFacts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What is said of units, each thing with a number of its own."""
    units, tokens, used = [facts.asked], [facts.prior[facts.asked]], len(facts.priors)
    units.append(facts.asked)
    tokens.append(used + facts.may_miss[facts.asked].astype(np.int64))
    used += 2
    for fact in facts.equations:
        for side in (_pairs(fact), *(factors for _, factors in fact.cuts)):
            _, code = np.unique(side, return_inverse=True)
            units.append(fact.unit)
            tokens.append(used + code.astype(np.int64))
            used += int(code.max(initial=-1)) + 1
    for each in facts.order:
        units.append(each.unit)
        times, code = np.unique(each.times, return_inverse=True)
        tokens.append(used + code.astype(np.int64))
        used += len(times)
    return np.concatenate(units), np.concatenate(tokens)


def _pairs(fact: LinearFact) -> NDArray[Any]:
    """The two coefficients of each unit as one sortable thing."""
    if object not in (fact.alpha.dtype, fact.beta.dtype):
        kind = np.dtype([("alpha", np.int64), ("beta", np.int64)])
        pairs = np.empty(len(fact.unit), kind)
        pairs["alpha"], pairs["beta"] = fact.alpha, fact.beta
        return pairs
    both = zip(fact.alpha.tolist(), fact.beta.tolist(), strict=True)
    return np.array([f"{alpha} {beta}" for alpha, beta in both], str)


def _keys(token: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A key for each unit that its tokens decide."""
    mixed = (token.astype(np.uint64) + np.uint64(1)) * np.uint64(KEY_SEED)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    return np.asarray(_reduce(np.add, mixed, start), np.uint64)


def _alike(
    token: NDArray[np.int64], start: NDArray[np.int64], representative: NDArray[np.int64]
) -> bool:
    """Whether every unit has the tokens of the unit that stands for its class."""
    lengths = np.diff(start)
    if not np.array_equal(lengths, lengths[representative]):
        return False
    offset = np.arange(len(token)) - np.repeat(start[:-1], lengths)
    return np.array_equal(token, token[np.repeat(start[representative], lengths) + offset])
