"""Predicted words against the number of sites, as they are drawn."""

import pytest

from casemate.track.plan import plan
from casemate.track.report import SITES, curves, tuned_words
from casemate.track.setting import Setting


def test_a_curve_goes_through_what_is_planned() -> None:
    setting = Setting(sites=64, alpha=0.1, delta=0.05, items=10**5)
    planned = {each.mode: each.words for each in plan(64, 0.1, 0.05, 10**5)}
    drawn = {curve.mode: dict(curve.points)[64] for curve in curves(setting, (16, 64))}
    assert set(drawn) == {"auto", "deterministic", "sampled", "robust", "robust-tuned"}
    assert drawn["sampled"] == planned["sampled"] and drawn["robust"] == planned["robust"]
    assert drawn == pytest.approx({mode: planned[mode] for mode in drawn}, rel=0.1)


def test_auto_is_the_better_of_its_two_everywhere() -> None:
    found = {c.mode: c.points for c in curves(Setting(1, 0.1, 0.05, 10**6), (4, 256, 4096))}
    both = zip(found["deterministic"], found["sampled"], strict=True)
    assert found["auto"] == tuple(min(pair, key=lambda point: point[1]) for pair in both)
    assert found["auto"][0] == found["deterministic"][0]
    assert found["auto"][-1] == found["sampled"][-1]


def test_curves_reach_from_a_handful_of_sites_to_very_many() -> None:
    assert SITES[0] == 4 and SITES[-1] == 65_536


@pytest.mark.parametrize("horizon", [1, 40, 10**4])
def test_before_rounds_begin_the_tuned_tracker_costs_what_windows_cost(horizon: int) -> None:
    assert 0 < tuned_words(16, 0.01, 0.01, horizon) <= horizon
