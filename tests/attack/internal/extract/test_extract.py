"""Extraction as a whole: which learner is chosen, what is counted, and what is said at the end."""

from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import pytest
from attack.small_classifiers import Asked, ball, parabola, trained

from casemate.attack.extract import extract
from casemate.attack.extract.boundary import Boundary, Floats
from casemate.attack.extract.extraction import Extracted, ExtractLearnerName
from casemate.errors import Misconfigured


def stolen(target: Asked, seed: int, **options: Any) -> Extracted:
    found = extract(
        target,
        len(target.truth.weights),
        truth=target.truth,
        random=np.random.default_rng(seed),
        **options,
    )
    assert found.queries == target.count
    return found


@pytest.mark.parametrize("dimension", [1, 2, 3, 8, 20, 60])
def test_without_noise_everything_takes_21_queries_an_unknown(dimension: int, seed: int) -> None:
    """Opposite corners lie on opposite sides of a boundary through the middle; finding the sides of
    another may take a few queries more, however it is done.
    """
    for draw in range(4):
        target = Asked(Boundary(Asked.drawn(dimension, seed + draw).truth.weights, 0.0))
        found = stolen(target, seed)
        assert found.angle is not None and found.angle < 1e-5
        assert found.queries <= 21 * (dimension + 1)


@pytest.mark.parametrize("dimension", [1, 2, 3, 8, 20, 60])
def test_labels_without_noise_go_to_lowd_and_meek(dimension: int, seed: int) -> None:
    found = stolen(Asked.drawn(dimension, seed), seed)
    assert (found.learner, found.noise, found.flips) == ("lowd-meek", 0.0, 0.0)
    assert (found.agreement, found.linear) == (1.0, True)
    assert found.angle is not None and found.angle < 1e-5
    assert found.offset is not None and found.offset < 1.2e-5


@pytest.mark.parametrize(("noise", "flips"), [(0.3, 0.0), (0.02, 0.0), (0.0, 0.1), (0.1, 0.05)])
def test_noisy_labels_go_to_the_filter(noise: float, flips: float, seed: int) -> None:
    target = Asked.drawn(5, seed, noise, flips)
    found = stolen(target, seed)
    assert found.learner == "filter" and found.linear is True
    assert found.queries == 500 * 6
    assert found.angle is not None and found.angle < 0.2 * noise + 0.01
    assert found.flips == pytest.approx(flips, abs=0.06)


def test_a_trained_perceptron_is_copied_in_its_own_box(seed: int) -> None:
    """The box is asymmetric, and the boundary is told in its coordinates."""
    inner = trained(4, np.random.default_rng(seed))
    truth = Boundary(inner.weights, inner.intercept - 3 * float(inner.weights.sum()))
    target = Asked(truth)
    found = stolen(target, seed, bounds=(1.5, 4.5))
    assert all(points.min() >= 1.5 and points.max() <= 4.5 for points in target.points)
    assert found.found.unit().intercept == pytest.approx(truth.unit().intercept, abs=1e-3)
    assert found.angle is not None and found.angle < 1e-5
    assert found.offset is not None and found.offset < 3e-5


@pytest.mark.parametrize("labels", [("ham", "spam"), (-1, 1), (2.5, 7.0), ("1", "2")])
def test_the_boundary_says_which_label_is_where(labels: tuple[Any, Any], seed: int) -> None:
    truth = Asked.drawn(3, seed).truth

    def predict(points: Floats) -> list[Any]:
        return [labels[int(each)] for each in truth.above(points)]

    found = extract(predict, 3, random=np.random.default_rng(seed))
    assert found.labels == labels and found.angle is None and found.offset is None
    assert found.found.weights == pytest.approx(truth.weights, abs=1e-4)


@pytest.mark.parametrize("queries", [2, 5, 17, 60, 200, 1000])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_limit_is_never_passed(queries: int, noise: float, seed: int) -> None:
    target = Asked.drawn(4, seed, noise)
    with suppress(Misconfigured) if queries < 60 else nullcontext():  # one label, so far
        found = stolen(target, seed, queries=queries)
        assert np.isfinite(found.found.weights).all()
    assert 2 <= target.count <= queries


def test_more_queries_than_it_takes_make_it_finer(seed: int) -> None:
    found = stolen(Asked.drawn(6, seed), seed, queries=1000)
    assert found.angle is not None and found.angle < 1e-9 and found.queries < 500


def test_the_same_generator_asks_the_same_points(seed: int) -> None:
    one, other = (Asked.drawn(3, seed, noise=0.1) for _ in range(2))
    stolen(one, 5, queries=300)
    stolen(other, 5, queries=300)
    assert all((a == b).all() for a, b in zip(one.points, other.points, strict=True))


@pytest.mark.parametrize("name", list(ExtractLearnerName))
def test_a_learner_can_be_asked_for(name: ExtractLearnerName, seed: int) -> None:
    found = stolen(Asked.drawn(3, seed), seed, learner=name, queries=600)
    assert found.learner == name and found.angle is not None and found.angle < 0.02


@pytest.mark.parametrize("curved", [parabola, ball])
def test_a_curved_boundary_is_said_to_be_none(curved: Any, seed: int) -> None:
    found = extract(curved, 2, random=np.random.default_rng(seed))
    assert found.linear is False
    assert found.agreement is not None and found.agreement < 0.95


def test_one_label_is_one_sentence(seed: int) -> None:
    with pytest.raises(Misconfigured, match="same label to all"):
        extract(lambda points: [1] * len(points), 2, random=np.random.default_rng(seed))


def test_an_interrupt_gives_the_best_so_far(seed: int) -> None:
    target = Asked.drawn(4, seed, noise=0.1)

    def predict(points: Floats) -> Any:
        if target.count > 1200:
            raise KeyboardInterrupt
        return target(points)

    found = extract(predict, 4, truth=target.truth, random=np.random.default_rng(seed))
    assert not found.finished and found.agreement is None and found.linear is None
    assert found.angle is not None and found.angle < 0.1
    assert found.queries >= target.count


def test_an_interrupt_before_anything_is_known_is_an_interrupt() -> None:
    def predict(points: Floats) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(predict, 2)


def test_fewer_than_two_queries_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least 2 queries"):
        extract(ball, 2, queries=1)
