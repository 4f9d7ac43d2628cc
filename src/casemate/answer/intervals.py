"""What is proven of each number of an answer, at a confidence that is stated beforehand.

Tables     What the tables of the start prove: all numbers of all answers at once. Numbers that were
           declared beforehand: each by itself.
Easy       Everything within what the gate lets pass, times how far a person moves the part: all
           cells of the statement at once, because the gate compared the largest deviation.
Measured   Each cell within the quantile of its own noise; `GridQuestion.together` cells at once.
Mixed      Where the gate answers a statement of which tables prove some numbers better, each of
           the two has half of the chance of a failure; which numbers those are is public.
Session    All answers of a dataset at once: half of the chance of a failure for tables, a quarter
           for easy answers, and one for measured ones, of which the j-th may use 1/(2 j^2).
docs/derivations/answer_intervals.md and measured_proofs.md have the proofs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from casemate.answer.schedule import GateSchedule, easy_interval
from casemate.answer.table_proofs import ProvenNumber, TableProofs
from casemate.grid import (
    Estimate,
    Floats,
    GridQuestion,
    LinearCells,
    MeasuredTable,
    Product,
    ProofSource,
    Relation,
)
from casemate.privacy.noise import Law, half_width, variance

Parts = tuple[tuple[Estimate, ...], ...]

SESSION_TABLES, SESSION_GATE, SESSION_MEASURED = 1 / 2, 1 / 4, 1 / 4
"""Of the chance that anything proven in a session is wrong."""

QUOTIENT_ALONE = 3 / 4
"""Of the chance of a declared mean or share: for the quotient itself, which is the narrower proof.
The rest is for the cells that it is made of, which bound it where the quotient has no ends."""

MIXED_TABLES = 1 / 2
"""Of the chance, for tables in an answer that the gate let pass; the rest is the gate's."""


@dataclass(frozen=True)
class FailureChances:
    """The chances with which one cell of a measured answer may fail: alone, and in the session."""

    alone: float
    session: float

    @classmethod
    def of(cls, asked: GridQuestion, confidence: float, ordinal: int) -> "FailureChances":
        """For the j-th measured answer, j = 1, 2, 3, ..."""
        cells = sum(len(part.cells) for part in asked.parts)
        session = (1 - confidence) * SESSION_MEASURED / (2 * ordinal**2) / cells
        return cls((1 - confidence) / asked.together, session)


def easy_estimates(
    asked: GridQuestion,
    values: Sequence[Floats],
    errors: Sequence[Floats],
    *,
    gate: GateSchedule,
    at: int,
    relation: Relation,
    confidence: float,
    session_of: float | None = None,
) -> Parts:
    """The stand-in's answers to question number `at`, which the gate let pass.

    `confidence` is that of this answer, `session_of` that of all of them if it is another.
    """
    session_of = confidence if session_of is None else session_of
    alone = easy_interval(gate, at, confidence)
    session = easy_interval(gate, at, 1 - (1 - session_of) * SESSION_GATE)
    return tuple(
        _around(part, found, typical, *(_reach(w, part, relation) for w in (alone, session)))
        for part, found, typical in zip(asked.parts, values, errors, strict=True)
    )


def _reach(deviations: int, part: LinearCells, relation: Relation) -> int:
    """The largest difference in units whose deviation, rounded down, is no larger than this."""
    return (deviations + 1) * part.sensitivity(relation) - 1


def _around(
    part: LinearCells, values: Floats, errors: Floats, alone: int, session: int
) -> tuple[Estimate, ...]:
    centres = np.rint(values)  # what was compared
    least = _least(part)
    return tuple(
        Estimate(
            value,
            max(centre - alone, least),
            centre + alone,
            error,
            max(centre - session, least),
            centre + session,
            proof=ProofSource.GATE,
        )
        for value, centre, error in zip(
            values.tolist(), centres.tolist(), errors.tolist(), strict=True
        )
    )


# From the tables of the start -------------------------------------------------------------------


Numbers = Sequence[Sequence[ProvenNumber | None]]
"""What tables prove of each cell of each part; None where they prove nothing."""


def numbers_by_tables(asked: GridQuestion, proofs: TableProofs, chance: float) -> Numbers:
    """What tables prove of every number of a question, all but for `chance`."""
    return [[proofs.prove(cell, chance) for cell in part.cells] for part in asked.parts]


def chances_alone(asked: GridQuestion, chance: float) -> tuple[float, float]:
    """Of each cell that one shown number is made of to fail, and of its quotient besides."""
    quotient = QUOTIENT_ALONE if asked.ratios or asked.shares else 0.0
    return chance * (1 - quotient) / asked.together, chance * quotient


def numbers_alone(asked: GridQuestion, proofs: TableProofs, chance: float) -> Numbers:
    """What tables prove of each number that was named before anything was measured."""
    each, _ = chances_alone(asked, chance)
    return [[proofs.prove_alone(cell, each) for cell in part.cells] for part in asked.parts]


def nowhere_wider(alone: Numbers, together: Numbers) -> bool:
    """Whether every number is proven both ways, and by itself no wider: a public fact."""
    pairs = (zip(*each, strict=True) for each in zip(alone, together, strict=True))
    return all(
        one is not None and other is not None and one.width <= other.width
        for pair in pairs
        for one, other in pair
    )


def reach_of_gate(asked: GridQuestion, gate: GateSchedule, relation: Relation) -> list[int]:
    """How far off the first answer that a gate lets pass can be, in units of each part."""
    alone = easy_interval(gate, 1)
    return [_reach(alone, part, relation) for part in asked.parts]


