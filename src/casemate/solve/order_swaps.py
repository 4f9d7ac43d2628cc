"""Second tables by exchange: records that every question treats alike can trade their values."""

import numpy as np
from numpy.typing import NDArray

from casemate.solve.order_case import Case
from casemate.solve.order_verdict import Findings

SHIFTS = (2, 4, 8)  # fractions of a group by which its sorted values are turned


def swap(findings: Findings, records: NDArray[np.int64]) -> None:
    """Free whom an exchange of values frees among these records."""
    groups = [group for group in _alike(findings.case, records) if len(group) > 1]
    truth = findings.case.truth
    for shift in (*SHIFTS, len(truth)):
        before = [group[np.argsort(truth[group], kind="stable")] for group in groups]
        after = [np.roll(group, max(1, len(group) // shift)) for group in before]
        if groups:
            findings.offer(np.concatenate(before), truth[np.concatenate(after)])


def _alike(case: Case, records: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Records in the same questions with the same coefficients and the same bounds."""
    found: dict[tuple[object, ...], list[int]] = {}
    weights = _weights(case)
    for record in records.tolist():
        asked = case.incidence.of_record(record)
        key = (asked.tobytes(), weights.get(record), case.low[record], case.high[record])
        found.setdefault(key, []).append(record)
    return [np.array(group, np.int64) for group in found.values()]


def _weights(case: Case) -> dict[int, tuple[int, ...]]:
    """The coefficients of each record in the sums that have them, in the order of the questions."""
    found: dict[int, tuple[int, ...]] = {}
    for question in case.questions:
        if question.coefficients is not None:
            factors = question.coefficients.tolist()
            for record, factor in zip(question.members.tolist(), factors, strict=True):
                found[record] = (*found.get(record, ()), factor)
    return found
