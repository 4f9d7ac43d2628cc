"""The filter for symmetric noise whose median may be a poor place to ask: two humps, or an edge.

Method     First `scale_bank` finds the scale. Then some thresholds are explored: the offsets of a
           grid, on either side by a coin. How often noise exceeds each offset gives its density
           between them, and so the Fisher information of a bit there, f^2 / (F (1 - F)). When an
           offset is sure to carry much more than the median, thresholds go there, and bits are read
           by Newton's recursion. Errors of the measured chances are opposite on the two sides and
           cancel, which is what symmetry is needed for.
Guarantee  None that is proved, and none at all for noise that is not symmetric.
Cost       As the bank; then O(n^2) a query.
"""

import math

import numpy as np
from numpy.typing import NDArray

from casemate.attack.one_bit.oracle import AnswerTrail, DrawnStream, Floats, Trail
from casemate.attack.one_bit.scale_bank import ScaleBank
from casemate.attack.one_bit.square_root import (
    MEDIAN_SHRINK,
    Belief,
    FilterState,
    bit_moments,
    embed_belief,
    new_workspace,
    nuisance_part,
    potter_update,
    predict,
)
from casemate.compiled import compiled

OFFSETS = 12
FIRST_OFFSET_DEVIATIONS = 0.1
OFFSET_RATIO = 1.35  # of each offset to the one before


class OffsetGrid:
    """One belief and a grid of offsets, from the member that a bank of scales has kept."""

    settled = True

    def __init__(self, bank: ScaleBank) -> None:
        self.mean, self.root = bank.mean.copy(), bank.root.copy()
        self.nuisances, self._rho = bank.nuisances, bank.rho
        self._fit = np.array([*bank.slope, bank.scale])
        ratios = OFFSET_RATIO ** np.arange(OFFSETS, dtype=np.float64)
        offsets: Floats = bank.scale * FIRST_OFFSET_DEVIATIONS * ratios
        self._grid = offsets, np.zeros(OFFSETS), np.zeros(OFFSETS)
        self._progress = np.zeros(3, np.int64)

    @property
    def _state(self) -> "GridState":
        return self._grid, self._progress, self._fit

    @property
    def scale(self) -> float:
        """The deviation of the noise, as far as it is known."""
        return float(self._fit[2])

    @property
    def offset(self) -> float:
        """How far from the prediction it asks: 0 at the median."""
        return float(self._grid[0][self._progress[1]]) if self._progress[1] > 0 else 0.0

    def answer(self, x: Floats) -> float:
        """The mean of w . q, without the noise's own shift."""
        return float(self.mean[self.nuisances :] @ x[self.nuisances :])

    def threshold(self, x: Floats, draw: float) -> float:
        """At an offset of the grid, on a side chosen by chance, or at the median."""
        return float(self.mean @ x) + draw_offset(self._state, draw)

    def learn(self, x: Floats, _draw: float, threshold: float, above: bool) -> None:
        """Learn from a bit, and about the noise."""
        belief, workspace = (self.mean, self.root), new_workspace(self.mean)
        centre, variance = predict(belief, x, workspace)
        asked = variance, threshold - centre, self._rho
        update_belief(self._state, (belief, workspace), asked, above)

    def widen(self, mean: Floats, root: Floats) -> None:
        """Take in columns that have come since, as the prior has them."""
        self.mean, self.root = embed_belief(self.mean, self.root, mean, root)

    def follow(self, columns: Floats, noisy: Floats, draws: Floats, trail: AnswerTrail) -> int:
        """A whole stream, compiled."""
        filter_state = (self.mean, self.root), new_workspace(self.mean)
        model, stream = (self._rho, self.nuisances), (columns, noisy, draws)
        run_offset_grid(self._state, filter_state, model, stream, trail.arrays)
        return len(columns)

    def successor(self) -> "OffsetGrid":
        """Itself, for good."""
        return self


# Compiled steps on the grid ---------------------------------------------------------------------


Grid = tuple[Floats, Floats, Floats]
"""(offsets, counts, exceedances): growing distances from the prediction, how often each was asked
on either side, and how often the noise exceeded it."""

