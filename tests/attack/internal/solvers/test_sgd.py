import numpy as np
import pytest

from casemate.attack.solvers.kaczmarz import EquationStream, Order
from casemate.attack.solvers.least_squares import least_squares
from casemate.attack.solvers.sgd import SigmoidStream, sgd
from casemate.exact import Floats, Rows, System

HOSPITAL = Rows.of(System.of([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]))
ANSWERS = np.array([32.1, 15.5, 11.4])
HIGH = np.array([5.0, 10, 10, 10, 10, 10])


def sums(values: Floats) -> Floats:
    return HOSPITAL.times(values) * HOSPITAL.lengths


@pytest.mark.theorem("002: Handling many queries (stochastic gradient, sigmoid)")
def test_the_hospital_stays_in_its_box_and_keeps_its_sums(seed: int) -> None:
    found = sgd(
        HOSPITAL,
        ANSWERS,
        random=np.random.default_rng(seed),
        low=3.0,
        high=HIGH,
        tolerance=1e-8,
    )
    assert found.converged
    assert 3 < found.values[0] < 5
    assert 6.4 < found.values[4] < 8.4
    np.testing.assert_allclose(sums(found.values), ANSWERS, atol=1e-5)
    printed = [4.0699, 5.2092, 5.1653, 5.1653, 7.3273, 5.1653]
    np.testing.assert_allclose(found.values, printed, atol=0.05)


@pytest.mark.theorem("002: Handling many queries (stochastic gradient, step 0.01)")
def test_a_thousand_steps_of_the_document_lead_to_its_printed_point(seed: int) -> None:
    """Rows drawn evenly, with repetition; 1,000 steps of 0.01 are what it prints the end of."""

    def drawn_evenly(_: Rows, random: np.random.Generator) -> np.ndarray:
        return random.integers(0, 3, 1_000)

    found = run_of_one_pass(drawn_evenly, np.random.default_rng(seed))
    printed = [4.0698786, 5.2092214, 5.165333, 5.165333, 7.3272643, 5.165333]
    np.testing.assert_allclose(found, printed, atol=0.02)


def run_of_one_pass(order: Order, random: np.random.Generator) -> Floats:
    return sgd(
        HOSPITAL, ANSWERS, random=random, low=3.0, high=HIGH, rate=0.01, order=order, most=1
    ).values


def test_without_a_box_it_converges_to_least_squares(seed: int) -> None:
    found = sgd(HOSPITAL, ANSWERS, random=np.random.default_rng(seed), tolerance=1e-9)
    assert found.converged
    best = least_squares(HOSPITAL, ANSWERS, tolerance=1e-10)
    np.testing.assert_allclose(found.values, best.values, atol=1e-6)


@pytest.mark.parametrize("case", range(10))
def test_a_step_is_the_gradient_behind_the_sigmoid_written_out(case: int, seed: int) -> None:
    """Against automatic differentiation by central differences, of the document's loss."""
    rng = np.random.default_rng([seed, case])
    low, high = -2 - rng.random(5), 2 + rng.random(5)
    row = rng.choice([0.0, 1.0, -2.0], 5)
    row[0] = 1.0
    columns, answer = np.flatnonzero(row), float(rng.normal())
    z = rng.normal(size=5)

    def values(behind: Floats) -> Floats:
        inside: Floats = low + (high - low) / (1 + np.exp(-behind))
        return inside

    def loss(behind: Floats) -> float:
        return float((answer - row @ values(behind)) ** 2)

    slope = np.array([(loss(z + d) - loss(z - d)) / 2e-6 for d in np.eye(5) * 1e-6])
    stream = SigmoidStream(5, low=low, high=high, start=values(z), rate=0.01)
    stream.see(columns, answer, row[columns])
    np.testing.assert_allclose(stream.point, values(z - 0.01 * slope), atol=1e-7)


def test_a_step_of_its_own_length_makes_the_equation_nearly_hold() -> None:
    stream = SigmoidStream(3, low=0.0, high=9.0)
    for _ in range(4):
        stream.see(np.array([0, 2]), 7.0)
    assert stream.point[[0, 2]].sum() == pytest.approx(7.0, abs=1e-6)
    assert stream.point[1] == 4.5


