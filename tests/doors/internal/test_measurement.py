from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from doors.doorway import EDITION, Doorway, in_memory, never, real

from casemate.doors import Measured, Measurement, PeopleTotal, open_transcript
from casemate.doors.measurement import read_cells
from casemate.doors.transcript import IN_MEMORY
from casemate.errors import Misconfigured, Refused, ScanFailed, TranscriptDamaged
from casemate.privacy.noise import (
    GaussianLaw,
    LaplaceLaw,
    Sources,
    discrete_gaussian,
    discrete_laplace,
    seeded_bits,
)

LAW = LaplaceLaw(Fraction(10))


@pytest.fixture
def doorway() -> Doorway:
    return in_memory()


def test_cells_leave_with_noise_of_the_stated_law_and_price(doorway: Doorway) -> None:
    door = doorway.measurement(real(seeded_bits(1)))
    found = door.measure("by sex", lambda: [30, 12], cells=2, law=LAW)
    noise = discrete_laplace(Fraction(10), 2, seeded_bits(1))
    values = (30 + int(noise[0]), 12 + int(noise[1]))
    assert found == Measured("by sex", "a1b2", "v1", "laplace", Fraction(10), values)
    assert doorway.ledger.spent().amount == Fraction(1, 10)
    assert [entry.content for entry in doorway.transcript.replay()] == [found]


def test_gaussian_noise_is_charged_in_zcdp() -> None:
    doorway = in_memory(delta=Fraction(1, 10**6))
    door = Measurement(
        doorway.ledger,
        doorway.transcript,
        EDITION,
        Sources(lambda scale, size: discrete_gaussian(scale, size, seeded_bits(2))),
    )
    law = GaussianLaw(Fraction(9), Fraction(2))
    found = door.measure("q", lambda: [5], cells=1, law=law)
    assert found.values == (5 + int(discrete_gaussian(Fraction(9), 1, seeded_bits(2))[0]),)
    assert doorway.ledger.spent().amount == Fraction(2, 162)


def test_the_same_question_again_is_free_identical_and_reads_nothing() -> None:
    doorway = in_memory(epsilon=Fraction(1, 10))
    first = doorway.measurement(real(seeded_bits(1))).measure("q", lambda: [7], cells=1, law=LAW)
    again = doorway.measurement(real(seeded_bits(2)))
    assert doorway.ledger.remaining() == 0
    assert again.measure("q", never, cells=1, law=LAW) == first
    assert len(doorway.charges) == 1


def test_other_noise_data_or_policy_is_another_measurement(doorway: Doorway) -> None:
    door = doorway.measurement(real(seeded_bits(1)))
    doors = [door] + [
        replace(door, edition=replace(EDITION, **change))
        for change in ({"policy": "c3"}, {"data": "v2"})
    ]
    for each in doors:
        each.measure("q", lambda: [7], cells=1, law=LAW)
    door.measure("q", lambda: [7], cells=1, law=LaplaceLaw(Fraction(20)))
    assert len(doorway.charges) == 4 == len(doorway.kinds)


def test_the_number_of_people_is_a_kind_of_its_own(doorway: Doorway) -> None:
    total = doorway.measurement().total(lambda: 48, law=LAW)
    assert isinstance(total, PeopleTotal) and total.value == 48
    assert doorway.measurement().total(never, law=LAW) == total
    assert doorway.kinds == ["total"]


def test_a_failure_of_the_scan_stays_charged_and_still_owes_its_draw(doorway: Doorway) -> None:
    def broken() -> Any:
        raise ValueError("4711")

    with pytest.raises(ScanFailed):
        doorway.measurement().measure("q", broken, cells=1, law=LAW)
    with pytest.raises(ScanFailed):
        doorway.measurement().measure("q", lambda: [1, 2], cells=1, law=LAW)
    assert len(doorway.charges) == 1
    assert doorway.measurement().measure("q", lambda: [7], cells=1, law=LAW).values == (7,)
    assert len(doorway.charges) == 1


def test_the_ledger_vouches_for_the_entry_and_notices_a_cut_transcript(doorway: Doorway) -> None:
    doorway.measurement().measure("q", lambda: [7], cells=1, law=LAW)
    (key,), newest = doorway.charges, doorway.transcript.newest()
    assert newest is not None
    assert doorway.ledger.outcome(key) == str(newest.head).encode()
    doorway.transcript = open_transcript(IN_MEMORY)
    with pytest.raises(TranscriptDamaged, match="the ledger vouches for entry 0"):
        doorway.measurement(never).measure("q", never, cells=1, law=LAW)


def test_the_same_noise_for_another_sensitivity_is_refused(doorway: Doorway) -> None:
    doorway.measurement().measure("q", lambda: [7], cells=1, law=LAW)
    with pytest.raises(Refused, match="another cost"):
        doorway.measurement().measure(
            "q", lambda: [7], cells=1, law=LaplaceLaw(Fraction(10), Fraction(2))
        )


# Reading cells --------------------------------------------------------------------------------


def test_cells_come_back_as_plain_integers_and_nothing_else_is_taken_for_one() -> None:
    assert read_cells(lambda: [[1, True], (2**70,)], (2, 1)) == [[1, 1], [2**70]]
    with pytest.raises(TypeError):
        read_cells(lambda: [[0.5]], (1,))  # type: ignore[list-item]  # a programmer's mistake


@pytest.mark.parametrize(
    "failure",
    [Misconfigured("row 17"), OverflowError("4711"), KeyError("4711"), OSError("x"), ValueError()],
)
def test_every_failure_has_one_constant_message_and_no_trace_of_its_reason(
    failure: Exception,
) -> None:
    def broken() -> list[list[int]]:
        raise failure

    with pytest.raises(ScanFailed, match=r"^the protected table could not be read") as told:
        read_cells(broken, (1,))
    assert told.value.__cause__ is None and told.value.__suppress_context__
    assert str(told.value) == str(ScanFailed())


@pytest.mark.parametrize("sizes", [(2,), (1, 1), ()])
def test_cells_of_another_number_than_the_public_one_are_a_failure(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ScanFailed):
        read_cells(lambda: [[4711]], sizes)
