"""What tables prove holds against whoever chooses questions after seeing the noise; less does not.

Noise is drawn directly on a small grid of nobody, so an error is an estimate. Errors are linear in
the noise, so thousands of releases and all questions of a family are one product of matrices.
"""

from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from answer.small_dataset import world
from chance import assert_rate_at_most
from grid.small_grid import counting, people
from numpy.typing import NDArray

from casemate.answer.question_family import QuestionFamily
from casemate.answer.table_proofs import TableProofs, fieller
from casemate.grid import (
    DeclaredSums,
    Effects,
    MeasuredTable,
    Product,
    ProofSource,
    Scope,
    TableQuestion,
    all_codes,
)
from casemate.privacy.noise import GaussianLaw, LaplaceLaw, Law
from casemate.table import Answering, Strategy

Floats = NDArray[np.float64]
SHAPE = (3, 5, 4)
SCOPES: tuple[Scope, ...] = ((), (0, 1), (0, 2), (1, 2))
GAUSS, LAPLACE = GaussianLaw(Fraction(20)), LaplaceLaw(Fraction(14))


def tables(values: list[Floats], law: Law) -> tuple[MeasuredTable, ...]:
    return tuple(
        MeasuredTable(TableQuestion(all_codes(scope, SHAPE), start=True), each, law)
        for scope, each in zip(SCOPES, values, strict=True)
    )


def cut(draws: Floats) -> list[Floats]:
    """One vector of noise as the cells of each table."""
    sizes = [[SHAPE[a] for a in scope] for scope in SCOPES]
    ends = np.cumsum([int(np.prod(each)) for each in sizes])
    pieces = np.split(draws, ends[:-1])
    return [piece.reshape(size) for piece, size in zip(pieces, sizes, strict=True)]


DRAWS = sum(int(np.prod([SHAPE[a] for a in scope])) for scope in SCOPES)


def proofs(law: Law, draws: Floats | None = None) -> TableProofs:
    noise = np.zeros(DRAWS) if draws is None else draws
    family = QuestionFamily(SHAPE, SCOPES)
    return TableProofs(family, Effects(SHAPE, tables(cut(noise), law)))


def sets(size: int) -> list[NDArray[np.bool_]]:
    every = [np.array(bits, np.bool_) for bits in product((False, True), repeat=size)]
    return [each for each in every if each.any() and not each.all()]


@cache
def questions() -> list[Product]:
    """Every question of the family: all products of sets of codes over at most two attributes."""
    found = [Product(SHAPE, {})]
    for scope in [(0,), (1,), (2,), *combinations(range(3), 2)]:
        for chosen in product(*(sets(SHAPE[a]) for a in scope)):
            found.append(Product(SHAPE, dict(zip(scope, chosen, strict=True))))
    return found


@cache
def noise_weights(law: Law) -> Floats:
    """The weight of each draw in the error of each question."""
    columns = []
    for place in range(DRAWS):
        effects = proofs(law, np.eye(DRAWS)[place]).effects
        columns.append([effects.estimate(each).value for each in questions()])
    return np.array(columns).T


@cache
def widths(law: Law, chance: float) -> Floats:
    found = (proofs(law).prove((each,), chance) for each in questions())
    return np.array([each.width for each in found if each is not None])


def simulated(law: Law, releases: int, seed: int) -> Floats:
    """Exact draws of the discrete law, a column for each release."""
    reach = int(45 * float(law.scale))
    x = np.arange(-reach, reach + 1)
    power = -(x**2) / (2 * float(law.scale) ** 2)
    if isinstance(law, LaplaceLaw):
        power = -np.abs(x) / float(law.scale)
    chances = np.exp(power - power.max())
    random = np.random.default_rng(seed)
    return random.choice(x, (DRAWS, releases), p=chances / chances.sum()).astype(np.float64)


def releases_with_a_failure(law: Law, chance: float, releases: int, share: float) -> int:
    """How often the worst question, chosen after the noise was seen, is outside so much of it."""
    errors = np.abs(noise_weights(law) @ simulated(law, releases, seed=3))
    return int((errors > share * widths(law, chance)[:, None]).any(axis=0).sum())


