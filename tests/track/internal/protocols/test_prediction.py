"""Predicted words, against runs."""

import numpy as np
import pytest

from casemate.track.adversary.compiled import named_adversary
from casemate.track.protocols.mixed import plan as prediction
from casemate.track.protocols.mixed import simulation
from casemate.track.setting import Setting


@pytest.mark.parametrize(
    ("mode", "predicted", "within"),
    [
        ("exact", prediction.predicted_exact, 0.0),
        ("deterministic", prediction.predicted_deterministic, 0.01),
        ("deterministic_paper", prediction.predicted_paper, 0.01),
        ("allocated", prediction.predicted_deterministic, 0.02),
    ],
)
@pytest.mark.parametrize(("sites", "alpha"), [(32, 0.02), (512, 0.05)])
def test_even_loads_cost_what_is_predicted(
    mode: str, predicted: prediction.Predict, within: float, sites: int, alpha: float
) -> None:
    setting = Setting(sites, alpha, 0.01, 1_000_000)
    one, two, three = np.random.default_rng(5).spawn(3)
    simulate = getattr(simulation, f"simulate_{mode}")
    run = simulate(setting, named_adversary("uniform", sites), (one, two, three))
    assert run.words == pytest.approx(predicted(sites, alpha, 0.01, 1e6), rel=within)


@pytest.mark.parametrize(("sites", "alpha"), [(32, 0.02), (512, 0.05), (4096, 0.1)])
def test_auto_costs_no_more_than_the_better_of_what_is_predicted(sites: int, alpha: float) -> None:
    """With many sites it costs less: its rounds are made to end where the items do."""
    setting = Setting(sites, alpha, 0.01, 1_000_000)
    one, two, three = np.random.default_rng(5).spawn(3)
    run = simulation.simulate_auto(setting, named_adversary("uniform", sites), (one, two, three))
    predicted = prediction.predicted_auto(sites, alpha, 0.01, 1e6)
    assert 0.7 * predicted < run.words < 1.02 * predicted
