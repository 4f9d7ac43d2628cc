"""Look for proofs over classes: propagation of ranges first, multipliers of linear programs next.

What is found is a list of steps about units (`certificate`), and claimed only once the verifier has
accepted it.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.audit.classes.certificate import (
    Capped,
    ClassProof,
    CombinedFacts,
    OnlyAttainer,
    Secret,
    Step,
    sound_steps,
    verify,
)
from casemate.audit.classes.changes import FactCheck
from casemate.audit.classes.facts import NumberFacts
from casemate.audit.classes.model import ClassModel, Relaxation, WholeModel
from casemate.audit.classes.propagation import Propagation
from casemate.audit.classes.search import ClassStanding, Decisions, SecondTableSearch
from casemate.audit.least import least
from casemate.audit.time_limit import Clock
from casemate.exact import Certificate

INTEGER_PROGRAM_SECONDS = 3.0
"""The longest that one integer program may take."""


class ProofSearch:
    """Proofs for the classes that no second table was found for."""

    def __init__(
        self,
        decisions: Decisions,
        ranges: Propagation,
        check: FactCheck,
        clock: Clock,
        proofs: list[ClassProof],
    ) -> None:
        self._decisions, self._classes, self._clock = decisions, decisions.classes, clock
        self.ranges, self._check, self.proofs = ranges, check, proofs

    def by_propagation(self, clock: Clock) -> None:
        """Take what the ranges show already; classes with the same reasons share a proof."""
        found: dict[tuple[object, ...], list[int]] = {}
        ranges = self.ranges
        for which in self._decisions.open.tolist():
            if ranges.most[which] == 0:
                found.setdefault((None, ranges.because(("most", which))), []).append(which)
            elif ranges.least[which] == self._classes.size[which] and (
                ranges.low[which] is not None and ranges.low[which] == ranges.high[which]
            ):
                ends = (("low", which), ("high", which), ("least", which))
                found.setdefault((ranges.low[which], ranges.because(*ends)), []).append(which)
        for (value, reasons), which_classes in found.items():
            if clock.over:
                return
            steps = ranges.proof(reasons)  # type: ignore[arg-type]  # the steps behind the ends
            self._claim(which_classes, value, steps)  # type: ignore[arg-type]  # a number or None

    def _claim(
        self, which_classes: Sequence[int], value: Fraction | None, steps: tuple[Step, ...]
    ) -> bool:
        """Note a proof that the verifier accepts."""
        members = [self._classes.members(which) for which in which_classes]
        units = tuple(np.concatenate(members).tolist())
        proof = ClassProof(units, value, steps)
        if not verify(self._classes.facts, proof):
            return False
        self.proofs.append(proof)
        standing = ClassStanding.MISSING if value is None else ClassStanding.EXPOSED
        self._decisions.standing[list(which_classes)] = standing
        return True

    def by_rank(self, certificates: Mapping[int, Certificate]) -> None:
        """Take the units whose value follows by rank: a certificate has the multipliers."""
        number = {fact.row: place for place, fact in enumerate(self._classes.facts.linear)}
        for unit, certificate in certificates.items():
            if self._clock.over:
                return
            which = int(self._classes.label[unit])
            value = self._classes.facts.value(unit)
            if self._decisions.standing[which] != ClassStanding.OPEN or value is None:
                continue
            if not certificate.coefficients.keys() <= number.keys():
                continue  # of equations that are not all about this number alone
            weights = {
                number[row]: Fraction(weight, certificate.divisor)
                for row, weight in certificate.coefficients.items()
            }
            steps = tuple(
                CombinedFacts((unit,), "value", above, value, _signed(weights, above))
                for above in (False, True)
            )
            self._claim([which], value, steps)

    # Linear programs ------------------------------------------------------------------------------

    def by_multipliers(self, clock: Clock) -> None:
        """Prove the value of each class that is left, or that it has none, by linear programs."""
        if not len(self._decisions.open):
            return
        relaxation = Relaxation(ClassModel.of(self.ranges, self._check))
        for which in self._decisions.open.tolist():
            if clock.over:
                return
            value = self._classes.value(which)
            wanted = list(_wanted(value, bool(self._classes.may_miss[which])))
            found = [self._bound(relaxation, which, *each) for each in wanted]
            steps = [each for each in found if each is not None]
            if len(steps) == len(wanted):
                premises = frozenset[int]().union(*(self.ranges.premises(each) for each in steps))
                self._claim([which], value, (*self.ranges.proof(premises), *steps))

    def _bound(
        self, relaxation: "Relaxation", which: int, secret: Secret, above: bool
    ) -> CombinedFacts | None:
        """A step that proves the true total of a class to be the least, or the most (`above`)."""
        classes = self._classes
        deadline = time.monotonic() + max(0.0, self._clock.seconds_left)
        total = classes.total[which] if secret == "value" else Fraction(int(classes.there[which]))
        units = tuple(classes.members(which).tolist())
        column = which + (len(classes) if secret == "presence" else 0)
        for linear, attained in relaxation.multipliers(column, above, deadline):
            step = CombinedFacts(units, secret, above, total, linear, attained)
            before = self.ranges.proof(self.ranges.premises(step))
            if verify(classes.facts, ClassProof((), None, (*before, step))):
                return step
        return None

    # Second tables with other people at extremes --------------------------------------------------

    def by_whole_numbers(self, search: SecondTableSearch, clock: Clock) -> None:
        """Let an integer program say who could have extremes, and a value at all, instead.

        First with the same people having a value as in the truth, which is easier. Medians are
        not in the model, and hardly ever kept by what it says.
        """
        if any(each.fact.kind == "median" for each in self._classes.orders):
            return
        for as_there in (True, False):
            if len(self._decisions.open) and (as_there or self._classes.may_miss.any()):
                self._by_whole_numbers(search, clock, as_there=as_there)

    def _by_whole_numbers(self, search: SecondTableSearch, clock: Clock, *, as_there: bool) -> None:
        classes = self._classes
        numbers = classes.facts.number
        spread = Fraction(int(numbers.max() - numbers.min()) + 1, classes.facts.scale)
        model = ClassModel.of(self.ranges, self._check, spread, as_there=as_there)
        program = WholeModel(model)
        for which in self._decisions.open.tolist():
            value = classes.value(which)
            hidden = bool(classes.may_miss[which]) and not as_there
            for secret, above in () if value is None and as_there else _wanted(value, hidden):
                if clock.over or self._decisions.standing[which] != ClassStanding.OPEN:
                    break
                column = which + (len(classes) if secret == "presence" else 0)
                left = min(INTEGER_PROGRAM_SECONDS, clock.seconds_left)
                point = program.point(column, above, left)
                if point is not None:
                    tops, bottoms, there = self._counts(model, point)
                    search.at_extremes(which, -1.0 if above else 1.0, tops, bottoms, there)

    def _counts(
        self, model: ClassModel, point: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """How many of each class are at its ends in a point, and how many have a value."""
        counts, size = np.rint(point).astype(np.int64), len(self._classes)
        tops, bottoms = (
            _per_class(columns, counts, size) for columns in (model.tops, model.bottoms)
        )
        return tops, bottoms, self._classes.there + counts[size : 2 * size]


def _signed(weights: Mapping[int, Fraction], above: bool) -> dict[int, Fraction]:
    return {row: -weight if above else weight for row, weight in weights.items()}


def _per_class(columns: dict[int, int], counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    found = np.zeros(size, np.int64)
    for which, column in columns.items():
        found[which] = counts[column]
    return found


def _wanted(value: Fraction | None, may_miss: bool) -> Iterator[tuple[Secret, bool]]:
    """The bounds that together prove a value, or that there is none."""
    if value is None:
        yield "presence", True
        return
    if may_miss:
        yield "presence", False
    yield "value", False
    yield "value", True


# Shorter proofs -----------------------------------------------------------------------------------


UsedFact = tuple[str, int]
"""A linear fact or an order fact, by its number."""


def irreducible(facts: NumberFacts, proof: ClassProof, clock: Clock) -> ClassProof:
    """The proof without the statements, cells and steps that it can do without.

    What is left is as short as the time allows, and a proof in any case: one that there is no time
    for is given back as it is, without verifying it again.
    """
    if proof.is_searched or clock.over:
        return proof
    linear, order = proof.cells
    used: list[UsedFact] = [("linear", n) for n in linear] + [("order", n) for n in order]
    place = {each: getattr(facts, each[0])[each[1]].place for each in used}
    queries = sorted({each.query for each in place.values()})

    def proves(kept: Collection[UsedFact]) -> bool:
        return sound_steps(facts, proof, _steps_with(proof, kept)) is not None

    def of_queries(some: Collection[int]) -> list[UsedFact]:
        return [each for each in used if place[each].query in some]

    cells = of_queries(least(queries, lambda some: proves(of_queries(some)), clock))
    steps = _steps_with(proof, least(cells, proves, clock))
    fewest = least(steps, lambda some: sound_steps(facts, proof, some) is not None, clock)
    return replace(proof, steps=sound_steps(facts, proof, fewest) or proof.steps)


def _steps_with(proof: ClassProof, kept: Collection[UsedFact]) -> list[Step]:
    """The steps that can be tried with some of the facts that a proof uses."""
    found: list[Step] = []
    for step in proof.steps:
        if isinstance(step, CombinedFacts):
            linear = {n: w for n, w in step.linear.items() if ("linear", n) in kept}
            attained = {n: w for n, w in step.attained.items() if ("order", n) in kept}
            found.append(replace(step, linear=linear, attained=attained))
        elif isinstance(step, Capped | OnlyAttainer) and ("order", step.fact) in kept:
            found.append(step)
    return found
