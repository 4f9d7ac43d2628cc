from fractions import Fraction

import numpy as np
import pytest

from casemate.exact import Domain, Kind, OrderQuestion
from casemate.exact.order_question import aggregate

VALUES = np.array([3, 1, 4, 1, 5, 9])


@pytest.mark.parametrize(
    ("kind", "threshold", "answer"),
    [
        ("sum", None, 23),
        ("avg", None, Fraction(23, 6)),
        ("max", None, 9),
        ("min", None, 1),
        ("median", None, Fraction(7, 2)),
        ("count_at_least", 4, 3),
        ("count_equal", 1, 2),
        ("count_equal", Fraction(1, 2), 0),
    ],
)
def test_an_aggregate_is_exact(kind: Kind, threshold: int | None, answer: int | Fraction) -> None:
    assert aggregate(kind, VALUES, threshold) == answer


@pytest.mark.parametrize("kind", ["avg", "max", "min", "median"])
def test_an_aggregate_of_nobody_is_null_and_no_number_answers_it(kind: Kind) -> None:
    assert aggregate(kind, VALUES[:0], None) is None
    assert not OrderQuestion.of(kind, [], 0).holds(VALUES)


def test_a_sum_and_a_count_of_nobody_are_zero() -> None:
    assert OrderQuestion.of("sum", [], 0).holds(VALUES)
    assert OrderQuestion.of("count_equal", [], 0, value=1).holds(VALUES)


def test_an_odd_median_is_a_member_and_an_even_one_lies_between_two() -> None:
    assert aggregate("median", np.array([5, 1, 2]), None) == 2
    assert aggregate("median", np.array([5, 1, 2, 4]), None) == 3


def test_a_rounded_answer_is_an_interval_that_contains_both_its_ends() -> None:
    question = OrderQuestion.of("avg", [0, 1], Fraction(2), within=Fraction(1, 2))
    assert [question.holds(np.array([1, other])) for other in range(1, 6)] == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_coefficients_weigh_a_sum() -> None:
    assert OrderQuestion.of("sum", [0, 2], 0, coefficients=[2, -1]).answer(VALUES) == 2


def test_values_beyond_64_bits_are_added_exactly() -> None:
    huge = np.array([2**80, 1], object)
    assert OrderQuestion.of("sum", [0, 1], 2**80 + 1).holds(huge)


def test_a_scaled_question_asks_the_same_of_scaled_values() -> None:
    asked = [
        OrderQuestion.of("sum", [0, 1], 4),
        OrderQuestion.of("median", [0, 1, 2, 3], 2),
        OrderQuestion.of("count_at_least", [0, 1, 2], 2, value=3),
    ]
    assert all(question.holds(VALUES) for question in asked)
    assert all(question.rescale(7).holds(7 * VALUES) for question in asked)


@pytest.mark.parametrize(
    ("kind", "members", "more", "message"),
    [
        ("max", [0, 0], {}, "distinct positions"),
        ("max", [0], {"value": 3}, "threshold"),
        ("count_equal", [0], {}, "threshold"),
        ("max", [0], {"coefficients": [1]}, "belong to a sum"),
        ("sum", [0, 1], {"coefficients": [1]}, "one coefficient"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(
    kind: Kind, members: list[int], more: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        OrderQuestion.of(kind, members, 0, **more)  # type: ignore[arg-type]  # wrong on purpose


def test_a_domain_has_two_bounds_for_each_record() -> None:
    with pytest.raises(ValueError, match="one lower and one upper"):
        Domain((0,), (1, 1))
