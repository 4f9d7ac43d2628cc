from dataclasses import replace
from random import Random

import exact_rank
import numpy as np
from exact_rank import anti_hadamard, generated
from hypothesis import given
from hypothesis import strategies as st

from casemate.exact import Certificate, IntegerRows, System, determine, prove
from casemate.exact.proofs import JointProof

seeds = st.integers(0, 2**32).map(Random)


def proof_of(system: System, random: Random) -> JointProof:
    found = determine(system, random.randbytes)
    proof = prove(system, found.block.rows, found.determined, random.randbytes)
    assert proof is not None
    return proof


def combined(matrix: list[list[int]], certificate: Certificate) -> dict[int, int]:
    """The sum of multiples of equations, in plain Python and apart from the code tested."""
    totals = {
        j: sum(weight * matrix[i][j] for i, weight in certificate.coefficients.items())
        for j in range(len(matrix[0]))
    }
    return {j: total for j, total in totals.items() if total}


def test_everybody_determined_in_many_systems_is_proved_and_nobody_else() -> None:
    rng = Random(8)
    for _ in range(100):
        matrix = generated(rng)
        proof = proof_of(System.of(matrix), rng)
        assert list(proof.columns) == exact_rank.determined(matrix)
        assert all(combined(matrix, each) == each.target for each in proof.derived)
        rows = [[each.target.get(j, 0) for j in proof.columns] for each in proof.derived]
        assert exact_rank.rank(rows) == len(proof.columns) == len(rows)


@given(seeds)
def test_single_certificates_follow_from_the_joint_proof(rng: Random) -> None:
    system = System.of(generated(rng))
    proof = proof_of(system, rng)
    found = list(proof.certificates(proof.columns))
    assert tuple(sorted(each.column for each in found)) == proof.columns
    assert all(IntegerRows(system).proves(each) for each in found)


@given(seeds)
def test_an_unknown_that_is_not_determined_cannot_be_proved(rng: Random) -> None:
    system = System.of(generated(rng))
    found = determine(system, rng.randbytes)
    for column in np.flatnonzero(~found.determined).tolist():
        wrong = found.determined.copy()
        wrong[column] = True
        assert prove(system, found.block.rows, wrong, rng.randbytes) is None


def test_a_proof_with_a_wrong_or_missing_part_does_not_hold() -> None:
    system = System.of([[1, 1, 1], [0, 1, 1], [0, 0, 1]])
    proof = proof_of(system, Random(0))
    assert proof.holds(system)
    first, *others = proof.derived
    wrong = replace(first, coefficients={i: 2 * w for i, w in first.coefficients.items()})
    assert not JointProof(proof.columns, (wrong, *others)).holds(system)
    assert not JointProof(proof.columns, tuple(others)).holds(system)
    assert not JointProof(proof.columns[:-1], proof.derived).holds(system)
    assert not proof.holds(System.of([[1, 1, 1], [0, 1, 1], [0, 1, 1]]))


def test_a_hundred_and_thirty_jointly_determined_unknowns_are_proved() -> None:
    system = System.of(anti_hadamard(130))
    proof = proof_of(system, Random(0))
    assert len(proof.columns) == 130
    assert max(abs(w) for each in proof.derived for w in each.coefficients.values()) == 1