def test_the_worst_question_after_the_noise_was_seen_is_within_its_proof() -> None:
    releases, chance = 3_000, 0.05
    assert_rate_at_most(releases_with_a_failure(GAUSS, chance, releases, 1.0), releases, chance)


def test_proofs_narrower_by_a_third_would_not_hold() -> None:
    """The twin of the test above."""
    releases, chance = 3_000, 0.05
    failed = releases_with_a_failure(GAUSS, chance, releases, 1 / 1.3)
    with pytest.raises(AssertionError):
        assert_rate_at_most(failed, releases, chance)


@pytest.mark.slow
@pytest.mark.parametrize("law", [GAUSS, LAPLACE])
@pytest.mark.parametrize("chance", [0.3, 0.05, 0.01])
def test_the_worst_of_all_questions_is_proven_at_every_chance(law: Law, chance: float) -> None:
    releases = 20_000
    assert_rate_at_most(releases_with_a_failure(law, chance, releases, 1.0), releases, chance)


def test_whoever_unites_cells_that_look_positive_is_covered_and_would_not_be_by_one_question() -> (
    None
):
    """Of one attribute, the codes whose estimates are above the truth, which is nothing."""
    inside = alone = 0
    releases = 400
    for draws in simulated(GAUSS, releases, seed=5).T:
        found = proofs(GAUSS, draws)
        levels = found.effects.fitted((1, 2))
        chosen = levels > 0
        cells = [
            Product(SHAPE, {1: np.arange(5) == i, 2: chosen[i]})
            for i in range(5)
            if chosen[i].any()
        ]
        number = found.prove(cells, 0.05)
        assert number is not None
        inside += abs(number.value) <= number.width
        one = found.effects.estimate_dense((1, 2), chosen.astype(np.float64))
        alone += abs(one.value) <= 1.96 * one.deviation
    assert inside == releases
    assert alone < releases / 20


def test_pooling_what_was_measured_again_because_it_looked_low_breaks_coverage() -> None:
    """Cells of nobody: those that look low are measured again, and both numbers are averaged."""
    random, cells, scale = np.random.default_rng(7), 40, 20.0
    pooled = ours = 0
    for _ in range(500):
        first, again = random.normal(0, scale, (2, cells))
        low = first < 0
        total = np.where(low, (first + again) / 2, first).sum()
        deviation = scale * np.sqrt(np.where(low, 0.5, 1.0).sum())
        pooled += abs(total) <= 1.96 * deviation
        ours += abs(first.sum()) <= 1.96 * scale * np.sqrt(cells)  # the start alone, as declared
    assert_rate_at_most(500 - ours, 500, 0.05)
    with pytest.raises(AssertionError):
        assert_rate_at_most(500 - pooled, 500, 0.05)


# Consequences -----------------------------------------------------------------------------------


def test_sums_of_proven_numbers_are_proven_and_what_was_not_measured_is_not() -> None:
    found = proofs(GAUSS)
    one, other = (Product(SHAPE, {0: np.arange(3) == code}) for code in (0, 1))
    both = found.prove((one, other), 0.05)
    parts = [found.prove((each,), 0.05) for each in (one, other)]
    assert both is not None and parts[0] is not None and parts[1] is not None
    assert both.width <= parts[0].width + parts[1].width + 1e-6
    three = Product(SHAPE, {a: np.arange(SHAPE[a]) == 0 for a in range(3)})
    assert found.prove((three,), 0.05) is None
    nobody = found.prove((Product(SHAPE, {0: np.zeros(3, np.bool_)}),), 0.05)
    assert nobody is not None and nobody.value == 0 and nobody.width < 1e-6


def test_any_weights_on_a_table_have_a_proof_that_holds_for_all_of_them() -> None:
    """The weights along the noise itself, which are the worst there are."""
    chance, failed, releases = 0.05, 0, 400
    for draws in simulated(GAUSS, releases, seed=11).T:
        found = proofs(GAUSS, draws)
        errors = found.effects.fitted((1,))
        worst = Product(SHAPE, {}, {1: errors})
        number = found.prove((worst,), chance)
        assert number is not None
        failed += abs(number.value) > number.width
    assert_rate_at_most(failed, releases, chance)


