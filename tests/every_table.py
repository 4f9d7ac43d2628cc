"""Every table there is, for auditing by brute force: nothing here is shared with the product.

Values are counted in units, so that a grid finer than the integers stands for the reals.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from random import Random

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order.case import Free, Verdicts
from casemate.exact import Exact, Kind, OrderQuestion

Tables = NDArray[np.int64]


def every_table(size: int, low: int, high: int, unit: int = 1) -> Tables:
    """All tables of `size` values from low to high, in steps of 1 / unit."""
    values = np.arange(low * unit, high * unit + 1)
    return np.array(np.meshgrid(*[values] * size, indexing="ij")).reshape(size, -1).T


def twice_the_answer(question: OrderQuestion, tables: Tables, unit: int = 1) -> tuple[Tables, int]:
    """Twice what each table gives, times a factor that makes it an integer, and that factor."""
    chosen = tables[:, question.members]
    size = chosen.shape[1]
    if question.value is not None:
        return 2 * _counted(question, chosen, Fraction(question.value) * unit), 1
    if question.kind in ("max", "min"):
        return 2 * (chosen.max(1) if question.kind == "max" else chosen.min(1)), unit
    if question.kind == "median":
        ordered = np.sort(chosen, axis=1)
        return ordered[:, (size - 1) // 2] + ordered[:, size // 2], unit
    if question.coefficients is not None:
        chosen = chosen * question.coefficients.astype(np.int64)
    return 2 * chosen.sum(1), unit * (size if question.kind == "avg" else 1)


def _counted(question: OrderQuestion, chosen: Tables, threshold: Fraction) -> Tables:
    scaled = chosen * threshold.denominator
    reached = scaled >= threshold.numerator
    if question.kind == "count_equal":
        reached &= scaled <= threshold.numerator
    counts: Tables = reached.sum(axis=1, dtype=np.int64)
    return counts


def consistent(questions: Sequence[OrderQuestion], tables: Tables, unit: int = 1) -> Tables:
    """The tables that give every published answer."""
    for question in questions:
        twice, factor = twice_the_answer(question, tables, unit)
        least, most = (math.ceil(2 * question.low * factor), math.floor(2 * question.high * factor))
        tables = tables[(least <= twice) & (twice <= most)]
    return tables


def verdicts(tables: Tables, truth: Sequence[int], width: int, unit: int = 1) -> str:
    """A letter for each record of some consistent tables: Exposed, Tight or Free."""
    apart = abs(tables - np.array(truth) * unit).max(axis=0)
    return "".join("E" if far == 0 else "F" if far >= width * unit else "T" for far in apart)


def ask(
    rng: Random, kind: Kind, truth: Sequence[int], members: Sequence[int], rounded: bool = False
) -> OrderQuestion:
    """A question of this kind that the truth answers; a rounded average is one to the half."""
    most = max(truth)
    thresholds: list[Exact] = [*range(most + 1), Fraction(1, 2)]
    value = rng.choice(thresholds) if "count" in kind else None
    factors = [rng.choice([-1, 1, 2]) for _ in members] if rng.random() < 0.3 else None
    blank = OrderQuestion.of(
        kind, members, 0, value=value, coefficients=factors if kind == "sum" else None
    )
    twice, factor = twice_the_answer(blank, np.array([truth]))
    answer, within = Fraction(int(twice[0]), 2 * factor), Fraction(0)
    if kind == "avg" and rounded:
        answer, within = Fraction(round(answer * 2), 2), Fraction(1, 4)
    return OrderQuestion(
        kind, blank.members, answer - within, answer + within, value, blank.coefficients
    )


def random_log(
    rng: Random, kinds: Sequence[Kind], size: int, high: int
) -> tuple[list[int], list[OrderQuestion]]:
    """Some values from 0 to `high`, and a few questions about them."""
    truth = rng.choices(range(high + 1), k=size)
    log = []
    for _ in range(rng.randint(1, 2 * size)):
        members = rng.sample(range(size), rng.randint(1, size))
        log.append(ask(rng, rng.choice(kinds), truth, members, rounded=rng.random() < 0.5))
    return truth, log


def letters(found: Verdicts) -> str:
    """The first letter of each record's verdict: Exposed, Free, Tight or Undecided."""
    return "".join(type(verdict).__name__[0] for verdict in found.records)


def recheck(
    found: Verdicts, log: Sequence[OrderQuestion], truth: Sequence[Exact], width: Exact
) -> None:
    """Assert that every free record has a second table, by plain arithmetic on fractions."""
    tables = [
        [Fraction(value or 0) for value in witness.applied_to(list(truth))]
        for witness in found.witnesses
    ]
    for table in tables:
        for question in log:
            assert question.low <= _plain(question, table) <= question.high
    for place, verdict in enumerate(found.records):
        if isinstance(verdict, Free):
            assert abs(tables[verdict.witness][place] - truth[place]) >= width


def _plain(question: OrderQuestion, table: Sequence[Fraction]) -> Exact:
    members: list[int] = question.members.tolist()
    value = question.value
    chosen = sorted(table[member] for member in members)
    if question.coefficients is not None:
        pairs = zip(question.coefficients.tolist(), members, strict=True)
        return sum((factor * table[member] for factor, member in pairs), Fraction(0))
    if value is not None:
        at_least = question.kind == "count_at_least"
        return sum(each == value or (at_least and each > value) for each in chosen)
    middle = len(chosen) // 2
    if question.kind == "median":
        return (chosen[middle] + chosen[-1 - middle]) / 2
    if question.kind in ("max", "min"):
        return chosen[-1] if question.kind == "max" else chosen[0]
    total = sum(chosen, Fraction(0))
    return total / len(chosen) if question.kind == "avg" else total
