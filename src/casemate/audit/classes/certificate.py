"""Proofs about one private number, and a verifier that knows nothing of how they were found.

A proof is a list of steps over units and facts, each a consequence of one published cell, or of a
few that are combined, and of the ranges that the steps before it left:

`Capped`         nobody is above a maximum, or below a minimum;
`OnlyAttainer`   all others stay away from an extreme, so this one has it;
`CombinedFacts`  published numbers times multipliers, and every unit at its best within its range,
                 bound what some units add up to (Lagrange multipliers: any will do, and the
                 right ones prove the most).

Guarantee  `verify` accepts only if, by exact arithmetic, every table that gives the cells used by
           the steps has the claimed value, or no value, at every unit of the claim.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from casemate.audit.classes.facts import NumberFacts, OrderFact
from casemate.exact import Bound

Secret = Literal["value", "presence"]


@dataclass(frozen=True)
class Capped:
    """Everybody in an extreme keeps to it."""

    fact: int


@dataclass(frozen=True)
class OnlyAttainer:
    """Of all in an extreme only this unit can have it."""

    fact: int
    unit: int


@dataclass(frozen=True, repr=False)
class CombinedFacts:
    """What some units, each once, add up to is at least `bound`, or with `above` at most.

    `linear` are multipliers of linear facts, `attained` of extremes.
    """

    units: tuple[int, ...]
    secret: Secret
    above: bool
    bound: Fraction
    linear: Mapping[int, Fraction]
    attained: Mapping[int, Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Searched:
    """No other table was found by a search over these facts: nothing that could be verified."""

    linear: tuple[int, ...]
    order: tuple[int, ...]


Step = Capped | OnlyAttainer | CombinedFacts | Searched


@dataclass(frozen=True, repr=False)
class ClassProof:
    """Steps that lead to a claim: these units have this value; None: they have none."""

    units: tuple[int, ...]
    value: Fraction | None
    steps: tuple[Step, ...]

    @property
    def is_searched(self) -> bool:
        """Whether the search itself is the only proof."""
        return any(isinstance(step, Searched) for step in self.steps)

    @property
    def cells(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The linear facts and the order facts that the steps use."""
        linear, order = set[int](), set[int]()
        for step in self.steps:
            if isinstance(step, Searched):
                linear.update(step.linear)
                order.update(step.order)
            elif isinstance(step, CombinedFacts):
                linear.update(step.linear)
                order.update(step.attained)
            else:
                order.add(step.fact)
        return tuple(sorted(linear)), tuple(sorted(order))


def verify(facts: NumberFacts, proof: ClassProof) -> bool:
    """Whether the steps prove the claim."""
    replay = _Replay(facts)
    return all(map(replay.take, proof.steps)) and replay.shows(proof)


def sound_steps(
    facts: NumberFacts, proof: ClassProof, steps: Iterable[Step]
) -> tuple[Step, ...] | None:
    """Those of some steps that can be made, if they prove the claim; else None."""
    replay = _Replay(facts)
    made = tuple(step for step in steps if replay.take(step))
    return made if replay.shows(proof) else None


