"""What an attack comes to, in the words and numbers that every form of its report shares."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.attack import Attacked
from casemate.attack.comparison import Comparison
from casemate.attack.score import Score
from casemate.query.expression import Scalar
from casemate.report.audit import number

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


def verdict(comparison: Comparison, determined: int) -> str:
    """What the difference to the guess without the target means, and what needs no comparison."""
    if determined and comparison.low <= 0:
        many = "1 value is" if determined == 1 else f"{determined:,} values are"
        return f"disclosure: {many} determined by the answers, though on average little is gained"
    if comparison.low > 0:
        return "disclosure: the attack is right more often than the best guess without the person"
    if comparison.high < 0:
        return "no disclosure: the best guess without the person is right more often"
    return "no disclosure is shown: what is right may be inference, and the difference chance"


def gap(comparison: Comparison) -> str:
    """How much more often the attack is right, and how surely."""
    return (
        f"{points(comparison.difference)} points ({points(comparison.low)} to "
        f"{points(comparison.high)}) for {comparison.targets} people"
    )


def parts(score: Score) -> list[tuple[str, Comparison]]:
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
