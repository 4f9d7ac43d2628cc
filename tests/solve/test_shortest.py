from random import Random

from exact_rank import generated

from casemate.solve.certificate import Certificate, Lines, certify
from casemate.solve.exposure import incremental
from casemate.solve.shortest import on_equations, shorten
from casemate.solve.system import System

LONG_WAY = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1], [2, 1, 0, 1], [1, 1, 0, 1]]


def test_a_long_certificate_becomes_a_short_one() -> None:
    system = System.of(LONG_WAY)
    long = next(certify(system, incremental(system).block, [0]))
    assert long.equations == (0, 1, 2, 3)
    (short,) = shorten(system, [long], seconds=10)
    assert short.coefficients == {4: 1, 5: -1}


def test_without_time_certificates_stay_as_they_are() -> None:
    system = System.of(LONG_WAY)
    long = list(certify(system, incremental(system).block, [0, 3]))
    assert list(shorten(system, long, seconds=0)) == long


def test_shortened_certificates_are_never_longer_and_still_prove() -> None:
    rng = Random(4)
    for _ in range(60):
        system = System.of(generated(rng))
        found = list(certify(system, incremental(system).block, range(system.columns)))
        for before, after in zip(found, shorten(system, found, seconds=10), strict=True):
            assert after.column == before.column
            assert len(after.coefficients) <= len(before.coefficients)
            assert Lines(system).proves(after)


def test_a_certificate_on_chosen_equations_uses_no_others() -> None:
    system = System.of(LONG_WAY)
    assert on_equations(system, [5, 4], 0) == Certificate({0: 1}, {4: 1, 5: -1}, 1)
    assert on_equations(system, [0, 1], 0) is None
    assert on_equations(system, [3], 0) is None
