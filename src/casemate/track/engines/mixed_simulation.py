"""Simulated runs of every tracker that keeps windows, samples, or does both."""

from casemate.track.adversary.compiled import Compiled, Rngs
from casemate.track.engines.allocated import allocated
from casemate.track.engines.automatic import automatic
from casemate.track.engines.compiled_run import CompiledRun, simulate_tallied
from casemate.track.engines.tally import Tally
from casemate.track.engines.windows import (
    centred_rule,
    exact_rule,
    fixed,
    paper_rule,
    weight_of_top,
)
from casemate.track.instruction import ONE, Rule
from casemate.track.pace import UNWATCHED, Pace
from casemate.track.setting import Run, Setting


def _simulate_windows(
    setting: Setting, rule: Rule, weight: float, adversary: Compiled, rngs: Rngs, *, pace: Pace
) -> Run:
    """Every site keeps one rule for ever, so nothing is ever decided."""
    a = fixed(setting.alpha)
    tally = Tally(setting.sites, ONE + a, ONE - a, weight)
    run = CompiledRun(setting, adversary, rngs, tally, pace)
    for site in range(setting.sites):
        tally.follow(site, rule)
    run.take_all(rule)
    run.go_on()
    return run.result()


def simulate_exact(
    setting: Setting, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """Every item is reported."""
    return _simulate_windows(setting, exact_rule(), 0.0, adversary, rngs, pace=pace)


def simulate_deterministic(
    setting: Setting, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """The centred windows."""
    rule, weight = centred_rule(setting.alpha), weight_of_top(setting.alpha)
    return _simulate_windows(setting, rule, weight, adversary, rngs, pace=pace)


def simulate_deterministic_paper(
    setting: Setting, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """The windows of source document 001, whose lower ends are published."""
    rule = paper_rule(setting.alpha)
    return _simulate_windows(setting, rule, 0.0, adversary, rngs, pace=pace)


def simulate_allocated(
    setting: Setting, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED
) -> Run:
    """Windows as wide as loads ask for."""
    engine = allocated(setting.sites, setting.alpha)
    return simulate_tallied(setting, engine, adversary, rngs, pace)


def simulate_auto(setting: Setting, adversary: Compiled, rngs: Rngs, pace: Pace = UNWATCHED) -> Run:
    """Whatever is cheapest for the loads seen."""
    engine = automatic(setting.sites, setting.alpha, setting.delta, setting.items)
    return simulate_tallied(setting, engine, adversary, rngs, pace)
