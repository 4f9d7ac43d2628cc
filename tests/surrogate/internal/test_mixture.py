"""A mixture of products: one distribution, close to what was measured, the same bits again."""

import itertools
import math
from functools import reduce

import numpy as np
import pytest
from surrogate.small_tables import (
    EVERYTHING,
    PAIRS,
    SHAPE,
    TOTAL,
    TRIPLES,
    counts,
    measured,
    transcript,
)

from casemate.grid import Floats, Marginal, MeasuredMarginal, MeasuredProduct, Product
from casemate.surrogate import mixture as mixture_fit
from casemate.surrogate.dense import DenseSurrogate
from casemate.surrogate.histogram import marginals
from casemate.surrogate.mixture import (
    MAX_EXPLAINED_EXCESS,
    MixtureSurrogate,
    fit_mixture,
    initial_roots,
    mixture_of,
    total_misfit,
)
from casemate.surrogate.mixture_residuals import ShareLayout, evidence

PAIRS_OF_FIVE = list(itertools.combinations(range(5), 2))


def test_it_is_the_mixture_written_out(seed: int) -> None:
    stand_in = MixtureSurrogate(SHAPE, 0, math.inf, components=9, steps=6)
    stand_in.learn(transcript(seed))
    cells = np.zeros(SHAPE)
    for weight, row in zip(*stand_in.mixture, strict=True):
        parts = np.split(row, np.cumsum(SHAPE)[:-1])
        cells += weight * reduce(np.multiply.outer, parts)
    assert stand_in.marginal(EVERYTHING) == pytest.approx(stand_in.total * cells)


# What it fits -------------------------------------------------------------------------------------


def test_all_two_way_tables_are_met_within_their_noise(seed: int) -> None:
    cells = counts(seed)
    for deviation in (20.0, 5.0):
        tables, stand_in = measured(cells, PAIRS, deviation, seed), MixtureSurrogate(SHAPE, TOTAL)
        stand_in.learn(tables)
        for table in tables:
            off = stand_in.marginal(table.marginal.scope) - table.values
            assert np.abs(off).max() <= 5 * deviation


def test_it_is_between_the_dense_stand_in_and_independence_and_nearer_to_the_truth(
    seed: int,
) -> None:
    """A chain of attributes, each of which depends on the one before: pairs say everything."""
    draw = np.random.default_rng([seed, 25])
    first, then = draw.dirichlet(np.ones(4)), [draw.dirichlet(np.ones(4), 4) for _ in range(3)]
    cells = 50_000 * np.einsum("a,ab,bc,cd->abcd", first, *then)
    dense, mixture, apart = (
        DenseSurrogate((4,) * 4, 50_000),
        MixtureSurrogate((4,) * 4, 50_000),
        MixtureSurrogate((4,) * 4, 50_000),
    )
    for stand_in in (dense, mixture):
        stand_in.learn(measured(cells, PAIRS, 20.0, seed))
    apart.learn(measured(cells, [(a,) for a in range(4)], 20.0, seed))
    least, nearly, most = (
        sum(
            float(np.abs(stand_in.marginal(scope) - exact).mean())
            for scope, exact in marginals(cells, TRIPLES).items()
        )
        for stand_in in (dense, mixture, apart)
    )
    assert least <= nearly <= 0.6 * most


def parity(width: int) -> Floats:
    """Every pair is uniform; the third is the sum of the first two, and others are free."""
    first, second, third, _, _ = np.indices((width,) * 5)
    cells: Floats = 50_000 / width**4 * ((first + second) % width == third)
    return cells


def knows_pairs(cells: Floats, seed: int) -> MixtureSurrogate:
    stand_in = MixtureSurrogate(cells.shape, 50_000)
    stand_in.learn(measured(cells, PAIRS_OF_FIVE, 25.0, seed))
    return stand_in


def test_a_surprising_table_is_met_within_its_noise_at_once(seed: int) -> None:
    cells = parity(4)
    stand_in = knows_pairs(cells, seed)
    exact = marginals(cells, [(0, 1, 2)])[0, 1, 2]
    assert np.abs(stand_in.marginal((0, 1, 2)) - exact).max() > 2_000
    (surprise,) = measured(cells, [(0, 1, 2)], 50.0, seed)
    stand_in.update(surprise)
    off = stand_in.marginal((0, 1, 2)) - surprise.values
    assert math.sqrt(float((off**2).mean())) <= 2 * 50
    assert np.abs(stand_in.marginal((0, 1, 2)) - exact).max() <= 6 * 50
    for scope, table in marginals(
        cells, PAIRS_OF_FIVE
    ).items():  # and what was known is not forgotten
        assert np.abs(stand_in.marginal(scope) - table).max() <= 6 * 25


def test_a_surprising_question_is_met_within_its_noise_at_once(seed: int) -> None:
    cells, low = parity(4), np.array([True, True, False, False])
    stand_in, unmet = knows_pairs(cells, seed), []
    for scope in [(0, 1, 2), (0, 1, 2, 4)]:
        product = Product(cells.shape, dict.fromkeys(scope, low))
        truth = float(cells.ravel() @ product.dense())
        unmet.append(abs(stand_in.answer(product) - truth))
        stand_in.update(MeasuredProduct(product, truth + 20, 40.0**2))
        assert abs(stand_in.answer(product) - truth) <= 4 * 40
    assert unmet[0] > 4 * 40, "the twin: without the update it is not met"
    weighted = Product(cells.shape, {0: low}, {1: np.arange(4.0), 2: np.arange(4.0) * 10})
    truth = float(cells.ravel() @ weighted.dense())
    stand_in.update(MeasuredProduct(weighted, truth, 400.0**2))
    assert abs(stand_in.answer(weighted) - truth) <= 4 * 400