@dataclass(frozen=True)
class _Left:
    """What is left of a unit: its range, and whether it surely has a value, or surely has none."""

    low: Bound
    high: Bound
    whole: bool
    there: bool
    gone: bool = False

    def reaches(self, fact: OrderFact) -> bool:
        """Whether it may have an extreme, or be in the middle of an odd number of values."""
        return (
            not self.gone
            and (self.high is None or self.high >= fact.low)
            and (self.low is None or self.low <= fact.high)
        )

    def below(self, bound: Fraction) -> "_Left":
        """No value above this."""
        end = Fraction(bound // 1) if self.whole else bound
        return replace(self, high=end if self.high is None else min(self.high, end))

    def above(self, bound: Fraction) -> "_Left":
        """No value below this."""
        end = Fraction(-(-bound // 1)) if self.whole else bound
        return replace(self, low=end if self.low is None else max(self.low, end))


_Term = tuple[Any, ...]
"""What a step says of a unit: None where it is named, a linear fact with two coefficients, or an
extreme."""

_NAMED: _Term = (None,)


class _Replay:
    """What the steps so far leave of every unit."""

    def __init__(self, facts: NumberFacts) -> None:
        self._facts = facts
        self._left: dict[int, _Left] = {}
        self._before: dict[tuple[int, bool], _Left] = {}  # any step

    def left(self, unit: int) -> _Left:
        """What is left of a unit."""
        if unit not in self._left:
            which, there = int(self._facts.prior[unit]), not self._facts.may_miss[unit]
            prior = self._facts.priors[which]
            fresh = _Left(prior.low, prior.high, prior.whole, there)
            self._left[unit] = self._before.setdefault((which, there), fresh)
        return self._left[unit]

    def _change(self, units: Iterable[int], change: Callable[[_Left], _Left]) -> None:
        """Change what is left of units; those that shared it share what it becomes."""
        made: dict[int, tuple[_Left, _Left]] = {}
        for unit in units:
            left = self.left(unit)
            if id(left) not in made:
                made[id(left)] = left, change(left)
            self._left[unit] = made[id(left)][1]

    def shows(self, proof: ClassProof) -> bool:
        """Whether what is left of the units is the claim."""
        left = map(self.left, proof.units)
        if proof.value is None:
            return all(each.gone for each in left)
        return all(each.there and each.low == proof.value == each.high for each in left)

    def take(self, step: Step) -> bool:
        """Follow one step, if it is one."""
        if isinstance(step, Capped):
            return self._cap(self._facts.order[step.fact])
        if isinstance(step, OnlyAttainer):
            return self._only(self._facts.order[step.fact], step.unit)
        return isinstance(step, CombinedFacts) and self._combine(step)

    def _cap(self, fact: OrderFact) -> bool:
        if fact.kind == "median":
            return False
        is_max = fact.kind == "max"
        self._change(
            fact.unit.tolist(),
            lambda left: left.below(fact.high) if is_max else left.above(fact.low),
        )
        return True

    def _only(self, fact: OrderFact, unit: int) -> bool:
        if fact.kind == "median" and not self._is_odd(fact):
            return False
        if [each for each in fact.unit.tolist() if self.left(each).reaches(fact)] != [unit]:
            return False
        having = self.left(unit).above(fact.low).below(fact.high)
        self._left[unit] = replace(having, there=True)
        return True

    def _is_odd(self, fact: OrderFact) -> bool:
        """Whether everybody knows that an odd number of values is there."""
        pairs = zip(map(self.left, fact.unit.tolist()), fact.times.tolist(), strict=True)
        known = [(left, times) for left, times in pairs if left.there or left.gone]
        counted = sum(times for left, times in known if not left.gone)
        return len(known) == len(fact.unit) and counted % 2 == 1

    # Multipliers ----------------------------------------------------------------------------------

    def _combine(self, step: CombinedFacts) -> bool:
        parts = list(self._parts(step))
        if any(part is None for part in parts):
            return False
        least = sum((part for part in parts if part is not None), Fraction(0))
        if least < (-step.bound if step.above else step.bound):
            return False
        if step.secret == "presence":
            self._count(step)
        else:
            self._narrow(step)
        return True

    def _parts(self, step: CombinedFacts) -> Iterator[Fraction | None]:
        """What facts and units add at least to the units' sum (with `above`, to less that sum).

        None for what has no end. Units with the same terms and the same range add the same.
        """
        terms: dict[int, list[_Term]] = {unit: [_NAMED] for unit in step.units}
        for number, weight in step.linear.items():
            fact = self._facts.linear[number]
            end = fact.low if weight > 0 else fact.high
            yield None if end is None or fact.cuts else weight * end
            entries = zip(fact.unit.tolist(), fact.alpha.tolist(), fact.beta.tolist(), strict=True)
            for unit, *coefficients in entries:
                terms.setdefault(unit, []).append((number, *coefficients))
        for number, weight in step.attained.items():
            extreme = self._facts.order[number]
            yield None if weight < 0 or extreme.kind == "median" else weight
            for unit in extreme.unit.tolist():
                terms.setdefault(unit, []).append((number,))
        alike: dict[tuple[int, tuple[_Term, ...]], list[int]] = {}
        for unit, own in terms.items():
            alike.setdefault((id(self.left(unit)), tuple(own)), []).append(unit)
        for (_, same), units in alike.items():
            least = self._least(self.left(units[0]), same, step)
            yield None if least is None else len(units) * least

    def _least(self, left: _Left, terms: tuple[_Term, ...], step: CombinedFacts) -> Fraction | None:
        """The least that a unit with these terms can add."""
        slope, offset, credits = Fraction(0), Fraction(0), list[_Credit]()
        named = -1 if step.above else 1
        for number, *coefficients in terms:
            if number is None:
                slope += named * (step.secret == "value")
                offset += named * (step.secret == "presence")
            elif coefficients:
                weight, (alpha, beta) = step.linear[number], coefficients
                slope, offset = slope - weight * alpha, offset - weight * beta
            else:
                credits.append((self._facts.order[number], step.attained[number]))
        return _least(left, slope, offset, credits)

    def _count(self, step: CombinedFacts) -> None:
        """So few of the units have a value that none has, or so many that all have."""
        if step.above and step.bound < 1:
            self._change(step.units, lambda left: replace(left, gone=True))
        elif not step.above and step.bound > len(step.units) - 1:
            self._change(step.units, lambda left: replace(left, there=True))

    def _narrow(self, step: CombinedFacts) -> None:
        """What a bound on a sum leaves to each of its units, the others as far as they go."""
        bound, above, units = step.bound, step.above, step.units
        if len(units) == 1 and (bound < 0 if above else bound > 0):
            self._left[units[0]] = replace(self.left(units[0]), there=True)  # else it is 0
        if not all(self.left(unit).there for unit in units):
            return
        ends = {u: self.left(u).low if above else self.left(u).high for u in units}
        endless = [unit for unit, end in ends.items() if end is None]
        if len(endless) > 1:
            return
        total = sum((end for end in ends.values() if end is not None), Fraction(0))
        for unit in endless or units:
            own = bound - (total - (ends[unit] or 0))
            left = self.left(unit)
            self._left[unit] = left.below(own) if above else left.above(own)


_Credit = tuple[OrderFact, Fraction]
"""An extreme, and what having it takes off."""


def _least(
    left: _Left, slope: Fraction, offset: Fraction, credits: Sequence[_Credit]
) -> Fraction | None:
    """The least that a unit can add, wherever it is in its range, or missing; None if no end.

    What it adds is linear between the ends of extremes, and less at these than beside them.
    """
    options = [] if left.there else [Fraction(0)]
    if not left.gone:
        if (left.low if slope > 0 else left.high) is None and slope:
            return None
        points = {end for end in (left.low, left.high) if end is not None}
        points.update(end for fact, _ in credits for end in (fact.low, fact.high))
        within = [x for x in points or {Fraction(0)} if _is_within(x, left.low, left.high)]
        options += [
            slope * x
            + offset
            - sum(weight for fact, weight in credits if fact.low <= x <= fact.high)
            for x in within
        ]
    return min(options, default=None)


def _is_within(value: Fraction, low: Bound, high: Bound) -> bool:
    return (low is None or low <= value) and (high is None or value <= high)
