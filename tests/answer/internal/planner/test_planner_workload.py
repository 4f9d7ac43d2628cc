from itertools import combinations

import pytest

from casemate.answer.planner.workload import SAMPLE, Workload, usual_questions


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3), (4, 4, 4), (10, 16, 7, 6, 5, 2, 8, 2)])
def test_the_usual_questions_are_ranges_over_up_to_three_attributes(shape: tuple[int, ...]) -> None:
    work = usual_questions(shape)
    assert len(work.questions) == SAMPLE
    for asked in work.questions:
        (product,) = asked.parts[0].products
        assert product.ranges is not None
        assert all(first < end for first, end in product.ranges)
        assert len(product.scope) <= min(3, len(shape))


def test_everybody_has_the_same_ones_and_they_differ_among_each_other() -> None:
    texts = [asked.text for asked in usual_questions((10, 16, 7, 6)).questions]
    assert texts == [asked.text for asked in usual_questions((10, 16, 7, 6)).questions]
    assert len(set(texts)) > SAMPLE * 0.9


def test_every_two_attributes_are_looked_at_together() -> None:
    scopes = [asked.scope for asked in usual_questions((9,) * 8).questions]
    pairs = {pair for scope in scopes for pair in combinations(scope, 2)}
    assert pairs == set(combinations(range(8), 2))


def test_a_workload_has_questions() -> None:
    with pytest.raises(ValueError, match="at least one question"):
        Workload((), 1)
