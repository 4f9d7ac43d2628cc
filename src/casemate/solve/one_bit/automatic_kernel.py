"""Compiled steps of the filter that learns both ends of the noise; see `automatic_edges`.

The plain version is `TwoEdges.learn`; both agree to 1e-9 of the answers.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from casemate.solve.one_bit.automatic_columns import ENDS, ENDS_RHO, MEDIAN_SHARE
from casemate.solve.one_bit.edge_kernel import (
    NO_ALARM,
    after,
    count,
    uniform_moments,
    uniform_offset,
)
from casemate.solve.one_bit.kalman_kernel import correct, predict


@njit(cache=True)
def lay(x: Any, draw: Any, columns: Any) -> Any:
    """Fill in the columns of a query; whether the threshold stands at the median."""
    median = min(draw, 1.0 - draw) < MEDIAN_SHARE / 2.0
    upper = draw < 0.5
    columns[0] = 1.0 if upper and not median else 0.0
    columns[1] = 0.0 if upper or median else -1.0
    for i in range(x.shape[0]):
        columns[ENDS + i] = x[i]
    return median


@njit(cache=True)
def run_edges(state: Any, bound: Any, watch: Any, stream: Any, trail: Any) -> Any:
    """Answer a stream until the alarm; arguments as in `edge_kernel.run`, with a bound as rule."""
    belief, room = state
    guard, marks = watch
    coordinates, noisy, draws = stream
    answers, thresholds, bits = trail
    columns = np.empty(belief[0].shape[0])
    for place in range(coordinates.shape[0]):
        median = lay(coordinates[place], draws[place], columns)
        centre, variance = predict(belief, columns, room)
        answers[place] = centre - belief[0][0] * columns[0] - belief[0][1] * columns[1]
        deviation = math.sqrt(variance)
        offset = 0.0 if median else uniform_offset(bound, deviation, draws[place])
        thresholds[place] = centre + offset
        bits[place] = noisy[place] > thresholds[place]
        if not deviation > 0.0:
            continue
        moments = uniform_moments(bound, thresholds[place] - centre, deviation)
        if not median and count(belief, guard, marks, moments[0], bits[place]):
            return place + 1
        step, shrink = after(moments, bits[place])
        lost = shrink if median else ENDS_RHO * shrink
        correct(belief, room, (variance, 0.0, 1.0), (step, lost))
    return NO_ALARM
