from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from casemate.audit.region.coalition import annihilator, inverses, proportional, seen_from, shares
from casemate.exact import random_prime

seeds = st.integers(0, 2**32).map(Random)
primes = st.sampled_from([5, 101, 2**23 - 15, 2**61 - 1])


def random_points(rng: Random, prime: int, width: int, count: int) -> list[list[int]]:
    """Points with many coincidences: multiples and sums of a few."""
    points = [[rng.randrange(prime) for _ in range(width)] for _ in range(max(1, count // 2))]
    while len(points) < count:
        one, other = rng.choice(points), rng.choice(points)
        factor, also = rng.randrange(prime), rng.choice([0, 0, 1])
        points.append([(factor * a + also * b) % prime for a, b in zip(one, other, strict=True)])
    return points


@given(seeds, primes)
def test_columns_share_a_number_iff_they_are_in_one_proportion(rng: Random, prime: int) -> None:
    points = random_points(rng, prime, 3, 8)
    labels = proportional(np.array(points, np.int64).T, prime).tolist()
    for one, mine in zip(points, labels, strict=True):
        assert (mine == -1) == (not any(one))
        for other, its in zip(points, labels, strict=True):
            minors = [one[i] * other[j] - one[j] * other[i] for i in range(3) for j in range(i)]
            together = any(one) and any(other) and all(minor % prime == 0 for minor in minors)
            assert (mine == its != -1) == together


@given(seeds, primes)
def test_from_some_points_exactly_their_span_vanishes(rng: Random, prime: int) -> None:
    points = random_points(rng, prime, 4, 7)
    known = rng.sample(range(7), rng.randint(0, 3))
    left = seen_from(np.array(points, np.int64).T, known, prime)
    for place, point in enumerate(points):
        found = shares([points[k] for k in known], point, prime) if known else None
        inside = not any(point) if not known else found is not None
        assert (not left[:, place].any()) == inside
        if found:
            rebuilt = [
                sum(s * points[k][i] for s, k in zip(found, known, strict=True)) for i in range(4)
            ]
            assert [value % prime for value in rebuilt] == point


@given(seeds, primes)
def test_the_annihilator_is_orthogonal_and_as_large_as_it_can_be(rng: Random, prime: int) -> None:
    points = random_points(rng, prime, 4, 3)
    lines = annihilator(points, 4, prime)
    assert all(
        sum(a * b for a, b in zip(line, point, strict=True)) % prime == 0
        for line in lines
        for point in points
    )
    assert len(annihilator(lines, 4, prime)) == 4 - len(lines)


@given(st.lists(st.integers(1, 10**6), max_size=9), st.integers(0, 99).map(Random))
def test_inverses_are_inverses(numbers: list[int], rng: Random) -> None:
    prime = random_prime(40, rng.randbytes)
    found = inverses(numbers, prime)
    assert [a * b % prime for a, b in zip(numbers, found, strict=True)] == [1] * len(numbers)
