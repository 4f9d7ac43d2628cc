"""A wrong argument is a `ValueError` that says what was needed."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from attack.one_bit_streams import dense

from casemate.attack.one_bit import MixtureLaw, OneBitKalman, OnlineBisection, generic, near_basis
from casemate.attack.one_bit.bisection import BisectionConstants, BisectionSearch
from casemate.attack.one_bit.bisection_simulation import feed
from casemate.attack.one_bit.edge import Guard
from casemate.attack.one_bit.laws import NAMED, Gaussian, Shifted, StudentT, Truncated, Uniform
from casemate.attack.one_bit.limit import level_information
from casemate.attack.one_bit.oracle import orthonormal_basis
from casemate.attack.one_bit.streams import Stream, subsets
from casemate.attack.one_bit.table_oracle import group_records
from casemate.attack.plan.language import Language

TWO_LAWS = (Gaussian(1.0), Uniform(1.0))
SEARCH = BisectionSearch(8, 2, None, horizon=9)
RANDOM = np.random.default_rng(0)

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: OneBitKalman(0), "at least one dimension, got 0"),
    (lambda: OneBitKalman(3, np.eye(2)), "vectors of length 3"),
    (lambda: OneBitKalman(2, np.ones((2, 2))), "orthonormal"),
    (lambda: OneBitKalman(2, scale=-1.0), "scale of the noise that is not negative"),
    (lambda: OneBitKalman(2, rho=0.0), r"rho in \(0, 1\]"),
    (lambda: OneBitKalman(2, scale=1.0, symmetric=True), "leave the scale out"),
    (lambda: OneBitKalman(2).answer(np.ones(3)), "a query of length 2"),
    (lambda: OneBitKalman(2).follow(np.ones((1, 2)), np.ones(1)), "follow_queries"),
    (lambda: OneBitKalman(2).thresholds(np.ones(2), 3), "needs the scale"),
    (lambda: level_information(Gaussian(1.0), 1), "at least 2 answers, got 1"),
    (lambda: Guard(0.0, np.zeros(1), np.zeros((1, 1))), "between 0 and 1"),
    (lambda: OnlineBisection(4, None), "need a basis, or the number of directions"),
    (lambda: OnlineBisection(4, None, directions=0), "need between 1 and 4 directions"),
    (lambda: OnlineBisection(4, None, directions=5), "need between 1 and 4 directions"),
    (lambda: OnlineBisection(4, None, basis=2 * np.eye(4)), "need an orthonormal basis"),
    (lambda: OnlineBisection(4, None, basis=np.eye(3)), "need a basis of vectors of length 4"),
    (lambda: OnlineBisection(4, None, directions=2, preliminary=1), "need at least 2 preliminary"),
    (lambda: BisectionSearch(4, 2, None, horizon=1), "need a horizon of at least 2"),
    (lambda: BisectionConstants(observations=0), "need observations > 0"),
    (lambda: BisectionConstants(shortest=0), "need observations > 0 and shortest > 0"),
    (lambda: BisectionConstants(angle=0.0), "need an angle between 0 and pi / 4"),
    (lambda: BisectionConstants(angle=1.0), "need an angle between 0 and pi / 4"),
    (lambda: feed(SEARCH, np.ones((5, 3)), np.ones(5)), "need 2 coordinates"),
    (lambda: feed(SEARCH, np.ones((5, 1)), np.ones(5)), "need 2 coordinates"),
    (lambda: feed(SEARCH, np.ones((5, 2)), np.ones(4)), "need 2 coordinates"),
    (lambda: feed(SEARCH, np.ones((5, 2, 1)), np.ones(5)), "need 2 coordinates"),
    (lambda: Stream(np.eye(2), np.ones((5, 3))), "coordinate for each of the 2 directions"),
    (lambda: Stream(np.ones(3), np.ones((5, 3))), "one row per vector"),
    (lambda: orthonormal_basis(np.ones((2, 4)), 4), "need an orthonormal basis"),
    (lambda: orthonormal_basis(np.ones(4), 4), "need a basis of vectors of length 4"),
    (lambda: group_records(Language((), np.arange(3)), 0), "at least one group, got 0"),
    (lambda: MixtureLaw(TWO_LAWS, (0.5,)), "one positive weight for each law"),
    (lambda: MixtureLaw(TWO_LAWS, (0.5, 0.4)), "weights that sum to 1"),
    (lambda: MixtureLaw(TWO_LAWS, (1.5, -0.5)), "one positive weight for each law"),
    (lambda: Shifted(Gaussian(1.0), math.inf), "finite shift"),
    (lambda: Truncated(Uniform(1.0), 2.0, 3.0), "interval"),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_a_wrong_argument_is_refused(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize("streams", [near_basis, generic, subsets, dense])
def test_no_stream_has_more_directions_than_its_space(streams: Callable[..., Stream]) -> None:
    with pytest.raises(ValueError, match="between 1 and 4 dimensions, got 5"):
        streams(RANDOM, 4, 5, 1)


@pytest.mark.parametrize("kind", NAMED.values())
@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_a_scale_that_is_no_size_is_refused(kind: type, scale: float) -> None:
    with pytest.raises(ValueError, match="need a positive and finite"):
        kind(*([3.0, scale] if kind is StudentT else [scale]))
