"""Simulated trackers and their predicted words, as text and as JSON objects."""

from collections.abc import Sequence
from typing import Any

from casemate.report.page import counted
from casemate.track.plan import Forecast
from casemate.track.simulation.simulate import Simulation

SIMULATION = "casemate.track-simulation/1"
PLAN = "casemate.track-plan/1"


def simulation_text(found: Simulation) -> str:
    """Some runs as lines to read."""
    setting = found.setting
    share = found.words / setting.items
    lines = [
        f"{found.mode} against {found.adversary}: {found.words:,.0f} words for "
        f"{counted(setting.items, 'item')} at {counted(setting.sites, 'site')} "
        f"({share:.3g} words an item)",
        f"largest error at any time: {found.max_error_over_alpha:.3f} alpha "
        f"(alpha = {setting.alpha:g})",
        f"runs that ever were off by more: {found.violations} of {len(found.runs)}",
        "",
    ]
    lines += [f"{kind:>10} {words:>15,.0f}" for kind, words in found.words_by_kind.items()]
    lines += ["", f"{found.rounds:,.0f} rounds, {found.seconds:.1f} s"]
    return "\n".join(lines)


def simulation_json(found: Simulation) -> dict[str, Any]:
    """Some runs as the object that `--format json` prints."""
    setting = found.setting
    return {
        "schema": SIMULATION,
        "mode": found.mode,
        "adversary": found.adversary,
        "sites": setting.sites,
        "alpha": setting.alpha,
        "delta": setting.delta,
        "items": setting.items,
        "runs": len(found.runs),
        "finished": found.finished,
        "words": found.words,
        "words_by_kind": found.words_by_kind,
        "max_error_over_alpha": found.max_error_over_alpha,
        "violations": found.violations,
        "rounds": found.rounds,
        "seconds": round(found.seconds, 3),
    }


def plan_text(forecasts: Sequence[Forecast]) -> str:
    """Predicted words as a table, the cheapest first."""
    lines = [f"{'mode':<20} {'words':>15} {'of the cheapest':>16}  within alpha"]
    least = max(forecasts[0].words, 1.0)
    for each in forecasts:
        ratio = f"{each.words / least:.2f}x"
        lines.append(f"{each.mode:<20} {each.words:>15,.0f} {ratio:>16}  {each.promise}")
    return "\n".join(lines)


def plan_json(forecasts: Sequence[Forecast]) -> dict[str, Any]:
    """Predicted words as the object that `--format json` prints."""
    setting = forecasts[0].setting
    return {
        "schema": PLAN,
        "sites": setting.sites,
        "alpha": setting.alpha,
        "delta": setting.delta,
        "horizon": setting.items,
        "modes": [
            {"mode": each.mode, "words": each.words, "promise": each.promise} for each in forecasts
        ],
    }
