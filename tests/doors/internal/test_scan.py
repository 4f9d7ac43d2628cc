import pytest

from casemate.doors.measurement import read_cells
from casemate.errors import Misconfigured, ScanFailed


def test_cells_come_back_as_plain_integers() -> None:
    assert read_cells(lambda: [[1, True], (2**70,)], (2, 1)) == [[1, 1], [2**70]]


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


def test_cells_that_are_not_integers_are_a_programmer_s_mistake() -> None:
    with pytest.raises(TypeError):
        read_cells(lambda: [[0.5]], (1,))  # type: ignore[list-item]  # the mistake itself
