"""A dense distribution answers and changes as the plain vector of its cells does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from surrogate.small_tables import SCOPES, SHAPE, every_question, question

from casemate.grid import Floats, Marginal, Product, Scope, over_many_ranges, summed_area
from casemate.surrogate import histogram
from casemate.surrogate.histogram import Histogram, MarginalTables, Target, marginals


@pytest.fixture(autouse=True, params=[(1, 1, 1), (4, 8, 12)], ids=str)
def split(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sentences wherever the attributes are split into rows and columns."""
    monkeypatch.setattr(histogram, "ROW_CELL_LIMITS", request.param)


def prior(seed: int) -> Floats:
    return np.random.default_rng(seed).random(SHAPE) + 0.01


def test_a_question_is_a_sum_over_cells(seed: int) -> None:
    start = prior(seed)
    histogram = Histogram(SHAPE, start)
    share = start.ravel() / start.sum()
    assert histogram.dense() == pytest.approx(share)
    for product in every_question(seed):
        assert histogram.fraction(product) == pytest.approx(float(share @ product.dense()))


def test_many_questions_have_the_same_bits_as_one_at_a_time(seed: int) -> None:
    histogram, questions = Histogram(SHAPE, prior(seed)), every_question(seed)
    alone = [histogram.fraction(product) for product in questions]
    assert histogram.fractions(questions).tolist() == alone
    assert Histogram(SHAPE, prior(seed)).fractions(questions).tolist() == alone


def test_marginals_are_sums(seed: int) -> None:
    start = prior(seed)
    histogram = Histogram(SHAPE, start)
    for scope in SCOPES:
        expected = start.sum(axis=tuple(set(range(4)) - set(scope))) / start.sum()
        assert histogram.marginal(scope) == pytest.approx(expected)
        assert histogram.look(Marginal(scope)) == pytest.approx(expected)
        assert np.array_equal(histogram.marginals(SCOPES)[scope], histogram.marginal(scope))


@given(st.integers(0, 10**6), st.sampled_from(SCOPES[1:]), st.sampled_from([*SCOPES, None]))
def test_an_update_is_what_it_is_on_the_plain_vector(
    seed: int, scope: Scope, following: Scope | None
) -> None:
    product, then = question(seed, scope), None
    if following is not None:
        then = question(seed + 1, following) if seed % 2 and following else Marginal(following)
    histogram = Histogram(SHAPE, prior(seed))
    slow = histogram.dense() * np.where(product.dense() != 0, 1.25, 0.75)
    seen = histogram.tilt(product, 1.25, 0.75, then)
    assert histogram.dense() == pytest.approx(slow)
    assert_seen(seen, then, slow)
    factors = np.random.default_rng(seed).random([SHAPE[a] for a in scope])
    slow = (slow.reshape(SHAPE) * as_grid(factors, scope)).ravel()
    seen = histogram.spread(scope, factors, then)
    assert histogram.dense() == pytest.approx(slow)
    assert_seen(seen, then, slow)


def as_grid(factors: Floats, scope: Scope) -> Floats:
    return factors.reshape([width if a in scope else 1 for a, width in enumerate(SHAPE)])


def assert_seen(seen: Floats | None, then: Target | None, slow: Floats) -> None:
    """A look ahead is what a look afterwards would have shown."""
    if then is None:
        assert seen is None
    elif isinstance(then, Product):
        assert seen == pytest.approx(float(slow @ then.dense()))
    else:
        others = tuple(set(range(4)) - set(then.scope))
        assert seen == pytest.approx(slow.reshape(SHAPE).sum(axis=others))


def test_an_update_touches_only_the_cells_inside(seed: int) -> None:
    histogram, product = Histogram(SHAPE, prior(seed)), question(seed, (1, 3))
    before = histogram._cells.copy().ravel()
    histogram.tilt(product, 1.5, 0.5)
    changed = histogram._cells.ravel() != before
    assert np.array_equal(changed, product.dense() != 0)


def test_the_scale_never_leaves_the_range_of_floats(seed: int) -> None:
    histogram, product = Histogram(SHAPE, prior(seed)), question(seed, (0,))
    start = histogram.dense()
    for factor in [1e-60] * 4 + [1e60] * 4:
        histogram.tilt(product, factor, factor)
    assert histogram.dense() == pytest.approx(start)


def test_a_small_rest_is_summed_afresh(seed: int) -> None:
    histogram = Histogram((1000,), np.where(np.arange(1000) == 0, 1e-9, 1.0))
    product = Product((1000,), {0: np.arange(1000) > 0})
    rest = histogram.outside(product, float(histogram.look(product)))
    assert rest == pytest.approx(1e-9 / 999, rel=1e-3)


@pytest.mark.parametrize(
    ("shape", "columns"),
    [
        ((10, 16, 7, 6, 5, 2, 8, 2), 960),
        ((50, 50, 50), 50 * 50),
        ((7, 90, 90), 90),
        ((3000,), 3000),
        ((2, 2), 4),
        ((40, 20, 20), 400),
    ],
)
def test_rows_are_long_enough_and_not_too_long(
    shape: tuple[int, ...], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histogram, "ROW_CELL_LIMITS", (64, 256, 1024))
    assert Histogram(shape)._cells.shape[1] == columns


def test_many_ranges_are_looked_up_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    area = summed_area(np.arange(24.0).reshape(2, 3, 4))
    ranges = np.array([[(0, 1 + i % 2), (i % 3, 3), (0, i % 5)] for i in range(50)])
    together = over_many_ranges(area, ranges)
    monkeypatch.setattr("casemate.grid.product.MAX_CORNERS_AT_ONCE", 40)
    assert over_many_ranges(area, ranges).tobytes() == together.tobytes()


# What is remembered -----------------------------------------------------------------------------


def test_what_was_asked_before_the_cells_changed_is_made_again_together_and_nothing_else() -> None:
    cells, tables = prior(1), MarginalTables()
    for scope in [(0, 1), (2, 3)]:
        tables.table(cells, scope)
    tables.forget()
    changed = cells * 2
    assert np.array_equal(tables.table(changed, (0, 1)), marginals(changed, [(0, 1)])[(0, 1)])
    assert set(tables._tables) == {(0, 1), (2, 3)}
    assert np.array_equal(tables.area(changed, (2, 3)), summed_area(tables.table(changed, (2, 3))))
    for _ in range(2):  # what is not asked for between two changes is let go
        tables.forget()
        tables.table(cells, (2, 3))
    assert set(tables._tables) == {(2, 3)}


def test_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histogram, "MAX_CACHED_NUMBERS", 12)
    cells, tables = prior(1), MarginalTables()
    for scope in [(0, 3), (0,), (2,), (0, 1)]:
        assert np.array_equal(tables.table(cells, scope), marginals(cells, [scope])[scope])
        tables.area(cells, scope)
        assert len(tables._tables) == 1 or sum(t.size for t in tables._tables.values()) <= 12
    assert set(tables._areas) == set(tables._tables) == {(0, 1)}
