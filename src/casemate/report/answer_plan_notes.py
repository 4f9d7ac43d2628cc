"""What has to be said beside the numbers of a plan, in sentences."""

from fractions import Fraction

from casemate.answer.planner_comparison import Comparison
from casemate.answer.planner_forecasts import EXACT_GAUSSIAN, Forecast
from casemate.table.schema import Strategy


def notes(found: Comparison) -> list[str]:
    """Every note on a comparison."""
    told = [
        *found.notes,
        *(each.reason for each in found.universe.left_out),
        *_on_questions(found),
        *_on_people(found),
        *_on_unknown(found),
        *_on_baseline(found),
    ]
    return list(dict.fromkeys(told))


def said(error: float) -> str:
    """An error in people, to three digits.

    >>> said(0.01234), said(1234.5)
    ('0.0123', '1,230')
    """
    return f"{float(f'{error:.3g}'):,.10g}"


def amount(price: Fraction) -> str:
    """A price, to three digits."""
    return f"{float(price):.3g}"


def _on_questions(found: Comparison) -> list[str]:
    told = [
        "errors are predictions from the noise alone, in people; for a sum, in what one person can "
        "add at most"
    ]
    if found.log is not None and found.log.repeats:
        told.append("a question that is asked again is free, and is counted once")
    if found.history.questions or found.history.people is not None:
        told.append(
            f"{found.history.questions} questions were asked of the gate and it fired "
            f"{found.history.surprises} times; what was spent on it is spent, and another strategy "
            f"needs another budget"
        )
    return told


def _on_people(found: Comparison) -> list[str]:
    if found.people is None:
        return [
            "the number of people is not known, so there are no shares; give --people N, or ask "
            "once: the first answer measures it with noise"
        ]
    if found.people == found.history.people:
        return ["the number of people is the noised one of the transcript"]
    return ["the number of people is assumed"]


def _on_unknown(found: Comparison) -> list[str]:
    told = []
    starred = [each for each in found.forecasts if each.available and not each.checked]
    if starred:
        told.append(
            "* questions look at more attributes together than these tables have; what only more "
            "of them show is unknown, is in no prediction, and nothing checks it: it can be large"
        )
    warm = next((each for each in found.forecasts if each.strategy is Strategy.WARM), None)
    if warm is not None and warm.available and warm.wider:
        told.append(
            f"warm: the unknown part of such questions is bounded by the gate: {_bound(warm)}"
        )
    told.append(
        "cold: a guess; from nothing, errors were about an eighth of the gate's threshold, and the "
        "largest about the threshold, on the tables that were tried"
    )
    return told


def _bound(warm: Forecast) -> str:
    return f"no answer that passes is further off than {said(warm.proven or 0.0)} people"


def _on_baseline(found: Comparison) -> list[str]:
    if found.baseline.name != EXACT_GAUSSIAN:
        return ["delta is 0, so the baseline is Laplace noise: no Gaussian noise is pure"]
    return [
        "exact accounting of Gaussian noise is for questions that are all fixed in advance; the "
        "ledger allows them to be chosen along the way, which takes a little more noise"
    ]
