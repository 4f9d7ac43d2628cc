"""Compiled steps of OnlineBisection, up to the end of a phase.

Arguments come in groups: `stream` is (coordinates, secret, noise); `span` is (first, end); `state`
is (test, box, counts); `said` is (answers, thresholds, bits), without rows when nobody asked for
them. A test is (cosine squared, shortest squared, whether the threshold is the middle); a box is
(middle, half sides); counts are (above, seen, needed, waiting), where waiting is how many
directions have to become ready.
"""

from typing import Any

from numba import njit


@njit(cache=True, inline="always")
def _speaks_of(x: Any, cosine_squared: Any, shortest_squared: Any) -> Any:
    """The direction about which a query speaks; -1 when there is none."""
    total, nearest = 0.0, 0
    for j in range(x.shape[0]):
        total += x[j] * x[j]
        if x[j] > x[nearest]:
            nearest = j
    part = x[nearest]
    near = part > 0.0 and part * part >= cosine_squared * total
    return nearest if near and total >= shortest_squared else -1


@njit(cache=True)
def advance(stream: Any, span: Any, state: Any, said: Any) -> Any:
    """Answer the queries of a span, and count, until a phase ends; where, and the sum of errors.

    Without directions to wait for, it only answers.
    """
    coordinates, secret, noise = stream
    place, end = span
    test, box, counts = state
    cosine_squared, shortest_squared, in_the_middle = test
    middle, half = box
    above, seen, needed, waiting = counts
    errors = 0.0
    counting, keeping = waiting > 0, said[0].shape[0] > 0
    while place < end:
        x = coordinates[place]
        answer, truth, spread = 0.0, 0.0, 0.0
        for j in range(x.shape[0]):
            answer += middle[j] * x[j]
            truth += secret[j] * x[j]
            spread += half[j] * abs(x[j])
        errors += abs(answer - truth)
        threshold = answer if in_the_middle else spread
        bit = truth + noise[place] > threshold
        if keeping:
            said[0][place], said[1][place], said[2][place] = answer, threshold, bit
        place += 1
        if counting:
            direction = _speaks_of(x, cosine_squared, shortest_squared)
            if direction >= 0:
                above[direction] += bit
                seen[direction] += 1
                if seen[direction] == needed[direction]:
                    waiting -= 1
                    if waiting == 0:
                        break
    return place, errors
