"""What the printed text of OnlineBisection does, one erratum at a time."""

import math

import numpy as np
import pytest
from attack.bisection_streams import Settings, once

from casemate.attack.one_bit.bisection import PRINTED, TIGHT, BisectionConstants, Errata
from casemate.attack.one_bit.laws import Exponential, Law, Shifted, Uniform

QUIET: Settings = (16, 2, 0.01, 20_000)
RUNS = 20


def lost(seed: int, runs: int = RUNS, **how: object) -> int:
    """How many runs end with the secret outside the box."""
    return sum(once(QUIET, [seed, run], **how).lost for run in range(runs))  # type: ignore[arg-type] # passed on


@pytest.mark.parametrize(
    "wrong", [{"observations": 0}, {"shortest": 0}, {"angle": 0.0}, {"angle": 1.0}]
)
def test_wrong_constants_are_a_value_error(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="need"):
        BisectionConstants(**wrong)  # type: ignore[arg-type] # numbers


# 1: the sign of m ---------------------------------------------------------------------------------


def test_the_printed_threshold_loses_the_secret_every_time(seed: int) -> None:
    assert lost(seed, reading=Errata(threshold_in_the_middle=False)) == RUNS
    assert lost(seed) == 0


# 2: the length of a query -------------------------------------------------------------------------


def test_short_queries_mislead_the_printed_text(seed: int) -> None:
    """Of length .014 to .028 about two runs in five fail, of .004 to .008 about five in six.

    Fewer of 40 than are asked for have a chance below 1e-6.
    """
    printed = Errata(short_queries_left_out=False)
    for factor, fewest in ((0.01, 3), (0.003, 18)):
        assert lost(seed, 40, reading=printed, factor=factor) >= fewest
        assert lost(seed, factor=factor) == 0


def test_short_queries_can_be_used_when_their_length_is_weighed(seed: int) -> None:
    short = BisectionConstants(shortest=0.01 * math.sqrt(2), observations=6.0, exact_gap=True)
    run = once((16, 2, 0.001, 20_000), [seed], constants=short, factor=0.01)
    assert len(run.shrinks) > 3 and not run.lost


# 5: directions that wait --------------------------------------------------------------------------


def test_directions_need_not_wait_for_each_other(seed: int) -> None:
    """With even shares it is nearly the same; no secret is lost."""
    alone = BisectionConstants(6.0, exact_gap=True, shrink_together=False)
    assert lost(seed, constants=alone) == 0
    errors = [once(QUIET, [seed], constants=each).error for each in (TIGHT, alone)]
    assert errors[1] < 1.25 * errors[0]


# 6: the length of the stream ----------------------------------------------------------------------


def test_nobody_has_to_know_the_length_of_the_stream(seed: int) -> None:
    """It even errs less: early shrinks ask for log of a shorter stream."""
    known, unknown = (once(QUIET, [seed], horizon=each) for each in (QUIET[-1], None))
    assert unknown.error < known.error
    assert lost(seed, horizon=None) == 0


# 14: dimensions matter without noise too ----------------------------------------------------------


def test_without_noise_the_time_to_stop_still_grows_with_the_directions(seed: int) -> None:
    ends = [once((64, d, 1e-9, 50_000), [seed]).shrinks[-1] for d in (1, 2, 4)]
    assert ends[1] > 1.8 * ends[0]
    assert ends[2] > 1.8 * ends[1]


# 15: the centre of the noise ----------------------------------------------------------------------


@pytest.mark.parametrize("law", [Uniform(0.16), Exponential(0.16)], ids=str)
def test_skewed_noise_is_fine_and_a_shift_that_nobody_knows_is_not(law: Law, seed: int) -> None:
    assert lost(seed, law=law) == 0
    assert lost(seed, law=Shifted(law, 0.05)) == 0  # known: the middle of the evidence moves
    assert lost(seed, law=law, oracle=Shifted(law, 0.5)) == RUNS


# The constants ------------------------------------------------------------------------------------


def test_a_wider_angle_with_its_own_gap_is_as_safe(seed: int) -> None:
    wide = BisectionConstants(6.0, exact_gap=True, angle=0.1)
    assert lost(seed, constants=wide) == 0
    assert PRINTED.angle_for(2) < 0.1 / 4


def test_the_error_of_the_corrected_text_beside_the_printed_one(seed: int) -> None:
    printed = once(QUIET, [seed], reading=Errata.as_printed()).error
    assert printed > 10 * once(QUIET, [seed]).error
    assert np.isfinite(printed)
