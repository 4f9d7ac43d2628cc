"""OnlineBisection against a simulated oracle: whole streams at a time, compiled.

Guarantee  Boxes, counts and bits are those of `BisectionSearch` step by step; answers and
           thresholds agree to 1e-12 of the box (`test_the_kernel_is_the_plain_version`).
Cost       Some tens of nanoseconds a query at d = 4 beside the noise; a stream may come in blocks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from casemate.attack.one_bit.bisection import BisectionSearch, SearchState, advance
from casemate.attack.one_bit.laws import Law
from casemate.attack.one_bit.oracle import AnswerTrail, Bits, Floats

NO_TRAIL = AnswerTrail.empty(0)


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
    total, before, shrinks = 0.0, search.queries, list[int]()
    for block in blocks:
        noise = np.zeros(len(block)) if law is None else law.sample(rng, len(block))
        errors, moments = feed(search, block, secret, noise)
        total += errors
        shrinks += moments
    queries = search.queries - before
    lost = not search.box.holds(secret)
    error = total / max(1, queries)
    return BisectionRun(queries, error, tuple(shrinks), search.side, search.stopped, lost)


def feed(
    search: BisectionSearch,
    coordinates: Floats,
    secret: Floats,
    noise: Floats,
    trail: AnswerTrail = NO_TRAIL,
) -> tuple[float, list[int]]:
    """Go through queries with this noise: the sum of errors, and when the box shrank."""
    stream = _kernel_stream(search, coordinates, secret, noise)
    total, place, moments = 0.0, 0, list[int]()
    while place < len(coordinates):
        search.extend_horizon()
        room = search.horizon - search.queries if search.doubles else len(coordinates)
        end = min(len(coordinates), place + room)
        reached, errors = advance(stream, (place, end), _kernel_state(search), trail.arrays)
        total, before = total + errors, search.shrinks
        search.queries += reached - place
        place = reached
        search.shrink_ready()
        moments += [search.queries] * (search.shrinks - before)
    return total, moments


def simulate_trail(
    search: BisectionSearch, coordinates: Floats, secret: Floats, noise: Floats
) -> AnswerTrail:
    """Everything that is trail about each query."""
    trail = AnswerTrail.empty(len(coordinates))
    feed(search, coordinates, secret, noise, trail)
    return trail


def _kernel_stream(
    search: BisectionSearch, coordinates: Floats, secret: Floats, noise: Floats
) -> tuple[Floats, Floats, Floats]:
    """What the compiled steps read, which do not look where an array ends."""
    asked = (len(coordinates), len(search.box.low))
    if np.shape(coordinates) != asked or (len(noise), len(secret)) != asked:
        raise ValueError(
            f"need {asked[1]} coordinates of the secret and of each query, and noise for each, got "
            f"shapes {np.shape(secret)}, {np.shape(coordinates)} and {np.shape(noise)}"
        )
    return (
        np.ascontiguousarray(coordinates, np.float64),
        np.ascontiguousarray(secret, np.float64),
        np.ascontiguousarray(noise, np.float64),
    )


def _kernel_state(search: BisectionSearch) -> SearchState:
    """What the compiled steps take from a search: its test, its box, its counts."""
    box, short = search.box, search.box.seen < search.critical_counts
    test = (
        search.cosine_squared,
        search.shortest_squared,
        search.reading.threshold_in_the_middle,
    )
    counts = (box.above, box.seen, search.critical_counts, _directions_awaited(search, short))
    return test, (box.middle, box.sides / 2), counts


def _directions_awaited(search: BisectionSearch, short: Bits) -> int:
    """How many directions have to become ready before the box changes; 0 when it will not."""
    if search.stopped:
        return 0
    return int(short.sum()) if search.constants.shrink_together else 1
