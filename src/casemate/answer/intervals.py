"""What is proven of each number of an answer, at a confidence that is stated beforehand.

Easy       Everything within what the gate lets pass, times how far a person moves the part: all
           cells of the statement at once, because the gate compared the largest deviation.
Measured   Each cell within the quantile of its own noise; `GridQuestion.together` cells at once.
Session    All answers of a dataset at once: half of the chance of a failure for easy answers, half
           for measured ones, of which the j-th may use 1/(2 j^2).
docs/derivations/answer_intervals.md has the proofs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from casemate.answer.schedule import GateSchedule, Holds, easy_interval
from casemate.grid import Estimate, Floats, GridQuestion, LinearCells, MeasuredTable, Relation
from casemate.privacy.noise import Law, half_width, variance

Parts = tuple[tuple[Estimate, ...], ...]


@dataclass(frozen=True)
class FailureChances:
    """The chances with which one cell of a measured answer may fail: alone, and in the session."""

    alone: float
    session: float

    @classmethod
    def of(cls, asked: GridQuestion, confidence: float, ordinal: int) -> "FailureChances":
        """For the j-th measured answer, j = 1, 2, 3, ..."""
        cells = sum(len(part.cells) for part in asked.parts)
        session = (1 - confidence) / 2 / (2 * ordinal**2) / cells
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
) -> Parts:
    """The stand-in's answers to question number `at`, which the gate let pass."""
    alone = easy_interval(gate, at, confidence, Holds.ALONE)
    session = easy_interval(gate, at, (1 + confidence) / 2, Holds.TOGETHER)
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
        )
        for value, centre, error in zip(
            values.tolist(), centres.tolist(), errors.tolist(), strict=True
        )
    )


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
    return Estimate(
        reading, reading - alone, reading + alone, error, reading - session, reading + session
    )


def _least(part: LinearCells) -> float:
    """What no cell of a part can be below."""
    return 0.0 if part.span[0] >= 0 else -np.inf
