"""An attack in words and numbers, as every form of its report has them.

Where the table knows the truth, no value is written without `reveal`: what an attack found may be
somebody's true value, and a report is read by more people than the table is. Errors and widths are
then rounded up to 1, 2, 5, 10, ..., because an error tells the truth to whoever makes the attack.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.attack import Attacked, round_number
from casemate.attack.score.scoring import PairedComparison, Score
from casemate.query.language import Scalar
from casemate.report import number

GUESSES = {
    "leave_one_out": "the best guess from the same release without the person (leave one out)",
    "majority": "the single guess that is right most often (majority)",
    "marginal": "a draw from the true values (marginal)",
    "prior_mean": "the mean known beforehand (prior mean)",
}
ROUNDING_TOLERANCE = 1e-6
"""Relative widths and residuals so small are none."""

BEST_SO_FAR = "interrupted: this is the best so far"
STRATUM_WORDS = {"prevalence": "values", "uniqueness": "public columns"}


def shows_values(found: Attacked, reveal: bool) -> bool:
    """Whether values may be written: when asked for, or when the table does not have the truth."""
    return reveal or found.evidence.outside


def fractions(scores: Iterable[Score]) -> dict[str, float | None]:
    """The fraction right of the attack and of every baseline, over all private columns."""
    judged = list(scores)
    sizes = [each.records for each in judged]

    def mean(values: Sequence[float | None]) -> float | None:
        if not values or any(each is None for each in values):
            return None
        return math.fsum(s * v for s, v in zip(sizes, values, strict=True) if v) / sum(sizes)

    return {
        "recovered": mean([each.recovered for each in judged]),
        "within": mean([each.within for each in judged]),
        **{name: mean([getattr(each.baseline, name) for each in judged]) for name in GUESSES},
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
    everybody = score.comparison
    strata = [each for each in score.strata if each.comparison.targets < everybody.targets]
    return [
        ("everybody", everybody),
        *((f"{each.which} {STRATUM_WORDS[each.by]}", each.comparison) for each in strata),
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
        why = "the table does not have the truth" if found.evidence.outside else "not judged"
        outcome = f"reconstructed {sum(1 for _ in found.secrets):,} values ({why})"
    else:
        fraction, records = fractions(scores)["recovered"], sum(each.records for each in scores)
        outcome = f"recovered {percent(fraction or 0.0)} of {records:,} private values"
    return f"{outcome}, by the solver {found.reconstruction.solver}"


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
        noise = "without noise" if law is None else f"with noise of the law {law} laid over them"
        return f"the answers are the table's own, {noise}"
    if law is None:
        return "the answers were given; nothing is taken for granted about noise in them"
    return f"the answers were given, and taken to carry noise of the law {law}"


def widths(found: Attacked) -> NDArray[np.float64]:
    """How wide the interval of every unknown is that was not known beforehand."""
    problem = found.evidence.problem
    return np.asarray(found.reconstruction.width[problem.low < problem.high])


def is_narrow(found: Attacked) -> NDArray[np.bool_]:
    """Of which of these unknowns the interval leaves only what would count as recovered."""
    problem = found.evidence.problem
    reach = min(each.tolerance for each in found.scores.values())
    whole, wide = problem.whole[problem.low < problem.high], widths(found)
    return np.where(whole, wide < 1, wide <= 2 * reach)


def count_determined(found: Attacked) -> int:
    """How many values follow from answers without noise, and were not known before."""
    problem, made = found.evidence.problem, found.reconstruction
    if problem.noise is not None or made.residual > ROUNDING_TOLERANCE:
        return 0
    size = np.maximum(1.0, np.abs(made.values))
    unknown_before = (problem.low < problem.high) & found.evidence.told
    return int((unknown_before & (made.high - made.low <= ROUNDING_TOLERANCE * size)).sum())


def certainties(found: Attacked) -> NDArray[np.float64]:
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
    return 0.0 if size < 1e-9 else round_number(size, up=True)


def shown_value(value: Scalar) -> str:
    """A value that was found, as people read it."""
    if value is None:
        return "none of the values asked about"
    shown = json_value(value)
    return f"{shown:.6g}" if isinstance(shown, float) else str(shown)


def json_value(value: Scalar) -> Any:
    """A value as JSON writes it; a number without the last digits, which are rounding."""
    found = finite(value) if isinstance(value, float) else value
    if isinstance(found, float) and found.is_integer() and abs(found) < 2**53:
        return int(found)
    return number(found)


def finite(value: float | None) -> float | None:
    """A number to twelve digits; None for what JSON cannot say."""
    return float(f"{value:.12g}") if value is not None and math.isfinite(value) else None
