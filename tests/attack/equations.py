"""Equations to solve: the hospital of the document, random subsets, and whole numbers in them."""

import numpy as np
from numpy.typing import ArrayLike

from casemate.attack.solvers.answer_loss import AnswerLaw
from casemate.exact import Floats, Rows, System


def stored(matrix: ArrayLike) -> Rows:
    """A matrix of whole numbers as stored equations."""
    return Rows.of(System.of(np.asarray(matrix).astype(int).tolist()))


HOSPITAL = stored([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]])
ANSWERS = np.array([32.1, 15.5, 11.4])
SHORTEST = np.array([5.7, 5.2, 15.5 / 3, 15.5 / 3, 5.7, 15.5 / 3])
HIGH = np.array([5.0, 10, 10, 10, 10, 10])


def subsets(rng: np.random.Generator, height: int, width: int) -> Floats:
    """Random halves of so many unknowns, a row for each."""
    return rng.integers(0, 2, (height, width)).astype(np.float64)


def bits(rng: np.random.Generator, width: int) -> Floats:
    return rng.integers(0, 2, width).astype(np.float64)


def loss(law: AnswerLaw, residuals: Floats) -> Floats:
    """The loss of each residual in spreads, written out."""
    size = np.abs(residuals)
    return {
        AnswerLaw.GAUSSIAN: size**2 / 2,
        AnswerLaw.LAPLACE: size,
        AnswerLaw.UNIFORM: np.maximum(0, size - 1 - 1e-9),
    }[law]
