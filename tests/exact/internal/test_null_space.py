from random import Random

import numpy as np
from exact_rank import generated
from hypothesis import given
from hypothesis import strategies as st

from casemate.exact import NullVectors, System, random_prime
from casemate.exact.primes import NARROW
from casemate.exact.unknowns import annuls, blocked, incremental

seeds = st.integers(0, 2**32).map(Random)


@given(seeds)
def test_null_vectors_of_both_forms_are_annulled(rng: Random) -> None:
    system = System.of(generated(rng))
    for null in blocked(system, rng.randbytes).null:
        assert annuls(system, null)
    for null in incremental(system, rng.randbytes).null:
        products = np.array(system.dense(), object) @ null.vectors.T.astype(object)
        assert not (products % null.prime).any()


def test_a_vector_that_is_not_annulled_is_noticed() -> None:
    null = NullVectors(random_prime(NARROW), 1, np.array([[1, 1]]))
    assert not annuls(System.of([[1, 1]]), null)
