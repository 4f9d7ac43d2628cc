"""An attack as text for the terminal and as the object `casemate.attack/1`.

Where the table knows the truth, no value is written without `reveal`: what an attack found may be
somebody's true value, and a report is read by more people than the table is. Errors and widths are
then rounded up to 1, 2, 5, 10, ..., because an error tells the truth to whoever makes the attack.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from casemate.attack.attack import Attacked
from casemate.attack.comparison import Comparison
from casemate.attack.score import QUANTILES, Score
from casemate.attack.secrets import Secret
from casemate.report.attack_findings import (
    GUESSES,
    about_noise,
    certain,
    determined,
    finite,
    fractions,
    gap,
    headline,
    json_value,
    narrow,
    parts,
    percent,
    rule,
    shown_value,
    shows_values,
    size_of,
    verdict,
    widths,
)
from casemate.report.audit import number, plain

SCHEMA = "casemate.attack/1"
SHOWN_IN_TEXT = 20
NAMES = {0.5: "median", 0.9: "p90", 0.99: "p99", 1.0: "max"}
JUDGED = (
    "tolerance",
    "recovered",
    "within",
    "baseline",
    "difference",
    "quantiles",
    "coverage",
)


# Text -----------------------------------------------------------------------------------------


def as_text(found: Attacked, *, reveal: bool = False) -> str:
    """An attack as lines to read."""
    made, problem = found.reconstruction, found.evidence.problem
    lines = [
        f"{headline(found)}, by the solver {made.solver}",
        f"{found.queries} statements, {problem.equations.height} equations in "
        f"{problem.equations.width} unknowns, about {found.records} records",
        about_noise(found),
        f"relative residual {made.residual:.2g} after {made.iterations} steps",
    ]
    if not found.finished:
        lines.append("interrupted: this is the best so far")
    for name, score in found.scores.items():
        lines += ["", *_score_lines(name, score, found)]
    lines += _sure_lines(found, reveal)
    if shows_values(found, reveal):
        lines += _value_lines(found)
    refused = found.evidence.publication.refused
    if refused:
        lines += ["", f"not used: {len(refused)}"]
        lines += [f"  query {each.query} (line {each.line}): {each.reason}" for each in refused]
    return "\n".join(lines)


def _score_lines(name: str, score: Score, found: Attacked) -> list[str]:
    """What is right of one column beside the baselines, and what that means."""
    rows = [(score.recovered, f"this attack ({rule(found, name)})")]
    for key, words in GUESSES.items():
        share = getattr(score.baseline, key)
        rows += [] if share is None else [(share, words)]
    level = f"{100 * score.confidence:g} % intervals"
    return [
        f"{name}: the share that is right",
        *(f"  {percent(share):>7}  {words}" for share, words in rows),
        verdict(score.comparison, determined(found)),
        f"the difference to leave one out, with {level}:",
        *(f"  {who}: {gap(comparison)}" for who, comparison in parts(score)),
    ]


def _sure_lines(found: Attacked, reveal: bool) -> list[str]:
    """How tight the intervals are, and how many true values lie inside."""
    wide = _width_quantiles(found)
    if not wide or not found.reconstruction.finished:
        return []
    half, most = (_at_most(wide[share], found, reveal) for share in (0.5, 0.9))
    level = f"{100 * found.options.confidence:g} % intervals"
    lines = ["", f"{level}: half are {half}, nine in ten {most}"]
    for name, score in found.scores.items():
        if score.coverage is not None:
            lines.append(f"  {percent(score.coverage)} of the true values of {name} lie inside")
    if found.scores:
        tight = narrow(found)
        lines.append(f"  {tight.sum()} of {len(tight)} leave no room beyond what counts as right")
    sure = certain(found)
    if len(sure):
        many = int((sure >= found.options.confidence).sum())
        level = f"{100 * found.options.confidence:g} %"
        lines.append(f"{many} of {len(sure)} whole numbers have a probability of {level} or more")
    return lines


def _at_most(width: float, found: Attacked, reveal: bool) -> str:
    if not math.isfinite(width):
        return "without an end"
    return f"at most {size_of(width, found, reveal):.3g} wide"


def _value_lines(found: Attacked) -> list[str]:
    values = list(found.secrets)
    shown = [f"  {_value_text(each)}" for each in values[:SHOWN_IN_TEXT]]
    more = len(values) - SHOWN_IN_TEXT
    return ["", f"values: {len(values)}", *shown, *([f"  and {more} more"] if more > 0 else [])]


def _value_text(secret: Secret) -> str:
    whose = f"record {plain(secret.record)}"
    if secret.person != secret.record:
        whose += f" (person {plain(secret.person)})"
    return f"{whose}: {secret.column} = {shown_value(secret.value)}{_how_sure(secret)}"


def _how_sure(secret: Secret) -> str:
    said = []
    if secret.low is not None or secret.high is not None:
        ends = ["" if each is None else f"{each:.6g}" for each in (secret.low, secret.high)]
        said.append(f"{ends[0]} to {ends[1]}".strip())
    if secret.probability is not None:
        said.append(f"probability {secret.probability:.3g}")
    return f" ({', '.join(said)})" if said else ""


# JSON -----------------------------------------------------------------------------------------


def as_json(found: Attacked, *, reveal: bool = False) -> dict[str, Any]:
    """An attack as the object that `--format json` prints."""
    made, problem = found.reconstruction, found.evidence.problem
    return {
        "schema": SCHEMA,
        "solver": made.solver.value,
        "records": found.records,
        "queries": found.queries,
        "equations": problem.equations.height,
        "unknowns": problem.equations.width,
        "noise": None if found.options.noise is None else str(found.options.noise),
        "confidence": found.options.confidence,
        **_top(found, reveal),
        "columns": _columns(found, reveal),
        "widths": _quantiles(_width_quantiles(found), found, reveal),
        "residual": finite(made.residual),
        "iterations": made.iterations,
        "finished": found.finished,
        "seconds": round(found.seconds, 3),
        "refused": [
            {
                "query": each.query,
                "line": each.line,
                "column": each.column,
                "text": each.text,
                "reason": each.reason,
            }
            for each in found.evidence.publication.refused
        ],
        "values": [_value(each) for each in found.secrets] if shows_values(found, reveal) else None,
    }


def _top(found: Attacked, reveal: bool) -> dict[str, Any]:
    """The score of the only private column; of several only what can be put together."""
    scores = list(found.scores.values())
    if len(scores) == 1:
        return _judged(scores[0], found, reveal)
    together = fractions(scores)
    fields: dict[str, Any] = dict.fromkeys(JUDGED)
    fields["recovered"], fields["within"] = together["recovered"], together["within"]
    fields["baseline"] = {name: together[name] for name in _KEYS} if scores else None
    return fields


_KEYS = ("prior_mean", "majority", "marginal", "leave_one_out")


def _columns(found: Attacked, reveal: bool) -> list[dict[str, Any]] | None:
    if len(found.scores) < 2:
        return None
    return [
        {"column": name, "records": score.records, **_judged(score, found, reveal)}
        for name, score in found.scores.items()
    ]


def _judged(score: Score, found: Attacked, reveal: bool) -> dict[str, Any]:
    """What is right of one private column, beside what would be right without the attack."""
    strata = [
        {"by": each.by, "which": each.which, **_difference(each.comparison)}
        for each in score.strata
    ]
    values: dict[str, Any] = {
        "tolerance": score.tolerance,
        "recovered": score.recovered,
        "within": score.within,
        "baseline": {name: getattr(score.baseline, name) for name in _KEYS},
        "difference": {**_difference(score.comparison), "strata": strata},
        "quantiles": _quantiles(score.quantiles, found, reveal),
        "coverage": score.coverage,
    }
    return {name: values[name] for name in JUDGED}


def _difference(comparison: Comparison) -> dict[str, Any]:
    return {
        "value": comparison.difference,
        "lo": comparison.low,
        "hi": comparison.high,
        "targets": comparison.targets,
        "attack": comparison.attack,
        "leave_one_out": comparison.leave_one_out,
    }


def _width_quantiles(found: Attacked) -> dict[float, float]:
    wide = np.sort(widths(found))
    if not len(wide):
        return {}
    places = [math.ceil(share * len(wide)) - 1 for share in QUANTILES]
    return {share: float(wide[place]) for share, place in zip(QUANTILES, places, strict=True)}


def _quantiles(
    quantiles: Mapping[float, float], found: Attacked, reveal: bool
) -> dict[str, float | None] | None:
    if not quantiles:
        return None
    return {
        NAMES[share]: finite(size_of(size, found, reveal)) if math.isfinite(size) else None
        for share, size in quantiles.items()
    }


def _value(secret: Secret) -> dict[str, Any]:
    return {
        "record": number(secret.record),
        "person": number(secret.person),
        "column": secret.column,
        "value": json_value(secret.value),
        "lo": finite(secret.low),
        "hi": finite(secret.high),
        "probability": finite(secret.probability),
    }