GridState = tuple[Grid, NDArray[np.int64], Floats]
"""(grid, progress, fit): progress is (queries so far, the offset in use, or 0 for the median,
whether any has been); fit is (rise, run, scale), the slope of the noise's cdf at 0 as in the bank.
"""

Asked = tuple[float, float, float]
"""(variance of w . q, how far the threshold is from the prediction, rho)."""

MOST_EXPLORED = 0.25  # part of the queries, as long as few have come
EXPLORED_PER_ROOT = 8.0  # then this over the root of their number
NEIGHBOUR_SHARE = 0.1  # part of the rest asked one offset further in, and as much further out
DENSITY_DOUBT_DEVIATIONS = 3.5  # by which a density is taken to be lower than it looks
EDGE_DENSITY_RATIO = 0.5  # a density that falls to less on the way out is at an edge
LEAST_GAIN_OVER_MEDIAN = 1.5  # in information, surely, before an offset is used
LEAST_GAIN_OVER_OFFSET = 1.3  # in information, surely, before it is left for another
QUERIES_BETWEEN_CHOICES = 500
SLOPE_DEVIATIONS = 0.35  # within which an offset measures the slope at 0
SAME_OFFSET_RATIO = 1e-6  # a threshold is at an offset when it is this near, as a part of it
NO_OFFSET = -1


@compiled
def exceedance(grid: Grid, index: int) -> float:
    """How often noise exceeds an offset, drawn a little towards one half."""
    _, counts, exceedances = grid
    return float((exceedances[index] + 0.5) / (counts[index] + 1.0))


@compiled
def mean_density(grid: Grid, inner: int, outer: int) -> tuple[float, float]:
    """The mean density of the noise between two offsets, and the deviation of that."""
    offsets, counts, _ = grid
    width = offsets[outer] - offsets[inner]
    p, q = exceedance(grid, inner), exceedance(grid, outer)
    variance = p * (1.0 - p) / (counts[inner] + 1.0) + q * (1.0 - q) / (counts[outer] + 1.0)
    return (p - q) / width, math.sqrt(variance) / width


@compiled
def information_lower_bound(grid: Grid, index: int, z: float) -> float:
    """The Fisher information of a bit at an offset, less z deviations; 0 where the density ends."""
    density, deviation = mean_density(grid, index - 1, index + 1)
    beyond, _ = mean_density(grid, index, index + 1)
    if beyond < EDGE_DENSITY_RATIO * density:
        return 0.0
    outside = exceedance(grid, index)
    return max(density - z * deviation, 0.0) ** 2 / (outside * (1.0 - outside))


@compiled
def choose_offset(state: GridState, belief: Belief) -> None:
    """Take the offset that surely carries most, if that is much more than the median carries."""
    grid, progress, fit = state
    median = MEDIAN_SHRINK / fit[2] ** 2
    before, best, most = progress[1], 0, LEAST_GAIN_OVER_MEDIAN * median
    if before > 0 and information_lower_bound(grid, before, 0.0) > median:
        best = before
        most = LEAST_GAIN_OVER_OFFSET * information_lower_bound(grid, before, 0.0)
    for index in range(1, grid[0].shape[0] - 1):
        value = information_lower_bound(grid, index, DENSITY_DOUBT_DEVIATIONS)
        if value > most and grid[0][index] > SLOPE_DEVIATIONS * fit[2]:  # else as the median
            best, most = index, value
    progress[1] = best
    if progress[2] == 0 and best > 0:
        progress[2] = 1
        belief[1][:] *= 2.0  # the median's scale was of little worth, and so was its certainty


@compiled
def draw_offset(state: GridState, draw: float) -> float:
    """How far from the prediction to ask, 0 being the median."""
    (offsets, _, _), progress, _ = state
    side = 1.0 if draw < 0.5 else -1.0
    draw = 2.0 * draw if draw < 0.5 else 2.0 * draw - 1.0
    part = min(MOST_EXPLORED, EXPLORED_PER_ROOT / math.sqrt(progress[0] + 1.0))
    if draw < part:
        return side * float(offsets[int(draw / part * offsets.shape[0])])
    if progress[1] == 0:
        return 0.0
    rest = (draw - part) / (1.0 - part)
    neighbour = (rest > 1.0 - NEIGHBOUR_SHARE) - (rest < NEIGHBOUR_SHARE)
    return side * float(offsets[progress[1] + neighbour])


