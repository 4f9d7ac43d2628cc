"""Proofs about one private number, and a verifier that knows nothing of how they were found.

A proof is a list of steps over units and facts, each a consequence of one published cell, or of a
few that are combined, and of the ranges that the steps before it left:

`Capped`        nobody is above a maximum, or below a minimum;
`OnlyAttainer`  all others stay away from an extreme, so this one has it;
`Combined`      published numbers times multipliers, and every unit at its best within its range,
                bound what some units add up to (Lagrange multipliers: any will do, and the
                right ones prove the most);
`Cases`         a unit has an extreme or it has not, and either way the same follows, or nothing
                is possible.

Guarantee  `verify` accepts only if, by exact arithmetic, every table that gives the cells used by
           the steps has the claimed value, or no value, at every unit of the claim.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from casemate.audit.classes.facts import Facts, OrderFact
from casemate.exact import Bound
from casemate.published import Range

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
class Combined:
    """What some units add up to is at least `bound`, or with `above` at most.

    `linear` are multipliers of linear facts, `attained` of extremes and medians.
    """

    units: tuple[int, ...]
    secret: Secret
    above: bool
    bound: Fraction
    linear: Mapping[int, Fraction]
    attained: Mapping[int, Fraction] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Cases:
    """Either a unit does not have an extreme, or it has."""

    fact: int
    unit: int
    without: "Proof"
    having: "Proof"


@dataclass(frozen=True)
class Searched:
    """No other table was found by a search over these facts: nothing that could be verified."""

    linear: tuple[int, ...]
    order: tuple[int, ...]


Step = Capped | OnlyAttainer | Combined | Cases | Searched


@dataclass(frozen=True, repr=False)
class Proof:
    """Steps that lead to a claim: these units have this value; None: they have none.

    With `impossible` they lead to a contradiction, in a case that cannot be.
    """

    units: tuple[int, ...]
    value: Fraction | None
    steps: tuple[Step, ...]
    impossible: bool = False

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
            elif isinstance(step, Combined):
                linear.update(step.linear)
                order.update(step.attained)
            elif isinstance(step, Cases):
                order.add(step.fact)
                for case in (step.without, step.having):
                    more_linear, more_order = case.cells
                    linear.update(more_linear)
                    order.update(more_order)
            else:
                order.add(step.fact)
        return tuple(sorted(linear)), tuple(sorted(order))


def verify(facts: Facts, proof: Proof) -> bool:
    """Whether the steps prove the claim."""
    return _Replay(facts).proves(proof)


class _Replay:
    """What the steps so far leave of every unit's range."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._low: dict[int, Bound] = {}
        self._high: dict[int, Bound] = {}
        self._there: set[int] = set()  # surely have a value
        self._gone: set[int] = set()  # surely have none
        self._not_at: dict[int, set[int]] = {}  # extremes that a unit does not have
        self._impossible = False

    def _copy(self) -> "_Replay":
        other = _Replay(self._facts)
        other._low, other._high = dict(self._low), dict(self._high)
        other._there, other._gone = set(self._there), set(self._gone)
        other._not_at = {unit: set(each) for unit, each in self._not_at.items()}
        other._impossible = self._impossible
        return other

    def proves(self, proof: Proof) -> bool:
        """Whether the steps lead to the claim."""
        if not all(self._take(step, proof) for step in proof.steps):
            return False
        if self._impossible:
            return True
        if proof.impossible:
            return False
        return all(self._is_claimed(unit, proof.value) for unit in proof.units)

    def _is_claimed(self, unit: int, value: Fraction | None) -> bool:
        if value is None:
            return unit in self._gone
        return self._is_there(unit) and self.low(unit) == value == self.high(unit)

    def low(self, unit: int) -> Bound:
        """The least value of a unit that is there."""
        return self._low.get(unit, self._prior(unit).low)

    def high(self, unit: int) -> Bound:
        """The greatest value of a unit that is there."""
        return self._high.get(unit, self._prior(unit).high)

    def _prior(self, unit: int) -> Range:
        return self._facts.priors[int(self._facts.prior[unit])]

    def _is_there(self, unit: int) -> bool:
        return unit in self._there or not self._facts.may_miss[unit]

    def _take(self, step: Step, proof: Proof) -> bool:
        """Follow one step, if it is one."""
        if isinstance(step, Capped):
            return self._cap(self._facts.order[step.fact])
        if isinstance(step, OnlyAttainer):
            return self._only(step)
        if isinstance(step, Combined):
            return self._combine(step)
        return isinstance(step, Cases) and self._split(step, proof)

    def _cap(self, fact: OrderFact) -> bool:
        for unit in fact.unit.tolist():
            if fact.kind == "max":
                self._below(unit, fact.high)
            elif fact.kind == "min":
                self._above(unit, fact.low)
        return fact.kind != "median"

    def _below(self, unit: int, bound: Fraction) -> None:
        high = self.high(unit)
        self._high[unit] = bound if high is None else min(high, bound)

    def _above(self, unit: int, bound: Fraction) -> None:
        low = self.low(unit)
        self._low[unit] = bound if low is None else max(low, bound)

    def _attains(self, unit: int, fact: OrderFact) -> bool:
        """Whether a unit may have an extreme, or be in the middle of an odd number of values."""
        low, high = self.low(unit), self.high(unit)
        return unit not in self._gone and (
            (high is None or high >= fact.low) and (low is None or low <= fact.high)
        )

    def _only(self, step: OnlyAttainer) -> bool:
        fact = self._facts.order[step.fact]
        if fact.kind == "median" and not self._is_odd(fact):
            return False
        able = [
            unit
            for unit in fact.unit.tolist()
            if self._attains(unit, fact) and step.fact not in self._not_at.get(unit, ())
        ]
        if able != [step.unit]:
            return False
        self._have(step.unit, fact)
        return True

    def _is_odd(self, fact: OrderFact) -> bool:
        """Whether everybody knows that an odd number of values is there."""
        known = all(self._is_there(unit) or unit in self._gone for unit in fact.unit.tolist())
        counted = sum(
            times
            for unit, times in zip(fact.unit.tolist(), fact.times.tolist(), strict=True)
            if unit not in self._gone
        )
        return known and counted % 2 == 1

    # Multipliers ----------------------------------------------------------------------------------

    def _combine(self, step: Combined) -> bool:
        if len(set(step.units)) < len(step.units):
            return False  # whoever is named twice would be counted once
        bound = self._least(step)
        if bound is None or bound < (-step.bound if step.above else step.bound):
            return False
        self._conclude(step)
        return True

    def _least(self, step: Combined) -> Fraction | None:
        """The least that the units (with `above`, less them) add up to; None if that has no end."""
        slope, offset = dict[int, Fraction](), dict[int, Fraction]()
        for unit in step.units:
            (slope if step.secret == "value" else offset)[unit] = Fraction(-1 if step.above else 1)
        credits: dict[int, list[tuple[int, Fraction]]] = {}
        total = self._add_linear(step, slope, offset)
        for number, weight in step.attained.items():
            extreme = self._facts.order[number]
            if weight < 0 or extreme.kind == "median":
                return None
            total = None if total is None else total + weight
            for unit in extreme.unit.tolist():
                credits.setdefault(unit, []).append((number, weight))
        for unit in slope.keys() | offset.keys() | credits.keys():
            nothing = Fraction(0)
            own = slope.get(unit, nothing), offset.get(unit, nothing)
            best = self._best(unit, *own, credits.get(unit, ()))
            if best is None or total is None:
                return None
            total += best
        return total

    def _add_linear(
        self, step: Combined, slope: dict[int, Fraction], offset: dict[int, Fraction]
    ) -> Fraction | None:
        """Take the linear facts off what units add; what they come to at least, or None."""
        total = Fraction(0)
        for number, weight in step.linear.items():
            fact = self._facts.linear[number]
            end = fact.low if weight > 0 else fact.high
            if end is None:
                return None
            total += weight * end
            entries = zip(fact.unit.tolist(), fact.alpha.tolist(), fact.beta.tolist(), strict=True)
            for unit, alpha, beta in entries:
                slope[unit] = slope.get(unit, Fraction(0)) - weight * alpha
                offset[unit] = offset.get(unit, Fraction(0)) - weight * beta
        return total

    def _best(
        self, unit: int, slope: Fraction, offset: Fraction, credits: Iterable[tuple[int, Fraction]]
    ) -> Fraction | None:
        """The least that a unit can add, wherever it is in its range, or missing."""
        options = [] if self._is_there(unit) else [Fraction(0)]
        if unit not in self._gone:
            low, high = self.low(unit), self.high(unit)
            if low is not None and high is not None and low > high:
                # nobody has such a value: it is missing, if it can be
                self._impossible = self._impossible or self._is_there(unit)
                return Fraction(0)
            if (slope > 0 and low is None) or (slope < 0 and high is None):
                return None
            points = {each for each in (low, high) if each is not None}
            for number, _ in credits:
                fact = self._facts.order[number]
                points.update(
                    each
                    for each in (fact.low, fact.high)
                    if (low is None or low <= each) and (high is None or each <= high)
                )
            points = points or {Fraction(0)}
            if not slope:
                points.add(_between(low, high))
            options += [
                slope * point + offset - self._credit(unit, point, credits) for point in points
            ]
        return min(options, default=Fraction(0))

    def _credit(
        self, unit: int, point: Fraction, credits: Iterable[tuple[int, Fraction]]
    ) -> Fraction:
        """What having extremes takes off."""
        total = Fraction(0)
        for number, weight in credits:
            fact = self._facts.order[number]
            if fact.low <= point <= fact.high and number not in self._not_at.get(unit, ()):
                total += weight
        return total

    def _conclude(self, step: Combined) -> None:
        """What a bound on a sum says of each of its units."""
        count = len(step.units)
        if step.secret == "presence":
            if step.above and step.bound < 1:
                self._gone.update(step.units)
            elif not step.above and step.bound > count - 1:
                self._there.update(step.units)
            return
        if count == 1 and (step.bound < 0 if step.above else step.bound > 0):
            self._there.update(step.units)  # whoever is missing counts as 0
        if not all(map(self._is_there, step.units)):
            return
        ends = [self.low(unit) if step.above else self.high(unit) for unit in step.units]
        known = [end for end in ends if end is not None]
        for unit, own in zip(step.units, ends, strict=True):
            if len(known) < count and not (len(known) == count - 1 and own is None):
                continue
            others = sum(known, Fraction(0)) - (own if own is not None else 0)
            whole = self._prior(unit).whole
            bound = step.bound - others
            if step.above:
                self._below(unit, Fraction(bound // 1) if whole else bound)
            else:
                self._above(unit, Fraction(-(-bound // 1)) if whole else bound)

    # Cases ----------------------------------------------------------------------------------------

    def _split(self, step: Cases, proof: Proof) -> bool:
        """Either way the claim follows, or the case is impossible."""
        fact, unit = self._facts.order[step.fact], step.unit
        without, having = self._copy(), self._copy()
        without._not_at.setdefault(unit, set()).add(step.fact)
        having._have(unit, fact)
        if not all(_serves(each, proof) for each in (step.without, step.having)):
            return False
        if not (without.proves(step.without) and having.proves(step.having)):
            return False
        for each in proof.units:
            self._claim(each, proof.value)
        self._impossible = self._impossible or proof.impossible
        return True

    def _have(self, unit: int, fact: OrderFact) -> None:
        self._there.add(unit)
        self._above(unit, fact.low)
        self._below(unit, fact.high)

    def _claim(self, unit: int, value: Fraction | None) -> None:
        if value is None:
            self._gone.add(unit)
        else:
            self._there.add(unit)
            self._low[unit] = self._high[unit] = value


def _serves(case: Proof, whole: Proof) -> bool:
    """Whether a proof in one case has the claim of the whole, or shows the case impossible."""
    if case.impossible or whole.impossible:
        return case.impossible
    return case.value == whole.value and set(whole.units) <= set(case.units)


def _between(low: Bound, high: Bound) -> Fraction:
    """Some number in a range."""
    if low is None or high is None:
        end = high if low is None else low
        return Fraction(0) if end is None else end
    return (low + high) / 2