def test_a_universe_of_any_size_is_learnt_alike(seed: int) -> None:
    """Thirty attributes of ten codes, 1e30 cells; the last one is the first one again."""
    shape, draw = (10,) * 30, np.random.default_rng([seed, 26])
    parts = draw.dirichlet(np.ones(10), 30)
    parts[29] = parts[0]
    tables = [
        MeasuredMarginal(Marginal((a,)), 1e5 * parts[a] + draw.normal(0, 30, 10), 900.0)
        for a in range(30)
    ]
    tables.append(MeasuredMarginal(Marginal((0, 29)), 1e5 * np.diag(parts[0]), 900.0))
    stand_in = MixtureSurrogate(shape, 1e5, components=100)
    stand_in.learn(tables)
    component = 1e5 / 100  # what is exactly on a diagonal is met to within one of them
    assert np.abs(stand_in.marginal((0, 29)) - 1e5 * np.diag(parts[0])).max() <= component
    mask = np.arange(10) < 5
    asked = Product(shape, dict.fromkeys(range(20), mask))
    expected = 1e5 * math.prod(float(parts[a][:5].sum()) for a in range(20))
    assert stand_in.answer(asked) == pytest.approx(expected, rel=0.2, abs=1)
    with pytest.raises(ValueError, match="fewer attributes"):
        stand_in.marginal(tuple(range(12)))


@pytest.mark.parametrize(
    ("shape", "components", "said"),
    [
        (SHAPE, 0, "one component"),
        ((3, 0), 5, "at least one code"),
        ((), 5, "at least one code"),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    shape: tuple[int, ...], components: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        MixtureSurrogate(shape, 5.0, components=components)


LAYOUT = ShareLayout((3, 4, 2))


def pair(values: Floats, scope: tuple[int, ...] = (0, 1)) -> MeasuredMarginal:
    return MeasuredMarginal(Marginal(scope), values, 25.0)


def test_the_start_never_changes() -> None:
    """The raw numbers of a generator of counters: another version may not give others."""
    known = evidence(LAYOUT, [pair(np.ones((3, 4)))], 100.0)
    roots = initial_roots(2, LAYOUT, known).of_shares
    assert (roots**2)[0, :3] == pytest.approx(
        np.array(np.random.Philox(key=2).random_raw(3), np.uint64) / 2.0**64, abs=1e-15
    )
    assert ((roots > 0) & (roots <= 1)).all()
    assert initial_roots(2, LAYOUT, known).of_shares.tobytes() == roots.tobytes()


def test_an_attribute_known_alone_or_not_at_all_starts_alike_in_all_components() -> None:
    known = evidence(LAYOUT, [pair(np.ones((3, 4))), pair(np.ones(2), (2,))], 100.0)
    roots = initial_roots(6, LAYOUT, known).of_shares
    assert (roots[:, 7:] == 1).all()
    assert (np.ptp(roots[:, :7], axis=0) > 0).all()
    asked = Product(LAYOUT.shape, {0: np.arange(3) < 1, 2: np.arange(2) < 1})
    related = evidence(LAYOUT, [MeasuredProduct(asked, 5.0, 1.0)], 100.0)
    roots = initial_roots(6, LAYOUT, related).of_shares
    assert (roots[:, 3:7] == 1).all() and (np.ptp(roots[:, 7:], axis=0) > 0).all()


def test_the_descent_ends_where_the_noise_explains_the_rest(seed: int) -> None:
    draw = np.random.default_rng([seed, 51])
    exact = draw.multinomial(10_000, draw.dirichlet(np.ones(12))).reshape(3, 4)
    known = evidence(LAYOUT, [pair(exact + draw.normal(0, 5, (3, 4)))], 10_000.0)
    roots = initial_roots(20, LAYOUT, known)
    before = total_misfit(known, mixture_of(roots, LAYOUT)).excesses.max()
    after = total_misfit(known, fit_mixture(roots, LAYOUT, known, 600)).excesses.max()
    assert after <= MAX_EXPLAINED_EXCESS < before


def test_another_round_is_gone_only_where_something_is_not_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds: list[int] = []
    plain = mixture_fit._descend

    def counted(*given: object) -> float:
        rounds.append(1)
        return plain(*given)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(mixture_fit, "_descend", counted)
    possible = evidence(LAYOUT, [pair(np.full((3, 4), 100.0))], 1_200.0)
    fit_mixture(initial_roots(20, LAYOUT, possible), LAYOUT, possible, 100)
    assert len(rounds) == 1
    rounds.clear()
    impossible = evidence(LAYOUT, [pair(np.full((3, 4), 100.0)), pair(np.eye(3, 4))], 1_200.0)
    impossible += evidence(LAYOUT, [pair(np.full(3, 900.0), (0,))], 1_200.0)
    fit_mixture(initial_roots(20, LAYOUT, impossible), LAYOUT, impossible, 100)
    assert len(rounds) == mixture_fit.MAX_ROUNDS