def test_two_valued_weights_are_taken_apart() -> None:
    found = proofs(LAPLACE)
    odd = Product(SHAPE, {}, {1: np.array([-3.0, 7.0, 7.0, -3.0, 0.0])})
    assert found.prove((odd,), 0.05) is not None


# In the construction ----------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [Strategy.WARM, Strategy.TABLES])
def test_what_tables_prove_is_answered_by_them_and_charges_nothing(strategy: Strategy) -> None:
    room = world(people(2_000), answering=Answering(strategy))
    construction = room.construction()
    construction.start()
    spent = room.ledger.spent()
    for masks in ({}, {0: [1]}, {0: [1, 2], 1: [0]}, {1: [0, 2], 2: [1]}):
        asked = counting(masks)  # type: ignore[arg-type]  # lists are sequences
        number = construction.ask(asked).parts[0][0]
        assert number.proof is ProofSource.TABLES
        assert number.lo is not None and number.hi is not None
        assert number.session_lo is not None and number.session_hi is not None
        assert number.session_lo <= number.lo <= number.value <= number.hi <= number.session_hi
    assert room.ledger.spent() == spent
    assert construction.ask(counting({0: [1], 1: [0], 2: [1]})).parts[0][0].proof in (
        ProofSource.GATE,
        ProofSource.IMPLIED,
        None,
    )


def test_a_surprise_is_not_pooled_with_the_tables_of_the_start() -> None:
    room = world(people(2_000), answering=Answering(Strategy.WARM))
    construction = room.construction()
    construction.start()
    before = construction._table_proofs().effects.tables
    for masks in ({0: [a], 1: [b], 2: [c]} for a in range(4) for b in range(3) for c in range(2)):
        construction.ask(counting(masks))  # type: ignore[arg-type]  # lists are sequences
    assert construction._table_proofs().effects.tables == before
    fresh = room.construction()
    fresh.start()
    again = fresh._table_proofs().effects.tables
    assert [each.question for each in again] == [each.question for each in before]


@pytest.mark.slow
def test_conversations_that_choose_by_what_they_saw_are_covered() -> None:
    """The code of the product: each asks for the largest positive group of codes that it saw."""
    failed, trials = 0, 300
    codes = people(3_000)
    for seed in range(trials):
        room = world(codes, seed=seed, answering=Answering(Strategy.WARM))
        construction = room.construction()
        levels = []
        for code in range(4):
            asked = counting({0: [code]})
            (truth,) = room.cells.exact(asked)[0]
            levels.append(
                construction.ask(asked).parts[0][0].value - truth
            )  # somebody who knows the truth
        chosen = [code for code in range(4) if levels[code] > 0] or [0]
        asked = counting({0: chosen})
        number, (truth,) = construction.ask(asked).parts[0][0], room.cells.exact(asked)[0]
        assert number.lo is not None and number.hi is not None
        failed += not number.lo <= truth <= number.hi
    assert_rate_at_most(failed, trials, 0.05)


def test_the_width_of_a_proof_is_known_before_anything_is_measured() -> None:
    room = world(people(500), answering=Answering(Strategy.WARM))
    construction = room.construction()
    cell = (Product((4, 3, 2), {0: np.arange(4) == 1}),)
    before = construction._table_proofs().prove(cell, 0.05)
    construction.start()
    after = construction._table_proofs().prove(cell, 0.05)
    assert before is not None and after is not None
    assert before.deviation == pytest.approx(after.deviation)


# More attributes than any table has -------------------------------------------------------------


def exact_proofs(counts: NDArray[np.int64]) -> TableProofs:
    """Proofs from tables without noise: what is left open is what no two attributes tell."""
    shape = counts.shape
    scopes = tuple(combinations(range(counts.ndim), 2))
    found = []
    for scope in scopes:
        others = tuple(a for a in range(counts.ndim) if a not in scope)
        question = TableQuestion(all_codes(scope, shape), start=True)
        found.append(MeasuredTable(question, counts.sum(axis=others) * 1.0, None))
    return TableProofs(QuestionFamily(shape, scopes), Effects(shape, tuple(found)))


