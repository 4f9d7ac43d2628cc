"""Mechanisms small enough to enumerate, and the adversaries that talk to them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from casemate.papers.interaction import (
    Adversary,
    Dataset,
    MeanQuery,
    Mechanism,
    Query,
    QueryRound,
    Reply,
    Transcript,
)

ZERO, ONE = Fraction(0), Fraction(1)
FAIR = (Fraction(1, 2), Fraction(1, 2))


def ones_at(size: int, *positions: int) -> MeanQuery:
    """The number of ones at these positions, divided by the number of samples."""
    return MeanQuery(tuple((ZERO, ONE if i in positions else ZERO) for i in range(size)))


@dataclass(frozen=True)
class Extreme:
    """The largest of the samples, times a factor: not linear, and with any sensitivity."""

    factor: int

    def __call__(self, samples: Dataset, /) -> Fraction:
        return Fraction(self.factor * max(samples))


def asking(*queries: Query) -> Adversary:
    """An adversary that asks these queries whatever it hears."""
    return lambda past: queries[len(past)] if len(past) < len(queries) else None


# Randomised response ----------------------------------------------------------------------------


def randomised_response(truth: Fraction) -> Mechanism:
    """Tell each sample that the query touches truly with this probability, else flipped."""

    def reply(samples: Dataset, _: Transcript, query: Query) -> Mapping[Reply, Fraction]:
        assert isinstance(query, MeanQuery)
        asked = [i for i, part in enumerate(query.parts) if len(set(part)) > 1]
        law: dict[Reply, Fraction] = {}
        for told in product((0, 1), repeat=len(asked)):
            chance = ONE
            for i, bit in zip(asked, told, strict=True):
                chance *= truth if samples[i] == bit else 1 - truth
            law[Reply(Fraction(sum(told), len(samples)), told)] = chance
        return law

    return reply


def two_replies(size: int) -> tuple[Reply, Reply]:
    """What randomised response can say to a query that touches one sample of `size`."""
    return Reply(ZERO, (0,)), Reply(Fraction(1, size), (1,))


# Leaky response: gives away a sample chosen after looking -----------------------------------------


def pointing(dummies: int, points: int = 1) -> Mechanism:
    """In its first rounds, point at a sample that is 1, or at a dummy, all alike, none twice.

    It answers the query with what its pointing gave away, so it is right about those samples.
    """

    def reply(samples: Dataset, past: Transcript, query: Query) -> Mapping[Reply, Fraction]:
        known = pointed_at(past)
        fresh = [i for i, x in enumerate(samples) if x == 1 and i not in known]
        answer = query(tuple(int(i in known) for i in range(len(samples))))
        if len(past) >= points:
            return {Reply(answer): ONE}
        each = Fraction(1, len(fresh) + dummies)
        return {Reply(answer): dummies * each} | {Reply(answer, i): each for i in fresh}

    return reply


def pointed_at(transcript: Transcript) -> frozenset[int]:
    """The leak function of `pointing`: the samples that the transcript names."""
    return frozenset(r.reply.shown for r in transcript if isinstance(r.reply.shown, int))


def chase(size: int, points: int) -> Adversary:
    """Let it point, then ask about exactly the samples that it pointed at."""

    def ask(past: Transcript) -> Query | None:
        if len(past) < points:
            return ones_at(size)
        return ones_at(size, *pointed_at(past)) if len(past) == points else None

    return ask


# The noisy threshold of source document 001, Algorithms 1 and 2, without its Binary Mechanism -----


@dataclass(frozen=True)
class Arrivals:
    """How many bits the sites have sent after these arrivals, divided by the number of blocks.

    Sample i * blocks + j is the threshold of block j of site i, less one.
    """

    where: tuple[int, ...]  # the site of each item so far
    blocks: int
    length: int  # of a block

    def __call__(self, samples: Dataset, /) -> Fraction:
        return Fraction(self.sent(samples), len(samples))

    def sent(self, samples: Dataset) -> int:
        """The number of blocks whose count has reached their threshold."""
        counts = [self.where.count(i // self.blocks) for i in range(len(samples))]
        offsets = [counts[i] - (i % self.blocks) * self.length for i in range(len(samples))]
        return sum(offset > x for offset, x in zip(offsets, samples, strict=True))

    def active(self) -> int:
        """The sample whose block the latest item fell into."""
        site = self.where[-1]
        return site * self.blocks + (self.where.count(site) - 1) // self.length


def laplace_at_most(x: int, decay: Fraction) -> Fraction:
    """The probability that noise of weight decay^|x| is at most x."""
    return decay**-x / (1 + decay) if x < 0 else 1 - decay ** (x + 1) / (1 + decay)


def noisy_threshold(level: int, decay: Fraction, redraw: bool) -> Mechanism:
    """Say so when the bits of a phase reach level + noise; the answer counts whole phases.

    With `redraw` a threshold below 1 is drawn again; without, it acts like 1, as in the source.
    """
    lowest = laplace_at_most(-level, decay) if redraw else ZERO

    def at_most(bits: int) -> Fraction:
        if bits < 1:
            return ZERO
        return (laplace_at_most(bits - level, decay) - lowest) / (1 - lowest)

    def reply(samples: Dataset, past: Transcript, query: Query) -> Mapping[Reply, Fraction]:
        assert isinstance(query, Arrivals)
        updates = [r.query for r in past if r.reply.shown]
        bits = query.sent(samples) - (_sent(updates[-1], samples) if updates else 0)
        before = _sent(past[-1].query, samples) if past else 0
        still = Reply(Fraction(level * len(updates), len(samples)), False)
        crossed = Reply(Fraction(level * (len(updates) + 1), len(samples)), True)
        if query.sent(samples) == before:
            return {still: ONE}
        hazard = (at_most(bits) - at_most(bits - 1)) / (1 - at_most(bits - 1))
        return {crossed: hazard, still: 1 - hazard}

    return reply


def _sent(query: Query, samples: Dataset) -> int:
    assert isinstance(query, Arrivals)
    return query.sent(samples)


def triggering(transcript: Transcript) -> frozenset[int]:
    """The leak function of the source's Definition 4: the active sample at each update."""
    updates = [r.query for r in transcript if r.reply.shown]
    return frozenset(query.active() for query in updates if isinstance(query, Arrivals))


