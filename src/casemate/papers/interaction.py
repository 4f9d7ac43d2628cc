"""A finite conversation between a mechanism and its adversary, with every probability exact.

Source     Source document 001, section 2: the samples S, the transcript, the queries q_t and
           answers a_t, the posterior Q of the samples given a transcript, and Definition 2.
Guarantee  None of its own: it enumerates, in rationals, what the definitions talk about.
Cost       Everything is enumerated: |universe|^size datasets times the number of transcripts.

Partial differential privacy: a few samples may leak, chosen after the conversation.

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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
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
        return max(
            (abs(r.reply.answer - r.query(samples)) for r in transcript), default=Fraction(0)
        )

    def population_error(self, transcript: Transcript) -> Fraction:
        """How far the worst answer is from the query's value over fresh samples."""
        return max(
            (abs(r.reply.answer - self.population_value(r.query)) for r in transcript),
            default=Fraction(0),
        )

    def posterior_error(self, transcript: Transcript) -> Fraction:
        """How far the worst answer is from the query's mean over the posterior."""
        posterior = self.posterior(transcript)
        return max(
            (abs(r.reply.answer - _mean(r.query, posterior)) for r in transcript),
            default=Fraction(0),
        )

    def posterior_shift(self, transcript: Transcript) -> Fraction:
        """How far the transcript moved the mean of the query in it that it moved most."""
        posterior = self.posterior(transcript)
        queries = {r.query for r in transcript}
        return max(
            (abs(_mean(q, posterior) - self.population_value(q)) for q in queries),
            default=Fraction(0),
        )

    def is_sample_accurate(self, alpha: Fraction, beta: Fraction) -> bool:
        """Definition 2 for the samples: an error of alpha or more has probability <= beta."""
        return self.probability_that(lambda s, t: self.sample_error(s, t) >= alpha) <= beta

    def is_distributionally_accurate(self, alpha: Fraction, beta: Fraction) -> bool:
        """Definition 2 for the population: an error of alpha or more has probability <= beta."""
        return self.probability_of(lambda t: self.population_error(t) >= alpha) <= beta


def _mean(query: Query, law: Mapping[Dataset, Fraction]) -> Fraction:
    return sum((p * query(samples) for samples, p in law.items() if p), Fraction(0))


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


def decision_trees(
    queries: Sequence[Query], replies: Sequence[Reply], rounds: int
) -> Iterator[Adversary]:
    """Every deterministic adversary of so many rounds; a random one is a mixture of these."""
    pasts = [past for t in range(rounds) for past in product(replies, repeat=t)]
    for choice in product(queries, repeat=len(pasts)):
        yield _follow(dict(zip(pasts, choice, strict=True)))


def _follow(tree: Mapping[tuple[Reply, ...], Query]) -> Adversary:
    return lambda past: tree.get(tuple(turn.reply for turn in past))


def sensitivity(interaction: Interaction, query: Query) -> Fraction:
    """Definition 5: how much one sample can change the query."""
    values = {samples: query(samples) for samples in interaction.law}
    return max(
        (abs(values[s] - values[t]) for _, s, t in neighbours(interaction)), default=Fraction(0)
    )


def neighbours(interaction: Interaction) -> Iterator[tuple[int, Dataset, Dataset]]:
    """Every pair of datasets that differ in one sample, in both orders, with its position."""
    for samples in interaction.law:
        for i, x in product(range(interaction.size), range(len(interaction.prior))):
            if x != samples[i]:
                yield i, samples, (*samples[:i], x, *samples[i + 1 :])


# Partial privacy --------------------------------------------------------------------------------


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
