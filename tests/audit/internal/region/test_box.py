from fractions import Fraction

import pytest
from exact.regions import exact

from casemate.audit.region.collapse import collapse_region
from casemate.exact import Box, Region, System

SUM = System.of([[1, 1]], [3])


def test_a_box_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="column 0"):
        Box.of(2, 3, 2)
    with pytest.raises(ValueError, match="column 0"):
        Box((Fraction(1, 3),), (Fraction(2, 3),), (True,))
    with pytest.raises(ValueError, match="one low, high and integer"):
        Box((None,), (), (False,))


def test_a_region_needs_bounds_and_right_sides_for_everything() -> None:
    with pytest.raises(ValueError, match="2 columns"):
        Region.of(SUM, Box.of(3))
    with pytest.raises(ValueError, match="right sides"):
        Region.of(System.of([[1, 1]]), Box.of(2))
    with pytest.raises(ValueError, match="1 equations"):
        Region(SUM, Box.of(2), (), ())


def test_membership_is_exact() -> None:
    region = Region.of(SUM, Box.of(2, 0, 3), Fraction(1, 10))
    assert region.contains([Fraction(1), Fraction("2.1")])
    assert not region.contains([Fraction(1), Fraction("2.1000000000000000000001")])
    assert not region.contains([Fraction(-1), Fraction(4)])
    assert not Box.of(1, 0, 3, integer=True).contains([Fraction(1, 2)])


def test_whole_numbers_have_whole_ends() -> None:
    box = Box((Fraction(1, 2),) * 2, (Fraction(7, 2),) * 2, (True, False)).inward()
    assert (box.low, box.high) == (exact(1, "1/2"), exact(3, "7/2"))


def test_twins_have_equal_coefficients_and_bounds() -> None:
    system = System.of([[1, 1, 1, 0, 2, 1], [0, 0, 0, 1, 0, 0]], [9, 1])
    ends = [(0, 5), (0, 5), (0, 6), (0, 5), (0, 5), (2, 2)]
    low, high = (tuple(Fraction(end[side]) for end in ends) for side in (0, 1))
    found = collapse_region(Region.of(system, Box(low, high, (False,) * 6)))
    assert found.group.tolist() == [0, 0, 1, 2, 3, -1]
    assert found.size.tolist() == [2, 1, 1, 1]
    assert found.region.low == exact(7, 1)
    assert found.region.box.high[0] == 10