def feeding(where: Sequence[int], blocks: int, length: int) -> Adversary:
    """Send items to these sites whatever is heard."""
    return asking(*(Arrivals(tuple(where[: t + 1]), blocks, length) for t in range(len(where))))


def stop_on_change(sites: int, rounds: int, blocks: int, length: int) -> Adversary:
    """Feed one site until the output changes, then leave it alone and feed the next."""

    def ask(past: Transcript) -> Query | None:
        if len(past) == rounds:
            return None
        site = sum(bool(turn.reply.shown) for turn in past) % sites
        return Arrivals((*_sites(past), site), blocks, length)

    return ask


def _sites(past: Sequence[QueryRound]) -> tuple[int, ...]:
    if not past:
        return ()
    query = past[-1].query
    assert isinstance(query, Arrivals)
    return query.where


def decision_trees(
    queries: Sequence[Query], replies: Sequence[Reply], rounds: int
) -> Iterator[Adversary]:
    """Every deterministic adversary of so many rounds; a random one is a mixture of these."""
    pasts = [past for t in range(rounds) for past in product(replies, repeat=t)]
    for choice in product(queries, repeat=len(pasts)):
        yield _follow(dict(zip(pasts, choice, strict=True)))


def _follow(tree: Mapping[tuple[Reply, ...], Query]) -> Adversary:
    return lambda past: tree.get(tuple(turn.reply for turn in past))
