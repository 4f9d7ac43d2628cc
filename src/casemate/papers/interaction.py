"""A finite conversation between a mechanism and its adversary, on which privacy is decided exactly.

Every probability is a rational. Differential privacy bounds what every sample gives away; under
partial differential privacy a few samples may leak, chosen after the conversation.

Source     Source document 001, section 2: the samples S, the transcript, the queries q_t and
           answers a_t, the posterior Q of the samples given a transcript, Definition 1
           (differential privacy), Definition 2 and Definition 3 (partial differential privacy);
           what follows from them is in `casemate.privacy.generalisation`.
Guarantee  It enumerates, in rationals, what the definitions talk about, and decides privacy exactly
           for datasets that differ in one sample (replaced). The source's e^epsilon is `ratio`
           here, so that a rational one stays exact.
Cost       Everything is enumerated: |universe|^size datasets times the number of transcripts, and
           one pass over neighbouring ones. The best leak function for delta = 0 is found directly.
Departure  A leak is a function of one finite interaction's transcripts. The definition asks for
           one that serves every adversary; for delta = 0 the best one looks at one transcript at
           a time, so the interactions of all adversaries share it
           (`test_one_leak_function_serves_every_adversary`).
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Protocol

Dataset = tuple[int, ...]
"""The samples S, each given by its position in the universe."""


class Query(Protocol):
    """A question about the samples; a hashable value, because transcripts contain it."""

    def __call__(self, samples: Dataset, /) -> Fraction:
        """Return the query's value on these samples."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class MeanQuery:
    """The mean of one function per sample, each with values between 0 and 1.

    >>> MeanQuery(((Fraction(0), Fraction(1)), (Fraction(1, 2), Fraction(1, 2))))((1, 0))
    Fraction(3, 4)
    """

    parts: tuple[tuple[Fraction, ...], ...]  # parts[i][x] is q_i(x)

    def __post_init__(self) -> None:
        if not self.parts or not all(0 <= v <= 1 for part in self.parts for v in part):
            raise ValueError("a linear query needs one function per sample, with values in [0, 1]")

    def __call__(self, samples: Dataset, /) -> Fraction:
        """Return the query's value on these samples."""
        total = sum((part[x] for part, x in zip(self.parts, samples, strict=True)), Fraction(0))
        return total / len(self.parts)

    @property
    def touched(self) -> int:
        """On how many samples the value depends: m-hat in the source."""
        return sum(len(set(part)) > 1 for part in self.parts)


@dataclass(frozen=True)
class Reply:
    """What the mechanism says: the answer, and anything else that it lets the adversary see."""

    answer: Fraction
    shown: Hashable = None


@dataclass(frozen=True)
class QueryRound:
    """One query and the reply to it."""

    query: Query
    reply: Reply


Transcript = tuple[QueryRound, ...]

Mechanism = Callable[[Dataset, Transcript, Query], Mapping[Reply, Fraction]]
"""The law of the next reply, given the samples and everything said so far."""

Adversary = Callable[[Transcript], Query | None]
"""The next query, given everything said so far; None ends the conversation."""


