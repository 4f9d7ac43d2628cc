"""How far each unknown is from its estimate because of the noise of the answers.

Source     Source document 002, "Solving the equations": the estimate is M b with M = A^+, so that
           its covariance under independent noises of deviation 1 is M M'.
Method     Small systems: the inverse of A'A where it has one, else the singular values of A, with
           directions below a tolerance left out. Large ones: noises of +1 and -1 are drawn, and
           least squares shows what they do to the estimate.
Accuracy   Small: to rounding. Large: a deviation is estimated from up to `MOST_DRAWS` draws, to
           about 1/sqrt(2 MOST_DRAWS) of itself (12 %), and `freedom` says so: an interval by
           Student's law with that freedom is wider by 3 % and still covers at its level. Huge
           systems get 4 draws, and intervals that are wider by 30 %.
Identified An unknown is, if no direction that the equations do not see moves it. Large systems are
           asked to find two random points again; where they do not, within the steps that their
           size allows, they see it too weakly.
"""

from dataclasses import dataclass

import numpy as np

from casemate.attack.reconstruct.problem import Flags, Standard
from casemate.attack.solvers.least_squares import least_squares
from casemate.exact import Floats, Rows

MOST_EXACT = 4_500
"""Wider systems are drawn, not factorised."""

MOST_WORK = 4e11
"""So are those whose height times their squared width is more."""

MOST_CELLS = 2.5e8
"""And those whose matrix has more cells than this (2 GB)."""

MOST_SHARES = 3e10
"""Above this, shares of single answers are drawn too."""

MOST_SINGULAR = 1_200
"""Larger systems without an inverse go by the eigenvectors of A'A, half as precise."""

MOST_CONDITION = 1e10
"""An inverse of A'A with a larger condition number is not trusted."""

WEAK_SINGULAR = 1e-10
WEAK_EIGEN = 1e-11
"""Directions that the equations see less than this, beside the strongest, are not seen."""

MOST_UNSEEN_SHARE = 1e-7
"""The squared share of unseen directions that an identified unknown may have: rounding."""