@compiled
def offset_index(grid: Grid, distance: float) -> int:
    """The place of an offset in the grid."""
    for index in range(grid[0].shape[0]):
        if abs(distance - grid[0][index]) <= SAME_OFFSET_RATIO * grid[0][index]:
            return index
    return NO_OFFSET


@compiled
def update_belief(state: GridState, filter_state: FilterState, asked: Asked, above: bool) -> None:
    """Learn from a bit, and count it at its offset."""
    grid, progress, fit = state
    belief, workspace = filter_state
    variance, offset, rho = asked
    progress[0] += 1
    index = NO_OFFSET if offset == 0.0 else offset_index(grid, abs(offset))
    if index == NO_OFFSET or (progress[1] == 0 and abs(offset) <= SLOPE_DEVIATIONS * fit[2]):
        noise = fit[2] ** 2
        step, shrink, _ = bit_moments(offset / math.sqrt(noise + variance), above)
        potter_update(belief, workspace, (variance, noise, rho), (step, shrink))
    elif progress[1] > 0 and abs(index - progress[1]) <= 1:
        newton_step(grid, filter_state, asked, index, above)
    if index != NO_OFFSET:
        grid[1][index] += 1.0
        grid[2][index] += above == (offset > 0.0)
        fit_slope(fit, progress, belief, offset, above)
    if progress[0] % QUERIES_BETWEEN_CHOICES == 0:
        choose_offset(state, belief)


@compiled
def newton_step(
    grid: Grid, filter_state: FilterState, asked: Asked, index: int, above: bool
) -> None:
    """One step of Newton's recursion for a bit at an offset of measured chance and density."""
    belief, workspace = filter_state
    variance, offset, rho = asked
    inside = 0 < index < grid[0].shape[0] - 1
    if not inside or information_lower_bound(grid, index, 0.0) == 0.0:
        return
    density, _ = mean_density(grid, index - 1, index + 1)
    chance = exceedance(grid, index)
    if offset < 0.0:
        chance = 1.0 - chance
    noise = chance * (1.0 - chance) / density**2  # the inverse of the bit's information
    innovation = ((1.0 if above else 0.0) - chance) / density
    step = innovation / math.sqrt(noise + variance)
    potter_update(belief, workspace, (variance, noise, rho), (step, 1.0))


@compiled
def fit_slope(
    fit: Floats, progress: NDArray[np.int64], belief: Belief, offset: float, above: bool
) -> None:
    """Go on fitting the slope of the cdf at 0, and scale the belief along while it is used."""
    if abs(offset) > SLOPE_DEVIATIONS * fit[2]:
        return
    fit[0] += offset * (0.5 - above)
    fit[1] += offset * offset
    if fit[0] <= 0.0:
        return
    scale = fit[1] / (fit[0] * math.sqrt(2.0 * math.pi))
    if progress[1] == 0:
        belief[1][:] *= scale / fit[2]
    fit[2] = scale


@compiled
def run_offset_grid(
    state: GridState,
    filter_state: FilterState,
    model: tuple[float, int],
    stream: DrawnStream,
    trail: Trail,
) -> None:
    """Answer a stream; `model` is (rho, nuisances)."""
    belief, workspace = filter_state
    rho, nuisances = model
    columns, noisy, draws = stream
    answers, thresholds, above = trail
    for place in range(columns.shape[0]):
        x = columns[place]
        centre, variance = predict(belief, x, workspace)
        offset = draw_offset(state, draws[place])
        answers[place] = centre - nuisance_part(belief[0], x, nuisances)
        thresholds[place] = centre + offset
        above[place] = noisy[place] > thresholds[place]
        update_belief(state, filter_state, (variance, offset, rho), above[place])
