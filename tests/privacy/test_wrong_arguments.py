"""A wrong argument is a ValueError that says what was needed, and shows no private value."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import pytest

from casemate.privacy import (
    Concentrated,
    GeneralisationSetting,
    Pure,
    best,
    epsilon_of,
    mechanisms,
    noise,
    rho_of,
)
from casemate.privacy import generalisation as source
from casemate.privacy.mechanisms import BinaryMechanism, Calibration, exponential
from casemate.privacy.mechanisms.exponential_mechanism import ExponentialMechanism
from casemate.privacy.noise import GaussianLaw, discrete_gaussian, discrete_laplace, half_width
from casemate.privacy.noise.noise import silence, uniform_below

ONE = Fraction(1)
HALF: Any = 0.5  # a float where a rational is needed
SECRET: Any = 7.5  # a private value that no message may show
SETTING = GeneralisationSetting(10, 0.1, 0.1, 0.1)
APPROXIMATE, CURVED = replace(SETTING, delta=0.1), replace(SETTING, sensitivity=0.5)
TWO_CONSTANTS = (source.theorem_3, source.theorem_4)
ONE_CONSTANT = (source.theorem_6, source.theorem_7, source.proposition_1, source.proposition_2)

CALLS: list[tuple[str, Callable[..., object], tuple[Any, ...]]] = [
    # noise
    ("size must be a natural number", discrete_laplace, (ONE, -1)),
    ("seed must be a natural number", noise.seeded_bits, (-1,)),
    ("limit must be at least 1, got 0", uniform_below, (0, 1)),
    ("scale must be positive, got -1/2", discrete_laplace, (Fraction(-1, 2), 1)),
    ("scale must be positive, got -1/2", discrete_gaussian, (Fraction(-1, 2), 1)),
    ("scale must be a Fraction or an integer, got a float", discrete_laplace, (HALF, 1)),
    ("scale must be a Fraction or an integer, got a float", discrete_gaussian, (HALF, 1)),
    *(
        ("positive integers and Fractions", law, (scale,))
        for law, scale in product(
            (GaussianLaw, noise.LaplaceLaw), (Fraction(0), Fraction(-1), HALF)
        )
    ),
    ("need draws >= 1", noise.noise_bound, (ONE, 0, 0.1)),
    ("need draws >= 1 and 0 < beta < 1", noise.noise_bound, (ONE, 1, 1.0)),
    ("need 0 < confidence", half_width, (GaussianLaw(ONE), [1], 1.0)),
    ("need 0 < confidence", half_width, (GaussianLaw(ONE), [1], 0.0)),
    ("whole numbers", half_width, (GaussianLaw(ONE), [0.5], 0.95)),
    # costs
    *(
        ("must be a Fraction", kind, (wrong,))
        for kind, wrong in product((Pure, Concentrated), (Fraction(-1), 0.1, 1, "1", None))
    ),
    *(
        ("delta must be a Fraction", convert, (ONE, delta))
        for convert in (epsilon_of, rho_of)
        for delta in (Fraction(0), ONE, Fraction(-1, 2), 1e-6)
    ),
    # mechanisms
    ("scales must be positive", Calibration, (Fraction(0), ONE)),
    ("scales must be positive", Calibration, (ONE, Fraction(-1))),
    ("need positives >= 1", Calibration, (ONE, ONE, 0)),
    ("need positives >= 1 and sensitivity >= 1", Calibration, (ONE, ONE, 1, 0)),
    ("need epsilon > 0", Calibration.of, (Fraction(0),)),
    ("need epsilon > 0 and 0 < share < 1", Calibration.of, (ONE, ONE)),
    ("numbered from 1", Calibration.of(ONE).error_bound_at, (0, 0.1)),
    ("need rho > 0", mechanisms.run_epsilon, (Fraction(0), 1)),
    ("need runs >= 1", mechanisms.GapSparseVector, (Calibration.of(ONE), 0, silence)),
    ("need positives >= 1", mechanisms.NumericSparse, (0, ONE, silence)),
    ("need positives >= 1 and epsilon > 0", mechanisms.NumericSparse, (1, Fraction(0), silence)),
    *(
        ("need horizon >= 1, epsilon > 0 and sensitivity >= 1", BinaryMechanism, wrong)
        for wrong in ((0, 1), (1, 0), (1, -1), (1, 1, silence, 0))
    ),
    *(
        ("beta must lie between 0 and 1", BinaryMechanism(1, ONE, silence).error_bound, (beta,))
        for beta in (0.0, 1.0, -1.0)
    ),
    ("at least one candidate", exponential, ([], ONE)),
    ("integers or Fractions, got a float", exponential, ([SECRET, 1], ONE)),
    ("epsilon must be a positive", exponential, ([1], Fraction(0))),
    ("epsilon must be a positive", exponential, ([1], HALF)),
    ("sensitivity must be a positive", exponential, ([1], ONE, 0)),
    ("need 1 <= best", ExponentialMechanism(ONE).error_bound, (0, 0.1)),
    ("0 < beta < 1", ExponentialMechanism(ONE).error_bound, (5, 1.0)),
    # generalisation
    *(("delta = 0", statement, (APPROXIMATE, 0.5)) for statement in ONE_CONSTANT),
    *(("linear", statement, (CURVED, 0.5)) for statement in ONE_CONSTANT),
    *(("linear", statement, (CURVED, 0.1, 0.1)) for statement in TWO_CONSTANTS),
    *(("negative", statement, (APPROXIMATE, -0.1, 0.1)) for statement in TWO_CONSTANTS),
    *(
        ("need", partial(replace, SETTING, **wrong), ())
        for wrong in (
            {"samples": 0},
            {"leaked": 11},
            {"touched": 11},
            {"touched": 0},
            {"epsilon": -0.1},
            {"epsilon": math.nan},
            {"alpha": -1.0},
            {"beta": 1.5},
            {"delta": -0.1},
            {"sensitivity": 0.0},
        )
    ),
    ("need eta", source.theorem_7, (SETTING, 0)),
    ("between 0 and 1", best, (SETTING, 0)),
    (r"no statement is called \['Theorem 8'\]", best, (SETTING, 0.1, ["Theorem 8"])),
]


@pytest.mark.parametrize(("sentence", "call", "arguments"), CALLS)
def test_a_wrong_argument_is_a_value_error_that_shows_no_private_value(
    sentence: str, call: Callable[..., object], arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        call(*arguments)
    assert str(SECRET) not in str(caught.value)


def test_only_integers_are_compared_and_added_up_and_no_message_shows_the_value() -> None:
    run, total = (
        mechanisms.AboveThreshold(Calibration.of(ONE), silence),
        BinaryMechanism(4, ONE, silence),
    )
    for attempt in (lambda: run.ask(SECRET, 0), lambda: total.add(SECRET)):
        with pytest.raises(TypeError) as caught:
            attempt()
        assert str(SECRET) not in str(caught.value)
