"""OnlineBisection against a simulated oracle: whole streams at a time, compiled.

Guarantee  Boxes, counts and bits are those of `BisectionSearch` step by step; answers and
           thresholds agree to 1e-12 of the box:
           `test_a_compiled_stream_is_one_bit_after_the_other`.
Cost       Some tens of nanoseconds a query at d = 4 beside the noise; a stream may come in blocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from casemate.attack.one_bit.bisection import BisectionSearch, Counts
from casemate.attack.one_bit.laws import Law
from casemate.attack.one_bit.oracle import AnswerTrail, Floats, NoisyOracle, Trail
from casemate.compiled import compiled


@dataclass(frozen=True)
class BisectionRun:
    """What became of a stream: errors, the box, and when it shrank."""

    queries: int
    error: float
    """The average of |answer - w . q|."""

    shrinks: tuple[int, ...]
    """After how many queries each shrink came."""

    side: float
    stopped: bool
    lost: bool
    """Whether the secret is outside the box."""


def simulate(
    search: BisectionSearch,
    coordinates: Floats | Iterable[Floats],
    secret: Floats,
    law: Law | None,
    rng: np.random.Generator,
) -> BisectionRun:
    """Put a search before an oracle with noise of a law; a stream is an array, or blocks of it."""
    blocks = [coordinates] if isinstance(coordinates, np.ndarray) else coordinates
    oracle = NoisyOracle(secret, law, rng)
    total, before, shrinks = 0.0, search.queries, list[int]()
    for block in blocks:
        trail, moments = feed(search, block, oracle.noisy(block))
        total += float(np.abs(trail.answers - block @ secret).sum())
        shrinks += moments
    queries = search.queries - before
    lost = not search.box.holds(secret)
    error = total / max(1, queries)
    return BisectionRun(queries, error, tuple(shrinks), search.side, search.stopped, lost)


def feed(
    search: BisectionSearch, coordinates: Floats, noisy: Floats
) -> tuple[AnswerTrail, list[int]]:
    """Answer queries that have these noisy answers: what was said, and when the box shrank.

    Each noisy answer is compared with its threshold and used for nothing else.
    """
    count, directions = len(noisy), len(search.box.low)
    if np.shape(coordinates) != (count, directions):
        raise ValueError(
            f"need {directions} coordinates of each query, and a noisy answer for each, got shapes "
            f"{np.shape(coordinates)} and {np.shape(noisy)}"
        )
    stream = np.ascontiguousarray(coordinates, float), np.ascontiguousarray(noisy, float)
    trail, place, moments = AnswerTrail.empty(count), 0, list[int]()
    while place < count:
        search.extend_horizon()
        room = search.horizon - search.queries if search.doubles else count
        span, before = (place, min(count, place + room)), search.shrinks
        place = int(advance(stream, span, _kernel_state(search), trail.arrays))
        search.queries += place - span[0]
        search.shrink_ready()
        moments += [search.queries] * (search.shrinks - before)
    return trail, moments


def _kernel_state(search: BisectionSearch) -> "SearchState":
    """What the compiled steps take from a search: its test, its box, its counts."""
    box = search.box
    test = (
        search.cosine_squared,
        search.shortest_squared,
        search.reading.threshold_in_the_middle,
    )
    counts = (box.above, box.seen, search.critical_counts, _directions_awaited(search))
    return test, (box.middle, box.sides / 2), counts


def _directions_awaited(search: BisectionSearch) -> int:
    """How many directions have to become ready before the box changes; 0 when it will not."""
    if search.stopped:
        return 0
    short = search.box.seen < search.critical_counts
    return int(short.sum()) if search.constants.shrink_together else 1


# Compiled steps, up to the end of a phase -------------------------------------------------------
#
# Kernels take plain tuples, as in `square_root`.


SearchState = tuple[
    tuple[float, float, bool], tuple[Floats, Floats], tuple[Counts, Counts, Counts, int]
]
"""(test, box, counts): a test is (cosine squared, shortest squared, whether the threshold is the
middle); a box is (middle, half sides); counts are (above, seen, critical, awaited), where awaited
is how many directions have to become ready."""


@compiled(inline="always")
def nearest_direction(x: Floats, cosine_squared: float, shortest_squared: float) -> int:
    """The direction about which a query speaks; -1 when there is none."""
    total, nearest = 0.0, 0
    for j in range(x.shape[0]):
        total += x[j] * x[j]
        if x[j] > x[nearest]:
            nearest = j
    part = x[nearest]
    within_angle = part > 0.0 and part * part >= cosine_squared * total
    return nearest if within_angle and total >= shortest_squared else -1


@compiled
def advance(
    stream: tuple[Floats, Floats], span: tuple[int, int], state: SearchState, trail: Trail
) -> int:
    """Answer the queries of a span, and count, until a phase ends: where that is.

    `stream` is (coordinates, noisy), `span` (first, end). Without directions to wait for, it only
    answers.
    """
    coordinates, noisy = stream
    place, end = span
    test, box, counts = state
    cosine_squared, shortest_squared, in_the_middle = test
    middle, half = box
    above, seen, critical, awaited = counts
    answers, thresholds, bits = trail
    counting = awaited > 0
    while place < end:
        x = coordinates[place]
        answer, spread = 0.0, 0.0
        for j in range(x.shape[0]):
            answer += middle[j] * x[j]
            spread += half[j] * abs(x[j])
        threshold = answer if in_the_middle else spread
        bit = noisy[place] > threshold
        answers[place], thresholds[place], bits[place] = answer, threshold, bit
        place += 1
        if counting:
            direction = nearest_direction(x, cosine_squared, shortest_squared)
            if direction >= 0:
                above[direction] += bit
                seen[direction] += 1
                if seen[direction] == critical[direction]:
                    awaited -= 1
                    if awaited == 0:
                        break
    return place
