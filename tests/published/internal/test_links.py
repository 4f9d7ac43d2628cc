"""What ties the secrets of one record together."""

from fractions import Fraction
from itertools import product

import pytest

from casemate.exact import Box
from casemate.published import Range
from casemate.published.knowledge import LinkedColumns, links, reach, with_zero
from casemate.query.records import Cut

TWO, FIVE = Cut(Fraction(2)), Cut(Fraction(9, 2), strict=True)


def possible(secret: LinkedColumns, present: Range, box: Box) -> set[tuple[int, ...]]:
    """Whole numbers that keep all links: the columns in order."""
    spans = [
        range(int(low or 0), int(high or 0) + 1)
        for low, high in zip(box.low, box.high, strict=True)
    ]
    found = list(links(secret, box, present))
    return {
        values
        for values in product(*spans)
        if all(
            (link.low is None or link.low <= total) and (link.high is None or total <= link.high)
            for link in found
            for total in [
                sum(a * values[c] for c, a in zip(link.columns, link.coefficients, strict=True))
            ]
        )
    }


def test_the_values_of_a_category_exclude_each_other() -> None:
    secret, box = LinkedColumns((0, 1, 2), (), None), Box.of(3, 0, 1, integer=True)
    assert possible(secret, Range(None, None, False), box) == {
        (0, 0, 0),
        (1, 0, 0),
        (0, 1, 0),
        (0, 0, 1),
    }


def test_a_whole_number_lies_between_its_cuts() -> None:
    secret = LinkedColumns((), ((TWO, 1), (FIVE, 2)), 0)
    box = Box((Fraction(0),) * 3, (Fraction(7), Fraction(1), Fraction(1)), (True,) * 3)
    assert possible(secret, Range(Fraction(0), Fraction(7), True), box) == {
        (number, number >= 2, number >= 5) for number in range(8)
    }


@pytest.mark.parametrize(("low", "high"), [(3, 6), (-6, -3), (-1, 2)])
def test_a_number_that_may_be_missing_is_0_and_past_no_cut(low: int, high: int) -> None:
    present = Range(Fraction(low), Fraction(high), True)
    ends = with_zero(present)
    past = reach(TWO, present, missing=True)
    box = Box((ends[0], Fraction(0), past[0]), (ends[1], Fraction(1), past[1]), (True, True, True))
    secret = LinkedColumns((), ((Cut(None), 1), (TWO, 2)), 0)
    there = {(number, 1, int(number >= 2)) for number in range(low, high + 1)}
    assert possible(secret, present, box) == there | {(0, 0, 0)}


@pytest.mark.parametrize(
    ("low", "high", "whole", "expected"),
    [
        (0, 9, True, (0, 1)),
        (2, 9, True, (1, 1)),
        (0, 1, True, (0, 0)),
        (0, 2, True, (0, 1)),
        (None, 1, False, (0, 0)),
        (2, None, False, (1, 1)),
        (None, None, False, (0, 1)),
    ],
)
def test_a_range_says_which_cuts_are_past(
    low: int | None, high: int | None, whole: bool, expected: tuple[int, int]
) -> None:
    first, last = (None if end is None else Fraction(end) for end in (low, high))
    assert list(reach(TWO, Range(first, last, whole), missing=False)) == list(expected)


def test_a_strict_cut_at_the_end_of_a_range_is_not_past() -> None:
    above = Cut(Fraction(5), strict=True)
    assert not any(reach(above, Range(Fraction(0), Fraction(5), False), missing=False))
    assert list(reach(above, Range(Fraction(5), Fraction(9), False), missing=False)) == [0, 1]
