"""Predicted errors of every number that a question asks for, strategy by strategy.

Unit       An error is counted in people: for a count they are people, for a sum it is divided by
           the most that one person can move it, as the gate does.
Per answer One draw of noise for each number, all numbers of a statement sharing what the statement
           may cost. A person is in one group of a GROUP BY, so all groups cost what one does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from casemate.answer.asked import LARGEST_SHOWN, Asked, Linear
from casemate.answer.predicted import LAPLACE, NORMAL, Shape, largest
from casemate.answer.predicted_tables import NoisyTables
from casemate.answer.relation import Relation
from casemate.surrogate.product import Floats


@dataclass(frozen=True, eq=False)
class Errors:
    """The scale of the error of each number, by question, and the law they have."""

    scales: tuple[Floats, ...]
    shape: Shape = NORMAL

    @property
    def typical(self) -> Floats:
        """The mean error of each question's numbers."""
        return np.array([self.shape.mean * float(each.mean()) for each in self.scales])

    @property
    def mean(self) -> float:
        """The mean over the questions."""
        return float(self.typical.mean())

    def largest(self, times: float) -> float:
        """The largest error, if each question stands for so many."""
        return largest(self.shape, np.concatenate(self.scales), times)

    def proven(self, confidence: float, questions: Sequence[Asked]) -> float:
        """The largest half-width of an interval around noise of this size."""
        widths = [
            self.shape.quantile(1 - (1 - confidence) / asked.together) * float(scales.max())
            for asked, scales in zip(questions, self.scales, strict=True)
        ]
        return max(widths)


# Noise on every answer ------------------------------------------------------------------------


def gaussian_answers(questions: Sequence[Asked], relation: Relation, deviation: float) -> Errors:
    """Normal noise of this deviation to one sensitivity, for a whole statement."""
    scales = []
    for asked in questions:
        moved = [_moved(part, relation, 2) for part in asked.parts]
        share = math.sqrt(len(asked.parts))  # of rho, for each part
        scales.append(_by_cell(asked, [deviation * share * each for each in moved]))
    return Errors(tuple(scales))


def laplace_answers(
    questions: Sequence[Asked], relation: Relation, scale: float, *, pure: bool
) -> Errors:
    """Laplace noise of this scale to one sensitivity; pure budgets add up epsilon, others rho."""
    scales = []
    for asked in questions:
        moved = [_moved(part, relation, 1) for part in asked.parts]
        share = len(asked.parts) if pure else math.sqrt(len(asked.parts))
        scales.append(_by_cell(asked, [scale * share * each for each in moved]))
    return Errors(tuple(scales), LAPLACE)


def _by_cell(asked: Asked, sizes: Sequence[float]) -> Floats:
    counts = [len(part.cells) for part in asked.parts]
    return np.repeat(np.array(sizes), counts)


def _moved(part: Linear, relation: Relation, norm: int) -> float:
    """How far a person moves all cells of a part together, over how far one of them."""
    if len(part.cells) == 1:
        return 1.0
    together = float(_overlap(part) ** (1 / norm))
    if not relation.exchanged:
        return together
    most = relation.rows * max(abs(end) for end in part.span)
    left_and_joined = 2 ** (1 / norm) * most / part.sensitivity(relation)
    return float(max(1.0, together * left_and_joined))


def _overlap(part: Linear) -> float:
    """In how many cells of a part a row can be; groups are apart, and running totals are not."""
    scope = tuple(sorted({a for product in part.products for a in product.scope}))
    sizes = [part.products[0].shape[a] for a in scope]
    if not scope or math.prod(sizes) > LARGEST_SHOWN:
        return 1.0
    held = [np.any([each.over(scope) != 0 for each in cell], axis=0) for cell in part.cells if cell]
    return float(max(1, np.sum(held, axis=0).max()))


# Tables ---------------------------------------------------------------------------------------


def fitted_answers(questions: Sequence[Asked], relation: Relation, tables: NoisyTables) -> Errors:
    """The noise of tables in the answers of the stand-in that is fitted to them."""
    found = []
    for asked in questions:
        cells = [
            tables.fit * tables.deviation(cell) / part.sensitivity(relation)
            for part in asked.parts
            for cell in part.cells
        ]
        found.append(np.array(cells))
    return Errors(tuple(found))


def read_answers(
    questions: Sequence[Asked], relation: Relation, tables: NoisyTables
) -> Errors | None:
    """The noise in answers that are read off one table each; None where one is in none."""
    if not all(tables.holds(asked.scope) for asked in questions):
        return None
    found = []
    for asked in questions:
        cells = [
            (tables.reading(cell) or 0.0) / part.sensitivity(relation)
            for part in asked.parts
            for cell in part.cells
        ]
        found.append(np.array(cells))
    return Errors(tuple(found))
