"""Extraction as a whole: which learner is chosen, what is counted, and what is said at the end."""

import math
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack.small_classifiers import Asked, ball, parabola

from casemate.attack.extract import extract
from casemate.attack.extract.boundary import Boundary, CountedClassifier, Floats, PointBox, Predict
from casemate.attack.extract.extraction import (
    Extracted,
    ExtractLearnerName,
    close_points_agree,
    read_truth,
)
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


@pytest.mark.parametrize("dimension", [1, 2, 8, 60])
def test_without_noise_everything_takes_21_queries_an_unknown(dimension: int, seed: int) -> None:
    """Opposite corners lie on opposite sides of a boundary through the middle; finding the sides of
    another may take a few queries more, however it is done.
    """
    for draw in range(3):
        target = Asked(Boundary(Asked.drawn(dimension, seed + draw).truth.weights, 0.0))
        found = stolen(target, seed)
        assert (found.learner, found.noise, found.flips) == ("lowd-meek", 0.0, 0.0)
        assert (found.agreement, found.linear) == (1.0, True)
        assert found.angle is not None and found.angle < 1e-5
        assert found.offset is not None and found.offset < 1.2e-5
        assert found.queries <= 21 * (dimension + 1)


@pytest.mark.parametrize(("noise", "flips"), [(0.3, 0.0), (0.02, 0.0), (0.0, 0.1), (0.1, 0.05)])
def test_noisy_labels_go_to_the_filter(noise: float, flips: float, seed: int) -> None:
    target = Asked.drawn(5, seed, noise, flips)
    found = stolen(target, seed)
    assert found.learner == "filter" and found.linear is True
    assert found.queries == 500 * 6
    assert found.angle is not None and found.angle < 0.2 * noise + 0.01
    assert found.flips == pytest.approx(flips, abs=0.06)


def test_a_classifier_is_copied_in_its_own_box(seed: int) -> None:
    """The box is asymmetric, and the boundary is told in its coordinates."""
    inner = Asked.drawn(4, seed).truth
    truth = Boundary(inner.weights, inner.intercept - 3 * float(inner.weights.sum()))
    target = Asked(truth)
    found = stolen(target, seed, bounds=(1.5, 4.5))
    assert all(points.min() >= 1.5 and points.max() <= 4.5 for points in target.points)
    assert found.found.unit().intercept == pytest.approx(truth.unit().intercept, abs=1e-3)
    assert found.angle is not None and found.angle < 1e-5
    assert found.offset is not None and found.offset < 3e-5


@pytest.mark.parametrize(
    "labels",
    [("ham", "spam"), (-1, 1), (0, 1), (2.5, 7.0), ("1", "2"), (False, True), (0, "yes")],
)
def test_the_boundary_says_which_label_is_where(labels: tuple[Any, Any], seed: int) -> None:
    """Whichever of them comes first."""
    drawn = Asked.drawn(3, seed).truth
    for truth in (drawn, drawn.opposite()):

        def predict(points: Floats, above: Predict = truth.above) -> list[Any]:
            return [labels[int(each)] for each in above(points)]

        found = extract(predict, 3, random=np.random.default_rng(seed))
        assert found.labels == labels and found.angle is None and found.offset is None
        assert found.found.weights == pytest.approx(truth.weights, abs=1e-4)


@pytest.mark.parametrize("learner", [None, *ExtractLearnerName])
@pytest.mark.parametrize("queries", [2, 17, 60, 400])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_limit_is_never_passed_and_few_queries_are_enough_for_a_guess(
    learner: ExtractLearnerName | None, queries: int, noise: float, seed: int
) -> None:
    target = Asked.drawn(4, seed, noise)
    with suppress(Misconfigured) if queries < 60 else nullcontext():  # one label, so far
        found = stolen(target, seed, queries=queries, learner=learner)
        assert np.isfinite(found.found.weights).all()
    assert 2 <= target.count <= queries


def test_more_queries_than_it_takes_make_it_finer(seed: int) -> None:
    found = stolen(Asked.drawn(6, seed), seed, queries=1000)
    assert found.angle is not None and found.angle < 1e-9 and found.queries < 500


@pytest.mark.parametrize("name", list(ExtractLearnerName))
def test_a_learner_can_be_asked_for(name: ExtractLearnerName, seed: int) -> None:
    found = stolen(Asked.drawn(3, seed), seed, learner=name, queries=600)
    assert found.learner == name and found.angle is not None and found.angle < 0.02


@pytest.mark.parametrize("curved", [parabola, ball])
def test_a_curved_boundary_is_said_to_be_none(curved: Any, seed: int) -> None:
    found = extract(curved, 2, random=np.random.default_rng(seed))
    assert found.linear is False
    assert found.checked is not None and found.checked.agreement < 0.95
    assert found.checked.repeats  # which noise would not


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


def test_close_points_agree_with_the_truth_and_a_search_that_never_closed_is_not_believed(
    seed: int,
) -> None:
    """Points as close as the precision agree with nothing else; it is, where nothing is left."""
    target, random = Asked.drawn(5, seed), np.random.default_rng(seed)
    asking = CountedClassifier(target, PointBox(5), 1000)
    asking.ask(-np.sign(target.truth.weights)[None])  # the first label is the one below
    assert close_points_agree(asking, target.truth, 1e-5, 40, random)
    turned = Boundary(target.truth.weights + 0.05 * random.normal(size=5), target.truth.intercept)
    assert not close_points_agree(asking, turned, 1e-5, 40, random)
    assert not close_points_agree(asking, target.truth, math.inf, 9, random)
    asking.limit = asking.count + 9
    assert close_points_agree(asking, target.truth, math.inf, 9, random)


@pytest.mark.parametrize(
    ("text", "intercept"),
    [
        ('{"weights": [1, -2], "intercept": 0.5}', 0.5),
        ('{"weights": [1, -2]}', math.nan),
        ('{"weights": [1, -2], "intercept": null}', math.nan),
        ("[1, -2]", math.nan),
        ("[1, -2, 3]", 3),
        ("1,-2\n", math.nan),
        ("\ufeff1\n-2\n0.5\n", 0.5),
        ("1 -2 5e-1", 0.5),
    ],
)
def test_weights_and_perhaps_an_intercept_are_read(
    text: str, intercept: float, tmp_path: Path
) -> None:
    (tmp_path / "truth").write_text(text, encoding="utf-8")
    found = read_truth(tmp_path / "truth", 2)
    assert found.weights.tolist() == [1, -2]
    assert found.intercept == pytest.approx(intercept, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1]", "has 1 numbers; expected 2 weights"),
        ("1,2,3,4", "has 4 numbers"),
        ("a,b", "neither numbers nor JSON"),
        ('"12"', "neither numbers nor JSON"),
        ("null", "neither numbers nor JSON"),
        ('{"weight": [1, 2]}', "neither numbers nor JSON"),
        ('{"weights": [1, [2]]}', "neither numbers nor JSON"),
        ("0,0", "not all 0"),
        ("1,inf", "must be finite"),
        ("", "has 0 numbers"),
    ],
)
def test_a_file_that_is_no_boundary_is_one_sentence(
    text: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "truth").write_text(text)
    with pytest.raises(Misconfigured, match=sentence):
        read_truth(tmp_path / "truth", 2)
