"""A few records that stand for all, against ranks in fractions over everybody."""

from collections import Counter
from itertools import product
from random import Random

import numpy as np
import pytest
from exact_rank import Matrix, determined, rank
from hypothesis import given
from hypothesis import strategies as st
from written_records import SketchedRecords, WrittenRecords

from casemate.exact import Proved, Sketches, determine, determine_sketched, pack_combinations
from casemate.exact.sketch import core, decode, times, with_rest_column


def systems(rng: Random, count: int) -> list[Matrix]:
    """0/1 equations over more records than equations, repeated and empty ones among them."""
    found = []
    for _ in range(count):
        rows, columns = rng.randint(1, 6), rng.randint(1, 12)
        share = rng.choice([0.2, 0.5, 0.8])
        matrix = [[int(rng.random() < share) for _ in range(columns)] for _ in range(rows)]
        matrix += [list(rng.choice(matrix)) for _ in range(rng.randint(0, 2))]
        rng.shuffle(matrix)
        found.append(matrix)
    return found


def check(matrix: Matrix, found: Proved) -> None:
    """Everything that is claimed, in fractions: the rank, who, by which, and how."""
    assert found.rank == rank(matrix)
    assert sorted(found.by) == determined(matrix)
    for record, equation in found.by.items():
        assert record in determined(matrix[: equation + 1])
        assert record not in determined(matrix[:equation])
    for record, certificate in found.certificates.items():
        total = np.zeros(len(matrix[0]), object)
        for equation, weight in certificate.coefficients.items():
            total = total + weight * np.array(matrix[equation], object)
        wanted = [certificate.divisor * (place == record) for place in range(len(matrix[0]))]
        assert total.tolist() == wanted
    assert found.by.keys() == found.certificates.keys()


@pytest.mark.theorem("002: Which records are exposed? (a few records for all)")
@pytest.mark.parametrize("count", [80, pytest.param(5_000, marks=pytest.mark.slow)])
def test_a_few_records_stand_for_all_of_them(rng: Random, count: int) -> None:
    for matrix in systems(rng, count):
        check(matrix, determine_sketched(WrittenRecords(matrix, rng)))
        check(matrix, determine_sketched(SketchedRecords(matrix, rng)))
    for matrix in systems(rng, 20):  # an empty sample will do
        check(matrix, determine_sketched(WrittenRecords(matrix, rng, sampled=0)))
        check(matrix, determine_sketched(SketchedRecords(matrix, rng, sampled=0)))


def test_sketches_and_scans_find_the_records_that_a_sample_misses(rng: Random) -> None:
    """With a sample of one record and four buckets, each of the three ways is taken often."""
    ways: Counter[str] = Counter()
    for matrix in systems(rng, 80):
        records = SketchedRecords(matrix, rng)
        check(matrix, determine_sketched(records))
        ways += records.ways
    assert min(ways[way] for way in ("sample", "sketch", "scan")) > 6


def test_a_claim_that_only_seems_to_hold_is_seen_through(rng: Random) -> None:
    """Without fingerprints the rest of the table is invisible; then the last check alone decides.

    The rank of what was sampled is still right, because the search looks at everybody.
    """
    for matrix in systems(rng, 30):
        check(matrix, determine_sketched(WrittenRecords(matrix, rng, marked=False)))


def test_records_that_stand_for_all_are_as_few_as_the_rank(rng: Random) -> None:
    matrix = [[int(rng.random() < 0.5) for _ in range(400)] for _ in range(30)]
    found = core(WrittenRecords(matrix, rng, sampled=60))
    assert len(found.places) == found.found.rank == 30


def test_many_equations_take_the_compiled_form(rng: Random) -> None:
    """The same people as an elimination of everything, past the size of Python's integers."""
    matrix = [[int(rng.random() < 0.1) for _ in range(500)] for _ in range(130)]
    matrix += [[int(j == k) for j in range(500)] for k in (3, 77)]
    whole = determine(with_rest_column(np.array(matrix, np.bool_)))
    found = determine_sketched(WrittenRecords(matrix, rng, sampled=200))
    assert sorted(found.by) == np.flatnonzero(whole.determined).tolist()
    assert found.rank == whole.rank


# Many combinations in one number ----------------------------------------------------------------

weights = st.one_of(st.integers(-3, 3), st.integers(-(2**70), 2**70))
combinations = st.lists(
    st.dictionaries(st.integers(0, 3), weights, min_size=1), min_size=1, max_size=6
)


@given(combinations)
def test_combinations_weighed_together_vanish_where_each_of_them_does(
    listed: list[dict[int, int]],
) -> None:
    tasks = list(pack_combinations(listed))
    for bits in product((0, 1), repeat=4):
        each = all(sum(w * bits[e] for e, w in c.items()) == 0 for c in listed)
        totals = [(sum(w * bits[e] for e, w in t.weights.items()), t.modulus) for t in tasks]
        assert all(abs(total) < 2**63 for total, _ in totals)
        assert each is all(
            (total % modulus if modulus else total) == 0 for total, modulus in totals
        )


def test_small_combinations_share_a_word() -> None:
    assert len(list(pack_combinations([{0: 1, 1: -1}] * 39))) == 1


# Sketches ---------------------------------------------------------------------------------------


def test_a_bucket_of_one_gives_its_name_and_a_bucket_of_two_does_not(rng: Random) -> None:
    prime = 8_388_593
    names = [(rng.randrange(2**15), rng.randrange(2**16)) for _ in range(2)]
    alone = [np.array([[1]]), *(np.array([[piece]]) for piece in names[0])]
    both = [np.array([[2]]), *(np.array([[a + b]]) for a, b in zip(*names, strict=True))]
    limits = (2**15, 2**16)
    assert decode(np.array([[5]]), prime, Sketches(tuple(alone), limits)) == [names[0]]
    shared = [np.concatenate(pair) for pair in zip(alone, both, strict=True)]
    assert decode(np.array([[prime - 1, 1]]), prime, Sketches(tuple(shared), limits)) == [names[1]]
    odd = decode(np.array([[2, 3]]), prime, Sketches(tuple(shared), limits))
    assert names[0] not in odd and names[1] not in odd


@given(st.integers(0, 2**32), st.sampled_from([8_388_593, 1_125_899_906_842_597]))
def test_products_modulo_a_prime_are_exact(seed: int, prime: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, prime, (3, 40)), rng.integers(0, 2**62, (40, 2))
    wanted = left.astype(object) @ right.astype(object) % prime
    assert (times(left, right, prime) == wanted).all()
