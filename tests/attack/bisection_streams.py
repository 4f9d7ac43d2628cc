"""One simulated run of OnlineBisection, as the tests of its figures and errata need it."""

import numpy as np

from casemate.attack.one_bit.bisection import (
    CORRECTED,
    PRINTED,
    BisectionConstants,
    BisectionSearch,
    Errata,
    phases,
)
from casemate.attack.one_bit.bisection_simulation import BisectionRun, simulate
from casemate.attack.one_bit.laws import Law, Uniform
from casemate.attack.one_bit.streams import group_basis, near_basis
from casemate.papers import StreamSetting

Settings = tuple[int, int, float, int]
"""D, d, u and T: noise is uniform on [-D u, D u]."""

BLOCK = 1 << 18


def stream_setting(
    settings: tuple[int, int, int],
    law: Law,
    share: float,
    constants: BisectionConstants = PRINTED,
    longest: float | None = None,
) -> StreamSetting:
    """A stream of D, d and T whose phases are those of the search."""
    found = tuple(phases(*settings, law, constants))
    return StreamSetting(*settings, share, found, longest)


def once(
    settings: Settings,
    random: list[int],
    *,
    reading: Errata = CORRECTED,
    constants: BisectionConstants = PRINTED,
    horizon: int | None = -1,
    factor: float = 1.0,
    law: Law | None = None,
    oracle: Law | None = None,
) -> BisectionRun:
    """A stream near its basis, an even secret; `factor` shortens queries; -1 tells the length."""
    dimension, directions, u, count = settings
    rng = np.random.default_rng(random)
    secret = group_basis(dimension, directions) @ rng.random(dimension)
    known = Uniform(dimension * u) if law is None else law
    search = BisectionSearch(
        dimension,
        directions,
        known,
        horizon=count if horizon == -1 else horizon,
        reading=reading,
        constants=constants,
    )
    blocks = (
        factor * near_basis(rng, dimension, directions, min(BLOCK, count - start)).coordinates
        for start in range(0, count, BLOCK)
    )
    return simulate(search, blocks, secret, oracle or known, rng)