def test_without_a_box_a_stream_makes_the_steps_of_kaczmarz(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = SigmoidStream(8), EquationStream(8)
    for line in rng.choice([0.0, 1.0, -3.0], (30, 8)):
        columns, answer = np.flatnonzero(line), float(rng.normal())
        one.see(columns, answer, line[columns])
        other.see(columns, answer, line[columns])
    np.testing.assert_allclose(one.point, other.point, atol=1e-9)


def test_values_at_an_end_are_approached_and_never_passed(seed: int) -> None:
    """Yes/no values behind sums of halves: every one of them is an end of its range."""
    rng = np.random.default_rng(seed)
    dense, truth = rng.integers(0, 2, (400, 100)), rng.integers(0, 2, 100)
    rows = Rows.of(System.of(dense.tolist()))
    found = sgd(rows, (dense @ truth).astype(float), random=rng, low=0.0, high=1.0, tolerance=1e-6)
    assert found.converged
    assert (found.values.round() == truth).all()
    assert found.values.min() >= 0 and found.values.max() <= 1


def test_known_values_and_values_of_one_end_keep_what_is_known(seed: int) -> None:
    low = np.array([4.0, -np.inf, 0.0, -np.inf, -np.inf, -np.inf])
    high = np.array([4.0, np.inf, np.inf, 1.0, np.inf, np.inf])
    draws = np.random.default_rng(seed)
    found = sgd(HOSPITAL, ANSWERS, random=draws, low=low, high=high, tolerance=1e-8)
    assert found.converged
    assert found.values[0] == 4.0
    assert found.values[4] == pytest.approx(7.4, abs=1e-4)
    assert found.values[3] <= 1.0 and found.values[2] >= 0.0


def test_noisy_equations_come_to_rest_at_least_squares_when_averaged(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 2, (240, 60))
    right = dense @ rng.normal(size=60) + rng.normal(size=240)
    rows = Rows.of(System.of(dense.tolist()))
    best = least_squares(rows, right, tolerance=1e-9)
    found = sgd(rows, right, random=rng, averaged=True, tolerance=1e-3)
    assert found.converged
    assert found.residual <= 1.005 * best.residual
    last = sgd(rows, right, random=rng, most=found.iterations)
    assert last.residual > 1.02 * best.residual


def test_a_stream_that_averages_is_nearer_to_the_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.uniform(2, 8, 20)
    streams = [SigmoidStream(20, low=0.0, high=10.0, averaged=each) for each in (False, True)]
    for _ in range(4_000):
        columns = np.flatnonzero(rng.random(20) < 0.5)
        answer = float(truth[columns].sum() + rng.normal())
        for stream in streams:
            stream.see(columns, answer)
    last, average = (float(np.linalg.norm(each.point - truth)) for each in streams)
    assert average < 0.5 * last


def test_the_documents_constant_step_is_too_long_for_long_rows(seed: int) -> None:
    """With 200 values in a sum the step of 0.01 leaps from end to end; the usual one arrives."""
    rng = np.random.default_rng(seed)
    dense, truth = rng.integers(0, 2, (800, 400)), rng.uniform(3, 10, 400)
    rows, right = Rows.of(System.of(dense.tolist())), dense @ truth
    given = {"low": 3.0, "high": 10.0, "most": 60}
    theirs = sgd(rows, right, random=rng, rate=0.01, **given)  # type: ignore[arg-type]  # numbers
    ours = sgd(rows, right, random=rng, **given)  # type: ignore[arg-type]  # numbers
    assert ours.residual < 0.01 < theirs.residual


def test_a_rate_that_is_not_above_zero_is_refused(seed: int) -> None:
    with pytest.raises(ValueError, match="above 0, not -1"):
        sgd(HOSPITAL, ANSWERS, random=np.random.default_rng(seed), rate=-1)


def test_the_same_generator_gives_the_same_point(seed: int) -> None:
    one, other = (
        sgd(HOSPITAL, ANSWERS, random=np.random.default_rng(seed), low=3.0, high=HIGH, most=5)
        for _ in range(2)
    )
    assert one.values.tolist() == other.values.tolist()