def attained(counts: NDArray[np.int64]) -> tuple[int, int]:
    """The least and the most in the last cell of all tables with the same pairs, by enumeration."""
    low = high = int(counts[(1,) * counts.ndim])
    signs = np.indices(counts.shape).sum(axis=0) % 2 * 2 - 1  # what changes no pair of three
    for step in range(-int(counts.sum()), int(counts.sum()) + 1):
        moved = counts + step * signs
        if (moved >= 0).all():
            low, high = min(low, int(moved[1, 1, 1])), max(high, int(moved[1, 1, 1]))
    return low, high


def test_three_attributes_are_bounded_as_their_pairs_imply_and_no_wider() -> None:
    random = np.random.default_rng(2)
    for _ in range(60):
        counts = random.integers(0, 6, (2, 2, 2))
        inside = Product((2, 2, 2), {a: np.array([False, True]) for a in range(3)})
        found = exact_proofs(counts).implied((inside,), 0.05)
        assert found is not None
        assert found == pytest.approx(attained(counts), abs=1e-4)


def test_bounds_of_four_attributes_hold_the_truth() -> None:
    random = np.random.default_rng(3)
    for _ in range(60):
        counts = random.integers(0, 6, (2, 3, 2, 2))
        masks = {a: np.arange(counts.shape[a]) > 0 for a in range(4)}
        found = exact_proofs(counts).implied((Product(counts.shape, masks),), 0.05)
        assert found is not None
        assert found[0] - 1e-4 <= counts[1:, 1:, 1:, 1:].sum() <= found[1] + 1e-4


def test_sums_over_three_attributes_are_left_to_the_gate() -> None:
    weighed = Product(SHAPE, {0: np.arange(3) == 0, 2: np.arange(4) == 0}, {1: np.arange(5.0)})
    assert proofs(GAUSS).implied((weighed,), 0.05) is None


def test_what_pairs_imply_narrows_what_the_gate_proves() -> None:
    room = world(people(2_000), answering=Answering(Strategy.WARM), epsilon=3)
    number = room.construction().ask(counting({0: [1], 1: [0], 2: [0, 1]})).parts[0][0]
    assert number.proof is ProofSource.TABLES, "all codes of an attribute are none of it"
    asked = counting({0: [1], 1: [0], 2: [1]})
    number, (truth,) = room.construction().ask(asked).parts[0][0], room.cells.exact(asked)[0]
    assert number.lo is not None and number.hi is not None
    assert number.proof is ProofSource.IMPLIED and number.lo <= truth <= number.hi


# Means ------------------------------------------------------------------------------------------


MIDDLES = np.array([5.0, 15.0, 25.0, 35.0, 0.0])


def mean_proofs(draws: Floats, counts: NDArray[np.int64]) -> TableProofs:
    margins = [
        counts.sum(axis=tuple(a for a in range(3) if a not in scope)).astype(np.float64)
        for scope in SCOPES
    ]
    family = QuestionFamily(SHAPE, SCOPES, {1: [MIDDLES]})
    declared = {1: DeclaredSums((MIDDLES,), MIDDLES, Fraction(1), 0.0)}
    noised = [truth + noise for truth, noise in zip(margins, cut(draws), strict=True)]
    return TableProofs(family, Effects(SHAPE, tables(noised, GAUSS)), declared)


def test_means_are_within_their_proof_for_whatever_group_looks_highest() -> None:
    random = np.random.default_rng(8)
    counts = random.integers(40, 90, SHAPE)
    chance, releases, failed, narrow = 0.05, 300, 0, 0
    present = np.arange(5) < 4
    groups = [
        Product(SHAPE, {1: present}),
        *(Product(SHAPE, {1: present, 0: np.arange(3) == code}) for code in range(3)),
        *(Product(SHAPE, {1: present, 2: np.arange(4) == code}) for code in range(4)),
    ]
    for draws in simulated(GAUSS, releases, seed=13).T:
        found = mean_proofs(draws, counts)
        wrong = shorter = False
        for below in groups:
            above = Product(SHAPE, below.masks, {1: MIDDLES})
            mean = found.mean(above, below, chance)
            assert mean is not None and mean.ends[0] <= mean.value <= mean.ends[1]
            ends = mean.ends
            cells = counts * below.dense().reshape(SHAPE)
            truth = float((cells.sum(axis=(0, 2)) * MIDDLES).sum() / cells.sum())
            middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
            wrong |= not ends[0] <= truth <= ends[1]
            shorter |= abs(truth - middle) > half / 3
        failed, narrow = failed + wrong, narrow + shorter
    assert_rate_at_most(failed, releases, chance)
    with pytest.raises(AssertionError):
        assert_rate_at_most(narrow, releases, chance)