@dataclass(frozen=True)
class Interaction:
    """The law of the transcript for every dataset, and the law of one sample."""

    prior: tuple[Fraction, ...]  # P, over the universe
    size: int  # m
    law: Mapping[Dataset, Mapping[Transcript, Fraction]]

    def __post_init__(self) -> None:
        laws = [self.prior, *(tuple(row.values()) for row in self.law.values())]
        if any(sum(law) != 1 or min(law) < 0 for law in laws):
            raise ValueError("the prior, and each dataset's law, need probabilities that sum to 1")
        if set(self.law) != set(product(range(len(self.prior)), repeat=self.size)):
            raise ValueError("the law must cover every dataset of this size over this universe")

    @cached_property
    def transcripts(self) -> tuple[Transcript, ...]:
        """Every transcript that some dataset can lead to."""
        return tuple(dict.fromkeys(t for row in self.law.values() for t, p in row.items() if p))

    def probability(self, transcript: Transcript, samples: Dataset) -> Fraction:
        """The probability of the transcript when the mechanism holds these samples."""
        return self.law[samples].get(transcript, Fraction(0))

    @cached_property
    def weights(self) -> Mapping[Dataset, Fraction]:
        """The probability of each dataset, its samples drawn independently from the prior."""
        return {s: math.prod((self.prior[x] for x in s), start=Fraction(1)) for s in self.law}

    def probability_that(self, event: Callable[[Dataset, Transcript], bool]) -> Fraction:
        """The probability of an event of samples and transcript together."""
        total = Fraction(0)
        for samples, row in self.law.items():
            hits = sum((p for t, p in row.items() if p and event(samples, t)), Fraction(0))
            total += self.weights[samples] * hits
        return total

    @cached_property
    def marginal(self) -> Mapping[Transcript, Fraction]:
        """The law of the transcript when the samples come from the prior; positive entries only."""
        mixture = {
            t: sum((w * self.probability(t, s) for s, w in self.weights.items()), Fraction(0))
            for t in self.transcripts
        }
        return {t: p for t, p in mixture.items() if p}

    def probability_of(self, event: Callable[[Transcript], bool]) -> Fraction:
        """The probability of an event of the transcript alone."""
        return sum((p for t, p in self.marginal.items() if event(t)), Fraction(0))

    def posterior(self, transcript: Transcript) -> Mapping[Dataset, Fraction]:
        """The law of the samples given the transcript: Q in the source."""
        total = self.marginal.get(transcript)
        if not total:
            raise ValueError("this transcript has probability 0 under the prior: no posterior")
        return {s: w * self.probability(transcript, s) / total for s, w in self.weights.items()}

    def population_value(self, query: Query) -> Fraction:
        """The mean of the query over fresh samples: q(P^m) in the source."""
        return _mean(query, self.weights)

    def sample_error(self, samples: Dataset, transcript: Transcript) -> Fraction:
        """How far the worst answer is from the query's value on the samples."""
        return _largest(r.reply.answer - r.query(samples) for r in transcript)

    def population_error(self, transcript: Transcript) -> Fraction:
        """How far the worst answer is from the query's value over fresh samples."""
        return _largest(r.reply.answer - self.population_value(r.query) for r in transcript)

    def posterior_shift(self, transcript: Transcript) -> Fraction:
        """How far the transcript moved the mean of the query in it that it moved most."""
        posterior, queries = self.posterior(transcript), {r.query for r in transcript}
        return _largest(_mean(q, posterior) - self.population_value(q) for q in queries)

    def is_sample_accurate(self, alpha: Fraction, beta: Fraction) -> bool:
        """Definition 2 for the samples: an error of alpha or more has probability <= beta."""
        return self.probability_that(lambda s, t: self.sample_error(s, t) >= alpha) <= beta

    def is_distributionally_accurate(self, alpha: Fraction, beta: Fraction) -> bool:
        """Definition 2 for the population: an error of alpha or more has probability <= beta."""
        return self.probability_of(lambda t: self.population_error(t) >= alpha) <= beta


def _mean(query: Query, law: Mapping[Dataset, Fraction]) -> Fraction:
    return sum((p * query(samples) for samples, p in law.items() if p), Fraction(0))


def _largest(differences: Iterable[Fraction]) -> Fraction:
    return max(map(abs, differences), default=Fraction(0))


def interact(
    prior: tuple[Fraction, ...], size: int, mechanism: Mechanism, adversary: Adversary
) -> Interaction:
    """Play the adversary against the mechanism on every dataset, keeping every probability."""
    datasets = product(range(len(prior)), repeat=size)
    return Interaction(prior, size, {s: dict(_play(s, mechanism, adversary)) for s in datasets})


def _play(
    samples: Dataset, mechanism: Mechanism, adversary: Adversary, past: Transcript = ()
) -> Iterator[tuple[Transcript, Fraction]]:
    query = adversary(past)
    if query is None:
        yield past, Fraction(1)
        return
    for reply, chance in mechanism(samples, past, query).items():
        if chance:
            future = _play(samples, mechanism, adversary, (*past, QueryRound(query, reply)))
            yield from ((transcript, chance * p) for transcript, p in future)


def sensitivity(interaction: Interaction, query: Query) -> Fraction:
    """Definition 5: how much one sample can change the query."""
    values = {samples: query(samples) for samples in interaction.law}
    return _largest(values[s] - values[t] for _, s, t in neighbours(interaction))


def neighbours(interaction: Interaction) -> Iterator[tuple[int, Dataset, Dataset]]:
    """Every pair of datasets that differ in one sample, in both orders, with its position."""
    for samples in interaction.law:
        for i, x in product(range(interaction.size), range(len(interaction.prior))):
            if x != samples[i]:
                yield i, samples, (*samples[:i], x, *samples[i + 1 :])


# Partial differential privacy -------------------------------------------------------------------


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
    if kappa < 0:
        raise ValueError(f"need kappa >= 0 leaked samples, got {kappa}")
    table = {t: _most_exposed(interaction, t, kappa) for t in interaction.transcripts}
    return lambda transcript: table.get(transcript, frozenset())


def _most_exposed(interaction: Interaction, transcript: Transcript, kappa: int) -> frozenset[int]:
    ratios = {i: exposure(interaction, transcript, i) for i in range(interaction.size)}
    ranked = sorted(ratios, key=lambda i: ratios[i], reverse=True)
    return frozenset(i for i in ranked[:kappa] if ratios[i] > 1)
