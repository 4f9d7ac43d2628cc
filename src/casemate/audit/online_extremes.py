"""Several minima and maxima at once, before they are answered.

One of them is decided by trying every kind of answer (`OnlineExtremes`). Several that are linked
are decided together, by trying every answer of the first before the second, and so on.
"""

import math
from collections.abc import Sequence

import numpy as np

from casemate.audit.online_questions import ExtremeQuestion, Family
from casemate.errors import Refused
from casemate.solve.components import Components
from casemate.solve.order_online import OnlineExtremes

MOST_ANSWERS = 1_000
"""Combinations of answers up to which linked questions are decided together."""


def would_expose(
    asked: Sequence[ExtremeQuestion], past: OnlineExtremes, parts: Components[Family]
) -> bool:
    """Whether some answers that are consistent with the past would determine a record.

    Raises Refused where there are too many to try.
    """
    if any(past.would_expose(each.kind, each.members.tolist()) for each in asked):
        return True
    return any(_together(group, past) for group in _linked(asked, parts) if len(group) > 1)


def _linked(
    asked: Sequence[ExtremeQuestion], parts: Components[Family]
) -> list[list[ExtremeQuestion]]:
    """The questions, those together that earlier questions or common records link."""
    joined = parts.copy()
    for question in asked:
        joined.join(question.members, Family.EXTREMES)
    groups: dict[int, list[ExtremeQuestion]] = {}
    for question in asked:
        groups.setdefault(joined.component(int(question.members[0])), []).append(question)
    return list(groups.values())


def _together(asked: Sequence[ExtremeQuestion], past: OnlineExtremes) -> bool:
    """Whether some answers to all of these questions would determine a record."""
    everybody = np.unique(np.concatenate([each.members for each in asked])).tolist()
    known = len(past.answers(everybody))
    if math.prod(known + 2 * place for place in range(len(asked))) > MOST_ANSWERS:
        raise Refused(
            "earlier answers link its minima and maxima in too many ways to decide them together; "
            "ask for one of them at a time"
        )
    return _some_answers_expose(asked, past, everybody)


def _some_answers_expose(
    asked: Sequence[ExtremeQuestion], past: OnlineExtremes, everybody: list[int]
) -> bool:
    """Try every kind of answer to the first before the rest; the last tries its own."""
    first, *rest = asked
    members = first.members.tolist()
    if past.would_expose(first.kind, members):
        return True
    for answer in past.answers(everybody) if rest else ():
        if past.is_possible(first.kind, members, answer):
            later = past.copy()
            later.record(first.kind, members, answer)
            if _some_answers_expose(rest, later, everybody):
                return True
    return False
