"""Partial differential privacy: a few samples may leak, chosen after the conversation.

Source     Source document 001, Definition 1 (differential privacy) and Definition 3 (partial
           differential privacy); what follows from them is in `generalisation`.
Guarantee  Decided exactly, in rationals, for datasets that differ in one sample (replaced).
           The source's e^epsilon is `ratio` here, so that a rational one stays exact.
Cost       One pass over neighbouring datasets and transcripts. The best leak function for delta = 0
           is found directly; for delta > 0 by trying all of them, up to a limit.
Departure  A leak is a function of one finite interaction's transcripts. The definition asks for
           one that serves every adversary; for delta = 0 the best one looks at one transcript at
           a time, so the interactions of all adversaries share it
           (`test_one_leak_function_serves_every_adversary`).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import combinations, product

from casemate.privacy.interaction import Interaction, Transcript, neighbours

Leak = Callable[[Transcript], frozenset[int]]
"""Which samples the transcript gives away: f_L in the source."""

Ratio = Fraction | float
"""A rational number, or `math.inf` where no finite one will do."""


def nothing(_: Transcript) -> frozenset[int]:
    """Leak nothing: with this, partial privacy is differential privacy."""
    return frozenset()


def leaked_at_most(interaction: Interaction, leak: Leak) -> int:
    """The largest number of samples that one transcript gives away: kappa in the source."""
    return max(len(leak(transcript)) for transcript in interaction.transcripts)


def is_private(interaction: Interaction, ratio: Fraction, delta: Fraction = Fraction(0)) -> bool:
    """Definition 1, with ratio = e^epsilon."""
    return is_partially_private(interaction, nothing, ratio, delta, kappa=0)


def is_partially_private(
    interaction: Interaction, leak: Leak, ratio: Fraction, delta: Fraction, kappa: int
) -> bool:
    """Definition 3 for this leak function, with ratio = e^epsilon."""
    if leaked_at_most(interaction, leak) > kappa:
        return False
    return delta_needed(interaction, leak, ratio) <= delta


def delta_needed(interaction: Interaction, leak: Leak, ratio: Fraction) -> Fraction:
    """The smallest delta for which Definition 3 holds with this leak function and ratio."""
    if ratio < 1:
        raise ValueError(f"need ratio = e^epsilon >= 1, got {ratio}")
    rows = _protected_rows(interaction, leak)
    return max((_excess(row, ratio) for row in rows), default=Fraction(0))


def ratio_needed(interaction: Interaction, leak: Leak, delta: Fraction = Fraction(0)) -> Ratio:
    """The smallest e^epsilon for which Definition 3 holds with this leak function and delta."""
    if not 0 <= delta <= 1:
        raise ValueError(f"need delta in [0, 1], got {delta}")
    rows = _protected_rows(interaction, leak)
    return max((_ratio_of_row(row, delta) for row in rows), default=Fraction(1))


def epsilon_of(ratio: Ratio) -> float:
    """The logarithm of a ratio, rounded up so that it never promises too much."""
    if ratio == math.inf:
        return math.inf
    return math.log1p(float(ratio - 1)) * (1 + 2**-48)


Row = list[tuple[Fraction, Fraction]]


def _protected_rows(interaction: Interaction, leak: Leak) -> Iterable[Row]:
    """For each pair of neighbours, the probabilities of the transcripts that must protect it.

    An event of Definition 3 is any set of these transcripts, so each of them counts by itself.
    """
    leaks = {transcript: leak(transcript) for transcript in interaction.transcripts}
    for i, here, there in neighbours(interaction):
        yield [
            (interaction.probability(t, here), interaction.probability(t, there))
            for t in interaction.transcripts
            if i not in leaks[t]
        ]


def _excess(row: Row, ratio: Fraction) -> Fraction:
    return sum((max(p - ratio * q, Fraction(0)) for p, q in row), Fraction(0))


def _ratio_of_row(row: Row, delta: Fraction) -> Ratio:
    """The smallest r >= 1 with sum(max(p - r q, 0)) <= delta, a piecewise linear function of r."""
    above, below = sum((p for p, q in row if not q), Fraction(0)), Fraction(0)
    if above > delta:
        return math.inf
    for p, q in sorted(((p, q) for p, q in row if q), key=lambda pq: pq[0] / pq[1], reverse=True):
        if above - p / q * below > delta:
            break  # the crossing lies between this breakpoint and the one before
        above, below = above + p, below + q
    return max(Fraction(1), (above - delta) / below) if below else Fraction(1)


def exposure(interaction: Interaction, transcript: Transcript, i: int) -> Ratio:
    """The largest ratio of this transcript's probabilities when only sample i changes."""
    groups: dict[tuple[int, ...], list[Fraction]] = {}
    for samples in interaction.law:
        rest = samples[:i] + samples[i + 1 :]
        groups.setdefault(rest, []).append(interaction.probability(transcript, samples))
    ratios = (max(g) / min(g) if min(g) else math.inf for g in groups.values() if max(g))
    return max(ratios, default=Fraction(1))


def best_leak(interaction: Interaction, kappa: int) -> Leak:
    """The leak function of at most kappa samples with the smallest ratio at delta = 0.

    Without delta each transcript stands alone, so leaking its kappa most exposed samples is best.
    """
    _check_kappa(kappa)
    return _look_up({t: _most_exposed(interaction, t, kappa) for t in interaction.transcripts})


def _most_exposed(interaction: Interaction, transcript: Transcript, kappa: int) -> frozenset[int]:
    ratios = {i: exposure(interaction, transcript, i) for i in range(interaction.size)}
    ranked = sorted(ratios, key=lambda i: ratios[i], reverse=True)
    return frozenset(i for i in ranked[:kappa] if ratios[i] > 1)


def _look_up(table: Mapping[Transcript, frozenset[int]]) -> Leak:
    return lambda transcript: table.get(transcript, frozenset())


def least_delta(
    interaction: Interaction, ratio: Fraction, kappa: int, limit: int = 100_000
) -> Fraction:
    """The smallest delta over all leak functions of at most kappa samples, by trying them all."""
    _check_kappa(kappa)
    transcripts = interaction.transcripts
    size = min(kappa, interaction.size)  # a larger leak never needs more delta
    choices = [frozenset(c) for c in combinations(range(interaction.size), size)]
    if len(choices) ** len(transcripts) > limit:
        raise ValueError(
            f"there are {len(choices)}^{len(transcripts)} leak functions and the limit is {limit}; "
            f"raise it, or give a leak function to delta_needed"
        )
    return min(
        delta_needed(interaction, _look_up(dict(zip(transcripts, leaks, strict=True))), ratio)
        for leaks in product(choices, repeat=len(transcripts))
    )


def _check_kappa(kappa: int) -> None:
    if kappa < 0:
        raise ValueError(f"need kappa >= 0 leaked samples, got {kappa}")
