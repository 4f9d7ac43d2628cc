"""A whole round of two sites, two blocks of two items and two phases, with every probability.

The threshold's noise has weight r^|x| on the whole numbers, that of the Binary Mechanism s^|x| with
s^2 = r, because its epsilon / 4 is split over two levels; so e^(epsilon / 4) = 1 / r.

The round is that of `Phases`, written down a second time with exact fractions.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import pytest
from small_mechanisms import laplace_at_most

BLOCKS, SIZE, LEVEL = 2, 2, 2
Thresholds = tuple[int, ...]  # of block j of site i at 2i + j
Ends = tuple[int, ...]  # the items that ended phases
AtMost = Callable[[int], Fraction]


def block_of(where: tuple[int, ...], item: int) -> int:
    """The block into which an item falls."""
    site = where[item]
    return BLOCKS * site + where[:item].count(site) // SIZE


def bits_of(where: tuple[int, ...], thresholds: Thresholds) -> list[int]:
    """Whether each item sends a bit: it is the one its block has chosen."""
    offsets = [where[:item].count(site) % SIZE + 1 for item, site in enumerate(where)]
    return [int(offset == thresholds[block_of(where, item)]) for item, offset in enumerate(offsets)]


def threshold_law(decay: Fraction, redraw: bool) -> AtMost:
    lowest = laplace_at_most(-LEVEL, decay) if redraw else Fraction(0)

    @cache
    def at_most(bits: int) -> Fraction:
        if bits < 1:
            return Fraction(0)
        return (laplace_at_most(bits - LEVEL, decay) - lowest) / (1 - lowest)

    return at_most


@cache
def largest_ratio(counts: tuple[int, ...], others: tuple[int, ...], decay: Fraction) -> Fraction:
    """The largest ratio of the probabilities of the same totals, over all totals.

    The first total has noise of its own, and so has the second, which is that of both phases.
    """
    ratio, here, there = Fraction(1), 0, 0
    for count, other in zip(counts, others, strict=True):
        here, there = here + count, there + other
        ratio *= max(decay ** (abs(total - here) - abs(total - there)) for total in range(-3, 9))
    return ratio


def phases(bits: list[int], ends: Ends) -> tuple[int, ...]:
    return tuple(sum(bits[a + 1 : b + 1]) for a, b in pairwise((-1, *ends)))


def chance(bits: list[int], ends: Ends, at_most: AtMost) -> Fraction:
    """The probability that the phases end at exactly these items, but for the totals shown."""
    if not all(bits[end] for end in ends):
        return Fraction(0)
    found = Fraction(1)
    for count in phases(bits, ends):
        found *= at_most(count) - at_most(count - 1)
    if len(ends) < 2:
        found *= 1 - at_most(sum(bits[(ends[-1] if ends else -1) + 1 :]))
    return found


def neighbours() -> Iterator[tuple[int, Thresholds, Thresholds]]:
    for here in product((1, 2), repeat=2 * BLOCKS):
        for i in range(2 * BLOCKS):
            yield i, here, (*here[:i], 3 - here[i], *here[i + 1 :])


def ratio_of_a_round(decay: Fraction, noise: Fraction, redraw: bool = True) -> Fraction:
    """The largest over every order of six items, and so over every adversary."""
    at_most, worst = threshold_law(decay, redraw), Fraction(1)
    for where in product((0, 1), repeat=6):
        if not 2 <= sum(where) <= 4 or where[0]:
            continue  # a site has four items at most, and the sites are alike
        ends = [(), *((a,) for a in range(6)), *((a, b) for b in range(6) for a in range(b))]
        blocks = [block_of(where, item) for item in range(6)]
        for i, here, there in neighbours():
            one, other = bits_of(where, here), bits_of(where, there)
            for end in ends:
                if i in [blocks[item] for item in end]:
                    continue  # given away
                left, right = chance(one, end, at_most), chance(other, end, at_most)
                assert bool(left) == bool(right), "a transcript that gives away nothing else"
                if left:
                    totals = largest_ratio(phases(one, end), phases(other, end), noise)
                    worst = max(worst, left / right * totals)
    return worst


@pytest.mark.theorem("001: Lemma 5 (whole round)")
@pytest.mark.parametrize("root", [Fraction(1, 2), Fraction(3, 4), Fraction(9, 10)])
def test_a_whole_round_is_partially_private(root: Fraction) -> None:
    found = ratio_of_a_round(decay=root**2, noise=root)
    assert 1 < found <= root**-8, "e^epsilon, where e^(epsilon / 4) is the root to the power -2"


@pytest.mark.parametrize("root", [Fraction(9, 10), Fraction(19, 20)])
def test_the_sources_threshold_costs_more_than_is_stated(root: Fraction) -> None:
    """A threshold of 0 or less acts like 1, unless it is drawn again."""
    assert ratio_of_a_round(decay=root**2, noise=root, redraw=False) > root**-8


def test_the_mechanism_needs_its_noise() -> None:
    """The twin: with noise of a tenth of the scale the same round costs more than is stated."""
    root = Fraction(9, 10)
    assert ratio_of_a_round(decay=root**2, noise=root**10) > root**-8
