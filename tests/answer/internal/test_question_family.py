"""The shares of all questions of a family are at most one together: enumerated on small grids."""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest

from casemate.answer.question_family import QuestionFamily, _declared_share, _mask_share
from casemate.grid import CellSplit, Floats, Mask, Product, Scope

Shape = tuple[int, ...]
PAIRS: tuple[Scope, ...] = ((0, 1), (0, 2), (1, 2))


def masks(size: int) -> list[Mask]:
    """All sets of codes that are neither empty nor all of them."""
    every = [np.array(bits, np.bool_) for bits in product((False, True), repeat=size)]
    return [each for each in every if each.any() and not each.all()]


def weighted(weights: Floats) -> list[Floats]:
    """Declared weights on all codes and on each set of them, without those that are alike."""
    kept = [weights * mask for mask in [*masks(weights.size), np.ones(weights.size, np.bool_)]]
    different = {each.tobytes(): each for each in kept if len(set(each.tolist()) - {0.0, 1.0})}
    return list(different.values())


def all_products(
    shape: Shape, scopes: tuple[Scope, ...], weights: dict[int, list[Floats]]
) -> Iterator[Product]:
    covered = {part for s in scopes for n in range(len(s) + 1) for part in combinations(s, n)}
    for scope in sorted(covered):
        choices = []
        for a in scope:
            sets: list[Floats | Mask] = list(masks(shape[a]))
            for each in weights.get(a, ()):
                sets += weighted(each)
            choices.append(sets)
        for chosen in product(*choices):
            weighed = {a: np.asarray(f, np.float64) for a, f in zip(scope, chosen, strict=True)}
            yield Product(shape, {}, weighed)


def all_means(
    family: QuestionFamily, weights: dict[int, list[Floats]]
) -> Iterator[tuple[Product, Product]]:
    """Every declared attribute over the count of every set of codes of covered attributes."""
    shape = family.shape
    for value, declared in weights.items():
        present = np.arange(shape[value]) < shape[value] - 1
        for scope in sorted(family.covered):
            for chosen in product(*(masks(shape[a]) for a in scope)):
                masked = dict(zip(scope, chosen, strict=True))
                masked[value] = masked.get(value, present) & present
                if not masked[value].any() or (
                    value in scope and masked[value].sum() == present.sum()
                ):
                    continue
                for each, absent in product(declared, (False, True)):
                    counted = masked | {value: masked[value] | (absent & ~present)}
                    if counted[value].all():
                        del counted[value]
                    yield Product(shape, masked, {value: each}), Product(shape, counted)


def all_splits(family: QuestionFamily) -> Iterator[CellSplit]:
    """Every set of codes in two by every attribute; which of the two is inside makes no other."""
    shape = family.shape
    for scope in sorted(family.covered):
        for chosen in product(*(masks(shape[a]) for a in scope)):
            whole = Product(shape, dict(zip(scope, chosen, strict=True)))
            for place, size in enumerate(shape):
                kept = whole.factor(place) != 0
                first = int(np.flatnonzero(kept)[0])
                for mask in masks(size):
                    if mask[first] and not (mask & ~kept).any() and (kept & ~mask).any():
                        yield CellSplit(whole, place, mask, (1.0, 0.0))


@pytest.mark.parametrize(
    ("shape", "scopes", "weighed"),
    [
        ((3, 2, 4), PAIRS, {}),
        ((4, 3, 3), PAIRS, {0: [np.array([2.0, 5.0, 9.0, 0.0]), np.array([1.0, 2.0, 2.0, 0.0])]}),
        ((2, 2, 2), PAIRS, {1: [np.array([3.0, 0.0])]}),
        ((3, 3, 2), ((0, 1, 2),), {}),
        ((5, 4), ((0,), (1,)), {}),
        ((4,), ((),), {}),
    ],
)
def test_all_shares_together_are_at_most_one(
    shape: Shape, scopes: tuple[Scope, ...], weighed: dict[int, list[Floats]]
) -> None:
    family = QuestionFamily(shape, scopes, weighed)
    shares = sum(family.share(each) for each in set(all_products(shape, scopes, weighed)))
    anything = sum(
        family.any_share(scope)
        for n in range(len(shape) + 1)
        for scope in combinations(range(len(shape)), n)
    )
    means = sum(family.mean_share(*each) for each in all_means(family, weighed))
    splits = sum(family.split_share(each) for each in all_splits(family))
    assert means > 0 or not weighed
    assert splits > 0 or scopes == ((),)
    assert shares + anything + means + splits <= 1 + 1e-12
    assert shares > 0 or scopes == ((),)


def test_simple_questions_have_larger_shares() -> None:
    family = QuestionFamily((3, 17, 17), PAIRS)

    def share(*codes: list[int]) -> float:
        chosen = {a: np.isin(np.arange(family.shape[a]), c) for a, c in enumerate(codes) if c}
        return family.share(Product(family.shape, chosen))

    assert family.share(Product((3, 17, 17), {})) > share([0]) > share([], [3])
    assert share([], [3]) > share([], list(range(4, 9))) > share([], [1, 3, 4, 8]) > 0
    assert share([], [3], [5]) > share([], [1, 3, 4], [2, 6]) > 0
    assert share([0], [3], [5]) == 0, "tables of two do not hold it"


def test_any_set_of_codes_has_a_share() -> None:
    for size in (2, 3, 5, 8):
        assert all(_mask_share(mask) > 0 for mask in masks(size))
        assert sum(map(_mask_share, masks(size))) <= 1 + 1e-12


def test_multiples_of_declared_weights_have_the_share_of_their_codes() -> None:
    weights = np.array([0.0, 10.0, 20.0, 30.0, 0.0])
    assert _declared_share(3 * weights, weights) == 0.5
    assert _declared_share(np.array([0, 1.0, 2.0, 0, 0]), weights) > 0
    assert _declared_share(np.array([0, 1.0, 3.0, 0, 0]), weights) == 0
    assert _declared_share(np.array([0, 1.0, 2.0, 3.0, 1.0]), weights) == 0


def test_a_mean_of_some_codes_over_a_count_of_others_has_no_share() -> None:
    weights = np.array([2.0, 5.0, 9.0, 0.0])
    family = QuestionFamily((4, 3, 3), PAIRS, {0: [weights]})
    present, fewer = np.array([1, 1, 1, 0], np.bool_), np.array([1, 1, 0, 0], np.bool_)
    below = Product(family.shape, {0: present})
    assert family.mean_share(Product(family.shape, {0: present}, {0: weights}), below) > 0
    assert family.mean_share(Product(family.shape, {0: fewer}, {0: weights}), below) == 0
    some = Product(family.shape, {0: present, 1: np.array([1, 0, 0], np.bool_)}, {0: weights})
    assert family.mean_share(some, below) == 0