def table_estimates(
    asked: GridQuestion,
    proven: Numbers,
    session: Numbers,
    values: Sequence[Floats],
    errors: Sequence[Floats],
) -> Parts:
    """The tables' own estimates, or the stand-in's values where those are usually closer.

    The stand-in is made of the same tables; its value is kept within what they prove.
    """
    found = []
    for place, part in enumerate(asked.parts):
        cells = zip(proven[place], session[place], values[place], errors[place], strict=True)
        found.append(
            tuple(
                bounded_by_tables(number, at_once, float(value), float(error), _least(part))
                for number, at_once, value, error in cells
                if number is not None and at_once is not None
            )
        )
    return tuple(found)


def bounded_by_tables(
    proven: ProvenNumber, session: ProvenNumber, value: float, error: float, least: float
) -> Estimate:
    """One number with the bounds that tables prove, nothing being below `least`."""
    bounds = [each.value + side * each.width for each in (proven, session) for side in (-1.0, 1.0)]
    lo, hi, first, last = (max(least, each) for each in bounds)
    found = Estimate(
        proven.value,
        lo,
        hi,
        proven.deviation,
        min(first, lo),
        max(last, hi),
        proof=ProofSource.TABLES,
    ).above(least)
    if error <= proven.deviation:
        return found.with_guess(value, error)
    return found


def mixed_estimates(
    asked: GridQuestion, easy: Parts, proofs: TableProofs, chance: float, session: float
) -> Parts:
    """What the gate let pass, within the bounds of tables too where those are narrower.

    Both hold at once, since each has its share of the chance.
    """
    return tuple(
        tuple(
            _within_tables(cell, passed, proofs, (chance, session), _least(part))
            for cell, passed in zip(part.cells, cells, strict=True)
        )
        for part, cells in zip(asked.parts, easy, strict=True)
    )


def tables_say_anything(asked: GridQuestion, proofs: TableProofs) -> bool:
    """Whether tables may bound any number of a question: a public fact."""
    return any(proofs.bounds_anything(cell) for part in asked.parts for cell in part.cells)


def _within_tables(
    cell: Sequence[Product],
    passed: Estimate,
    proofs: TableProofs,
    chances: tuple[float, float],
    least: float,
) -> Estimate:
    each = tuple(dict.fromkeys(chances))  # most often one
    number, *others = (proofs.prove(cell, chance) for chance in each)
    at_once = others[0] if others else number
    if number is not None and at_once is not None:
        error = math.inf if passed.error is None else passed.error
        other = bounded_by_tables(number, at_once, passed.value, error, least)
        return narrower(passed, other)
    ends, *more = (proofs.implied(cell, chance) for chance in each)
    all_ends = more[0] if more else ends
    if ends is None or all_ends is None:
        return passed
    return narrower(
        passed, Estimate(passed.value, *ends, passed.error, *all_ends, proof=ProofSource.IMPLIED)
    )


def narrower(one: Estimate, other: Estimate) -> Estimate:
    """The narrower of two estimates of one number, within the bounds of both.

    Bounds that exclude each other, of which one must be wrong, are left as they are.
    """
    ends = (one.lo, one.hi, other.lo, other.hi)
    if any(each is None for each in ends):
        return one
    first, last, low, high = (float(each) for each in ends if each is not None)
    found = other if high - low < last - first else one
    bounds = _common((first, last), (low, high))
    session = _common((one.session_lo, one.session_hi), (other.session_lo, other.session_hi))
    if bounds is not None:
        found = replace(found, lo=bounds[0], hi=bounds[1])
    if session is not None:
        found = replace(found, session_lo=session[0], session_hi=session[1])
    return replace(found, value=found.within(found.value))


def _common(
    one: tuple[float | None, float | None], other: tuple[float | None, float | None]
) -> tuple[float, float] | None:
    lows = [each[0] for each in (one, other) if each[0] is not None]
    highs = [each[1] for each in (one, other) if each[1] is not None]
    if len(lows) + len(highs) < 4 or max(lows) > min(highs):
        return None
    return max(lows), min(highs)


def measured_estimates(
    asked: GridQuestion,
    table: MeasuredTable,
    values: Sequence[Floats],
    errors: Sequence[Floats],
    level: FailureChances,
) -> Parts:
    """What a table that answers the question by itself says, or the stand-in that learnt from it.

    The stand-in's guess is taken where it is the closer one by its own account, and the table does
    not contradict it.
    """
    found = []
    for part, guesses, typical in zip(asked.parts, values, errors, strict=True):
        least = _least(part)
        cells = []
        for cell, guess, error in zip(part.cells, guesses, typical, strict=True):
            reading, weights = table.read(cell)
            bounds = noised_estimate(reading, table.law, weights, level).above(least)
            cells.append(_closer_estimate(bounds, float(guess), float(error)))
        found.append(tuple(cells))
    return tuple(found)


def _closer_estimate(reading: Estimate, guess: float, error: float) -> Estimate:
    closer = reading.error is None or error <= reading.error
    if closer and reading.with_guess(guess, error).value == guess:
        return reading.with_guess(guess, error)
    return reading


def noised_estimate(
    reading: float, law: Law | None, weights: Floats, level: FailureChances
) -> Estimate:
    """A number that was read with noise: so many times each of several draws."""
    shares = weights.ravel()[np.flatnonzero(weights)].astype(np.int64)
    alone, session = (
        0 if law is None or not shares.size else half_width(law, shares, 1 - chance)
        for chance in (level.alone, level.session)
    )
    error = math.sqrt(variance(law) * float((weights**2).sum()))
    bounds = (reading - alone, reading + alone, error, reading - session, reading + session)
    return Estimate(reading, *bounds, proof=ProofSource.NOISE)


def _least(part: LinearCells) -> float:
    """What no cell of a part can be below."""
    return 0.0 if part.span[0] >= 0 else -np.inf
