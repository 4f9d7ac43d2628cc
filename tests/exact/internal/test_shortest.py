from collections.abc import Iterator, Sequence
from random import Random

from exact_rank import follows, generated

from casemate.exact import (
    Certificate,
    IntegerRows,
    System,
    certify,
    certify_with,
    short_certificates,
)
from casemate.exact.determination import determine_incrementally

LONG_WAY = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1], [2, 1, 0, 1], [1, 1, 0, 1]]


def shorten(
    system: System, certificates: Sequence[Certificate], seconds: float
) -> Iterator[Certificate]:
    """Replace certificates by shorter ones where the time allows it."""
    lengths = [len(each.coefficients) for each in certificates]
    long = [each.target for each, length in zip(certificates, lengths, strict=True) if length > 2]
    found = short_certificates(system, long, seconds)
    for certificate, length in zip(certificates, lengths, strict=True):
        other = next(found) if length > 2 else None
        yield other if other and _size(other) < _size(certificate) else certificate


def _size(certificate: Certificate) -> tuple[int, int]:
    """Fewer equations first, then smaller coefficients."""
    weights = certificate.coefficients.values()
    return len(certificate.coefficients), sum(map(abs, weights))


def test_a_long_certificate_becomes_a_short_one() -> None:
    system = System.of(LONG_WAY)
    long = next(certify(system, determine_incrementally(system).block, [0]))
    assert long.equations == (0, 1, 2, 3)
    (shorter,) = shorten(system, [long], seconds=10)
    assert shorter.coefficients == {4: 1, 5: -1}


def test_without_time_certificates_stay_as_they_are() -> None:
    system = System.of(LONG_WAY)
    long = list(certify(system, determine_incrementally(system).block, [0, 3]))
    assert list(shorten(system, long, seconds=0)) == long


def test_a_certificate_on_chosen_equations_uses_no_others() -> None:
    system = System.of(LONG_WAY)
    assert certify_with(system, [5, 4], {0: 1}) == Certificate({0: 1}, {4: 1, 5: -1}, 1)
    assert certify_with(system, [0, 1], {0: 1}) is None
    assert certify_with(system, [3], {0: 1}) is None


def test_a_target_of_several_unknowns_has_a_short_certificate_too() -> None:
    system = System.of(LONG_WAY)
    (found,) = short_certificates(system, [{0: 1, 1: 1}], seconds=10)
    assert found == Certificate({0: 1, 1: 1}, {0: 1}, 1)


def test_a_shortened_certificate_proves_is_never_longer_and_needs_every_term() -> None:
    rng = Random(7)
    for _ in range(30):
        matrix = generated(rng)
        system = System.of(matrix)
        found = list(certify(system, determine_incrementally(system).block, range(system.columns)))
        for before, after in zip(found, shorten(system, found, seconds=10), strict=True):
            assert after.column == before.column and IntegerRows(system).proves(after)
            assert len(after.coefficients) <= len(before.coefficients)
            rows = [matrix[i] for i in after.equations]
            target = [int(j == after.column) for j in range(system.columns)]
            for left_out in range(len(rows)):
                rest = rows[:left_out] + rows[left_out + 1 :]
                assert not rest or not follows(rest, target)
