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


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (OrderQuestion.of("sum", [], 0), 0),
        (OrderQuestion.of("count_equal", [], 0, value=1), 0),
        (OrderQuestion.of("avg", [], 0), None),
        (OrderQuestion.of("max", [], 0), None),
        (OrderQuestion.of("min", [], 0), None),
        (OrderQuestion.of("median", [], 0), None),
        (OrderQuestion.of("median", [0, 1, 2], 3), 3),  # an odd one is a member
        (OrderQuestion.of("sum", [0, 2], 2, coefficients=[2, -1]), 2),
    ],
)
def test_an_aggregate_of_nobody_is_null_and_holds_for_no_number(
    question: OrderQuestion, answer: int | None
) -> None:
    assert question.answer(VALUES) == answer
    assert question.holds(VALUES) == (answer is not None)


def test_a_rounded_answer_is_an_interval_that_contains_both_its_ends() -> None:
    question = OrderQuestion.of("avg", [0, 1], Fraction(2), within=Fraction(1, 2))
    assert [other for other in range(1, 6) if question.holds(np.array([1, other]))] == [2, 3, 4]


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
    with pytest.raises(ValueError, match="one lower and one upper"):
        Domain((0,), (1, 1))