LEAST_DRAWS, MOST_DRAWS = 4, 32
SHARE_DRAWS, ENOUGH_DRAWS = 256, 16
ONE_ANSWER_KURTOSIS_GAP = 1e-4
IDENTIFICATION_PROBES = 2
MOST_PROBE_ERROR = 1e-3
ESTIMATE_TOLERANCE, DRAW_TOLERANCE = 1e-8, 1e-4
LEAST_STEPS, MOST_STEPS = 100, 3_000
MOST_ENTRIES = 3e10
"""Entries that all draws together may read, about a minute; fewer draws are made where they would
read more, down to the least."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """For each free unknown its estimate, and how the noises of the answers move it.

    `variance` is in units of the noise of an answer of spread 1; `concentration` is the sum of the
    squared shares that the answers have in it. `rank` is how many independent equations there are,
    and `squares` what they leave: the sum of squared residuals. `freedom` is how many draws stand
    behind each variance: infinite where it was computed.
    """

    estimate: Floats
    variance: Floats
    concentration: Floats
    identified: Flags
    rank: float
    squares: float
    freedom: Floats


def covariance(standard: Standard, random: np.random.Generator) -> Covariance:
    """The estimate of least squares and its law, computed or drawn, as the size allows."""
    height, width = standard.height, standard.width
    small = height * width**2 <= MOST_WORK and height * width <= MOST_CELLS
    cheap = isinstance(standard.equations, Rows) or width <= MOST_SINGULAR
    if width <= MOST_EXACT and small and cheap:
        return factorised_covariance(standard, random)
    return sampled_covariance(standard, random)


def factorised_covariance(standard: Standard, random: np.random.Generator) -> Covariance:
    """The estimate and its law by factorisation."""
    matrix, target = standard.dense(), standard.target
    inverse, identified, rank = _inverse(matrix)
    estimate = inverse @ (matrix.T @ target)
    estimate += inverse @ (matrix.T @ (target - matrix @ estimate))  # once more, for the rounding
    left = target - matrix @ estimate
    variance = np.maximum(np.diag(inverse), 0.0)
    concentration = _concentration(matrix, inverse, random)
    freedom = np.full(standard.width, np.inf)
    squares = float(left @ left)
    return Covariance(estimate, variance, concentration, identified, rank, squares, freedom)


def _inverse(matrix: Floats) -> tuple[Floats, Flags, float]:
    """(A'A)^+ as far as it matters for identified unknowns, which those are, and the rank."""
    height, width = matrix.shape
    if height >= width:
        gram = matrix.T @ matrix
        found = _plain_inverse(gram)
        if found is not None:
            return found, np.ones(width, np.bool_), float(width)
    if min(height, width) <= MOST_SINGULAR:
        return _from_directions(*_singular(matrix))
    return _from_directions(*_eigen(matrix.T @ matrix))


def _plain_inverse(gram: Floats) -> Floats | None:
    """The inverse of A'A, unless it has none or rounding would drown it."""
    size = np.sqrt(np.diag(gram))
    if not len(size) or (size == 0).any():
        return None
    scaled = gram / size / size[:, None]
    try:
        np.linalg.cholesky(scaled)
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return None
    condition = np.linalg.norm(scaled) * np.linalg.norm(inverse)
    return None if condition > MOST_CONDITION else inverse / size / size[:, None]


def _singular(matrix: Floats) -> tuple[Floats, Floats]:
    """Squared singular values that count, and their directions as columns."""
    height, width = matrix.shape
    if height > 2 * width:
        matrix = np.asarray(np.linalg.qr(matrix, mode="r"))
    _, sizes, directions = np.linalg.svd(matrix, full_matrices=False)
    kept = sizes > WEAK_SINGULAR * max(sizes.max(initial=0.0), 1e-300)
    return sizes[kept] ** 2, directions[kept].T


def _eigen(gram: Floats) -> tuple[Floats, Floats]:
    sizes, directions = np.linalg.eigh(gram)
    kept = sizes > WEAK_EIGEN * max(sizes.max(initial=0.0), 1e-300)
    return sizes[kept], directions[:, kept]


def _from_directions(sizes: Floats, directions: Floats) -> tuple[Floats, Flags, float]:
    inverse = (directions / sizes) @ directions.T
    unseen = 1 - (directions**2).sum(axis=1)
    return inverse, unseen <= MOST_UNSEEN_SHARE, float(len(sizes))


def _concentration(matrix: Floats, inverse: Floats, random: np.random.Generator) -> Floats:
    """The sum of the squared shares of the answers in each variance."""
    height, width = matrix.shape
    if height * width**2 > MOST_SHARES:
        signs = random.choice([-1.0, 1.0], (height, SHARE_DRAWS))
        moved = inverse @ (matrix.T @ signs)
        return _drawn_concentration((moved**2).sum(1), (moved**4).sum(1), SHARE_DRAWS)
    fourth, block = np.zeros(width), max(1, int(2e7) // max(width, 1))
    for first in range(0, height, block):
        moved = matrix[first : first + block] @ inverse
        fourth += (moved**4).sum(axis=0)
    variance = np.maximum(np.diag(inverse), 1e-150)
    return np.asarray(np.clip(fourth / variance**2, 0.0, 1.0))


def _drawn_concentration(second: Floats, fourth: Floats, draws: int) -> Floats:
    """From sums of squares and of fourth powers: signs give a kurtosis of 3 - 2 concentration.

    Where one answer decides, all squares are the same, which no chance brings about; otherwise a
    few draws say nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(second > 0, draws * fourth / second**2, 1.0)
    found = np.clip((3 - (1 + 2 / draws) * ratio) / 2, 0.0, 1.0)  # the ratio is a little small
    return np.where(
        ratio < 1 + ONE_ANSWER_KURTOSIS_GAP, 1.0, found if draws >= ENOUGH_DRAWS else 0.0
    )


def sampled_covariance(standard: Standard, random: np.random.Generator) -> Covariance:
    """The estimate by least squares, and its law from what drawn noises do to it."""
    steps = int(np.clip(MOST_ENTRIES / standard.entries / 8, LEAST_STEPS, MOST_STEPS))
    solved = least_squares(standard, standard.target, tolerance=ESTIMATE_TOLERANCE, most=steps)
    left = standard.target - standard.times(solved.values)
    draws = _affordable(standard, solved.iterations)
    identified = _identified_by_probes(standard, random, steps)
    second, fourth, rank = np.zeros(standard.width), np.zeros(standard.width), 0.0
    for _ in range(draws):
        signs = random.choice([-1.0, 1.0], standard.height)
        moved = least_squares(standard, signs, tolerance=DRAW_TOLERANCE, most=steps).values
        second += moved**2
        fourth += moved**4
        rank += float(np.sum(standard.times(moved) ** 2)) / draws
    concentration = _drawn_concentration(second, fourth, draws)
    freedom = np.where(concentration < 1, float(draws), np.inf)
    variance, squares = second / draws, float(left @ left)
    return Covariance(solved.values, variance, concentration, identified, rank, squares, freedom)


def _affordable(standard: Standard, steps: int) -> int:
    """How many draws the size allows, if each takes so many steps."""
    cost = 2.0 * standard.entries * max(steps, 1)
    return int(np.clip(MOST_ENTRIES / cost, LEAST_DRAWS, MOST_DRAWS))


def _identified_by_probes(standard: Standard, random: np.random.Generator, steps: int) -> Flags:
    """Which unknowns of random points the equations find again."""
    identified = np.ones(standard.width, np.bool_)
    for _ in range(IDENTIFICATION_PROBES):
        hidden = random.standard_normal(standard.width)
        answers = standard.times(hidden)
        again = least_squares(standard, answers, tolerance=ESTIMATE_TOLERANCE, most=steps).values
        identified &= np.abs(again - hidden) <= MOST_PROBE_ERROR
    return identified
