"""An attack as text for the terminal and as the object `casemate.attack/1`.

Where the table knows the truth, no value is written without `reveal`: what an attack found may be
somebody's true value, and a report is read by more people than the table is. Errors and widths are
then rounded up to 1, 2, 5, 10, ..., because an error tells the truth to whoever makes the attack.

What an attack comes to, in the words and numbers that every form of its report shares.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.attack import Attacked
from casemate.attack.reconstruct.secrets import ReconstructedSecret
from casemate.attack.score.scoring import QUANTILES, PairedComparison, Score
from casemate.query.language import Scalar
from casemate.report import number, plain

GUESSES = {
    "leave_one_out": "the best guess from the same release without the person (leave one out)",
    "majority": "the single guess that is right most often (majority)",
    "marginal": "a draw from the true values (marginal)",
    "prior_mean": "the mean known beforehand (prior mean)",
}
EXACT = 1e-6
"""Relative widths and residuals so small are rounding."""

WHAT = {"prevalence": "values", "uniqueness": "public columns"}


def shows_values(found: Attacked, reveal: bool) -> bool:
    """Whether values may be written: when asked for, or when the table does not have the truth."""
    return reveal or found.evidence.outside


def fractions(scores: Iterable[Score]) -> dict[str, float | None]:
    """The fraction right of the attack and of every baseline, over all private columns."""
    found = list(scores)
    sizes = [each.records for each in found]

    def mean(values: Sequence[float | None]) -> float | None:
        if not values or any(each is None for each in values):
            return None
        return math.fsum(s * v for s, v in zip(sizes, values, strict=True) if v) / sum(sizes)

    return {
        "recovered": mean([each.recovered for each in found]),
        "within": mean([each.within for each in found]),
        **{name: mean([getattr(each.baseline, name) for each in found]) for name in GUESSES},
    }


def verdict(comparison: PairedComparison, determined: int) -> str:
    """What the difference to the guess without the target means, and what needs no comparison."""
    if determined and comparison.low <= 0:
        many = "1 value is" if determined == 1 else f"{determined:,} values are"
        return f"disclosure: {many} determined by the answers, though on average little is gained"
    if comparison.low > 0:
        return "disclosure: the attack is right more often than the best guess without the person"
    if comparison.high < 0:
        return "no disclosure: the best guess without the person is right more often"
    return "no disclosure is shown: what is right may be inference, and the difference chance"


def gap(comparison: PairedComparison) -> str:
    """How much more often the attack is right, and how surely."""
    return (
        f"{points(comparison.difference)} points ({points(comparison.low)} to "
        f"{points(comparison.high)}) for {comparison.targets} people"
    )


def parts(score: Score) -> list[tuple[str, PairedComparison]]:
    """The comparison for everybody, and for those parts of them that are not everybody."""
    whole = score.comparison
    some = [each for each in score.strata if each.comparison.targets < whole.targets]
    return [
        ("everybody", whole),
        *((f"{each.which} {WHAT[each.by]}", each.comparison) for each in some),
    ]


def points(share: float) -> str:
    """A difference of shares in points of a hundred."""
    return f"{100 * share:+.1f}"


def percent(share: float) -> str:
    """A share in per cent."""
    return f"{100 * share:.1f} %"


def headline(found: Attacked) -> str:
    """The result in one clause."""
    scores = list(found.scores.values())
    if not scores:
        known = "the table does not have the truth" if found.evidence.outside else "not judged"
        return f"reconstructed {count_secrets(found):,} values ({known})"
    fraction, records = fractions(scores)["recovered"], sum(each.records for each in scores)
    return f"recovered {percent(fraction or 0.0)} of {records:,} private values"


def count_secrets(found: Attacked) -> int:
    """How many values an attack speaks of."""
    return sum(1 for _ in found.secrets)


def rule(found: Attacked, name: str) -> str:
    """When a value of a private column counts as recovered."""
    evidence = found.evidence
    names = np.array([each.column for each in evidence.equations.unknowns], object)
    own = names[evidence.equations.unknown] == name
    if evidence.problem.whole[own].all():
        return "exactly"
    return f"within {found.scores[name].tolerance:g}"


def about_noise(found: Attacked) -> str:
    """Where the answers come from and what is taken for granted of their noise."""
    law = found.options.noise
    if found.evidence.own:
        laid = "without noise" if law is None else f"with noise of the law {law} laid over them"
        return f"the answers are the table's own, {laid}"
    if law is None:
        return "the answers were given; nothing is taken for granted about noise in them"
    return f"the answers were given, and taken to carry noise of the law {law}"


def widths(found: Attacked) -> NDArray[np.float64]:
    """How wide the interval of every unknown is that was not known beforehand."""
    problem = found.evidence.problem
    return np.asarray(found.reconstruction.width[problem.low < problem.high])


def narrow(found: Attacked) -> NDArray[np.bool_]:
    """Of which of these unknowns the interval leaves only what would count as recovered."""
    problem = found.evidence.problem
    reach = min(each.tolerance for each in found.scores.values())
    whole, wide = problem.whole[problem.low < problem.high], widths(found)
    return np.where(whole, wide < 1, wide <= 2 * reach)


def determined(found: Attacked) -> int:
    """How many values follow from answers without noise, and were not known before."""
    problem, made = found.evidence.problem, found.reconstruction
    if problem.noise is not None or made.residual > EXACT:
        return 0
    size = np.maximum(1.0, np.abs(made.values))
    open_ = (problem.low < problem.high) & found.evidence.told
    return int((open_ & (made.high - made.low <= EXACT * size)).sum())


def certain(found: Attacked) -> NDArray[np.float64]:
    """How likely each whole number is right, as the attack itself says, where it can say."""
    problem, sure = found.evidence.problem, found.reconstruction.probability
    return np.asarray(sure[np.isfinite(sure) & (problem.low < problem.high)])


# Numbers as they are written ------------------------------------------------------------------


def size_of(size: float, found: Attacked, reveal: bool) -> float:
    """An error or a width; rounded up where it must not tell more than how large it is."""
    return size if shows_values(found, reveal) else round_up(size)


def round_up(size: float) -> float:
    """The smallest of 1, 2, 5, 10, ... times a power of ten that is not below; 0 for rounding.

    >>> round_up(1.9667), round_up(0.0041), round_up(3e-15)
    (2.0, 0.005, 0.0)
    """
    if size < 1e-9:
        return 0.0
    power = 10.0 ** math.floor(math.log10(size))
    least = min(step for step in (1, 2, 5, 10) if step * power >= size * (1 - 1e-9))
    return float(f"{least * power:.1g}")


def shown_value(value: Scalar) -> str:
    """A value that was found, as people read it."""
    written = json_value(value)
    if value is None:
        return "none of the values asked about"
    return f"{written:.6g}" if isinstance(written, float) else str(written)


def json_value(value: Scalar) -> Any:
    """A value as JSON writes it; a number without the last digits, which are rounding."""
    found = finite(value) if isinstance(value, float) else value
    if isinstance(found, float) and found.is_integer() and abs(found) < 2**53:
        return int(found)
    return number(found)


def finite(value: float | None) -> float | None:
    """A number to twelve digits; None for what JSON cannot say."""
    return float(f"{value:.12g}") if value is not None and math.isfinite(value) else None


# Attack -----------------------------------------------------------------------------------------


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


def _value_text(secret: ReconstructedSecret) -> str:
    whose = f"record {plain(secret.record)}"
    if secret.person != secret.record:
        whose += f" (person {plain(secret.person)})"
    return f"{whose}: {secret.column} = {shown_value(secret.value)}{_how_sure(secret)}"


def _how_sure(secret: ReconstructedSecret) -> str:
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


def _difference(comparison: PairedComparison) -> dict[str, Any]:
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


def _value(secret: ReconstructedSecret) -> dict[str, Any]:
    return {
        "record": number(secret.record),
        "person": number(secret.person),
        "column": secret.column,
        "value": json_value(secret.value),
        "lo": finite(secret.low),
        "hi": finite(secret.high),
        "probability": finite(secret.probability),
    }
