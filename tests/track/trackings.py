"""Small results of trackers, made by hand, so that every number in a report can be foreseen."""

from casemate.track.modes import BREAKS, MODES, WordsForecast
from casemate.track.setting import Run, Setting
from casemate.track.simulate.runs import Simulation

SETTING = Setting(sites=64, alpha=0.05, delta=0.02, items=100_000)


def simulation(
    *errors: float, mode: str = "sampled", adversary: str = "stop-on-change"
) -> Simulation:
    """A run for each of these largest errors, each with more reports than the one before."""
    runs = [
        Run({"report": 1000 * (i + 1), "call": 64, "answer": 64, "rule": 0}, error, i + 1)
        for i, error in enumerate(errors)
    ]
    return Simulation(SETTING, mode, adversary, tuple(runs), 1.25)


def forecasts(setting: Setting = SETTING) -> list[WordsForecast]:
    """Every protocol, a thousand words apart, those that break first."""
    order = sorted(MODES, key=lambda mode: MODES[mode].promise is not BREAKS)
    return [
        WordsForecast(setting, mode, 1000.0 * (i + 1), MODES[mode].promise)
        for i, mode in enumerate(order)
    ]