def test_shares_of_a_whole_are_within_their_proof_for_whatever_group_looks_highest() -> None:
    random = np.random.default_rng(9)
    counts = random.integers(40, 90, SHAPE)
    chance, releases, failed, narrow = 0.05, 300, 0, 0
    wholes = [Product(SHAPE, {})]
    wholes += [Product(SHAPE, {0: np.arange(3) == code}) for code in range(3)]
    wholes += [Product(SHAPE, {0: np.arange(3) == 1, 2: np.arange(4) < 3})]  # cut by what it has
    asked = [
        (Product(SHAPE, {**whole.masks, 2: np.arange(4) <= code}), whole)
        for whole in wholes
        for code in range(2 if 2 in whole.masks else 3)
    ]
    for draws in simulated(GAUSS, releases, seed=14).T:
        found = mean_proofs(draws, counts)
        wrong = shorter = False
        for part, whole in asked:
            share = found.share(part, whole, chance)
            assert share is not None and share.ends[0] <= share.value <= share.ends[1]
            truth = float(counts.ravel() @ part.dense() / (counts.ravel() @ whole.dense()))
            middle, half = sum(share.ends) / 2, (share.ends[1] - share.ends[0]) / 2
            wrong |= not share.ends[0] <= truth <= share.ends[1]
            shorter |= abs(truth - middle) > half / 3
        failed, narrow = failed + wrong, narrow + shorter
    assert_rate_at_most(failed, releases, chance)
    with pytest.raises(AssertionError):
        assert_rate_at_most(narrow, releases, chance)


def test_a_share_and_its_complement_are_proven_alike_and_joint_errors_are_less_than_corners() -> (
    None
):
    counts = np.full(SHAPE, 60)
    found = mean_proofs(np.zeros(DRAWS), counts)
    whole = Product(SHAPE, {0: np.arange(3) == 1})
    part, rest = (
        Product(SHAPE, {**whole.masks, 2: mask}) for mask in (np.arange(4) < 2, np.arange(4) >= 2)
    )
    one, other = (found.share(each, whole, 0.05) for each in (part, rest))
    assert one is not None and other is not None
    assert one.ends == pytest.approx((1 - other.ends[1], 1 - other.ends[0]))
    above, below = (found.prove((each,), 0.05) for each in (part, whole))
    assert above is not None and below is not None
    widest = (above.value + above.width) / (below.value - below.width)
    assert one.ends[1] - 0.5 < 0.7 * (widest - 0.5)


def test_a_share_of_nobody_for_certain_is_from_nothing_to_all() -> None:
    found = mean_proofs(np.zeros(DRAWS), np.zeros(SHAPE, np.int64))
    weights = np.array([3.0, -1.0, -1.0, -1.0])
    mean = found.share(Product(SHAPE, {}, {2: weights}), Product(SHAPE, {}), 0.05)
    assert mean is not None and mean.ends == (-1.0, 3.0)


def test_a_mean_of_nobody_for_certain_has_no_ends() -> None:
    found = mean_proofs(np.zeros(DRAWS), np.zeros(SHAPE, np.int64))
    below = Product(SHAPE, {1: np.arange(5) < 4})
    assert found.mean(Product(SHAPE, below.masks, {1: MIDDLES}), below, 0.05) is None


def test_quotients_have_the_ends_at_which_the_difference_is_as_wide_as_stated() -> None:
    values, variances = (50.0, 20.0), (9.0, 4.0, 10.0)
    ends = fieller(values, variances, 2.0)
    assert ends is not None
    for r in ends:
        spread = variances[0] - 2 * r * (9 + 4 - 10) / 2 + r**2 * variances[1]
        assert abs(values[0] - r * values[1]) == pytest.approx(2 * spread**0.5, rel=1e-6)
