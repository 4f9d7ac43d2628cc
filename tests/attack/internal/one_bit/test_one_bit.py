"""The attack through yes/no answers: errors, limits, values, and interrupts."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from attack.one_bit_streams import two_humps
from chance import assert_rate_at_most

from casemate.attack.one_bit import OneBitAttack
from casemate.attack.one_bit.attack import OneBitFound, OneBitOptions, identifiable
from casemate.attack.one_bit.choice import KnownNoise, OneBitLearnerName
from casemate.attack.one_bit.laws import Gaussian, Law
from casemate.attack.one_bit.streams import Weighting
from casemate.errors import Misconfigured
from casemate.table import Table

BOUNDS = (0.0, 100.0)
RUNS = 12


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """Two hundred people of different ages, and a number for each."""
    random = np.random.default_rng(5)
    rows = [f"{place},{random.integers(0, 41)}" for place in range(200)]
    path = tmp_path_factory.mktemp("people") / "people.csv"
    path.write_text("\n".join(["age,pay", *rows, ""]))
    with Table.open(path, private=["pay"]) as table:
        yield table


@cache
def attacked(
    people: Table,
    noise: str | Law = "gaussian:1000",
    learner: str = "auto",
    told: str = "law",
    *,
    seed: int = 0,
    queries: int = 5_000,
    dimensions: int = 4,
) -> OneBitFound:
    return OneBitAttack.of(
        people,
        noise=noise,
        queries=queries,
        dimensions=dimensions,
        bounds=BOUNDS,
        options=OneBitOptions(OneBitLearnerName(learner), KnownNoise(told)),
        random=np.random.default_rng(seed),
    )


def ratios(people: Table, *arguments: str, seed: int) -> list[float]:
    found = [attacked(people, *arguments, seed=seed + i).errors.ratio for i in range(RUNS)]
    return [each for each in found if each is not None]


# What is exactly true -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [
        "bisection",
        "kalman",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("edge", "automatic")),
    ],
)
def test_the_same_seed_gives_the_same_attack(people: Table, learner: str) -> None:
    told = "nothing" if learner == "automatic" else "law"
    one = attacked(people, "uniform:500", learner, told, queries=1_500)
    attacked.cache_clear()
    other = attacked(people, "uniform:500", learner, told, queries=1_500)
    assert (one.errors, one.curve, one.values) == (other.errors, other.curve, other.values)
    assert one.learner == learner
    third = attacked(people, "uniform:500", learner, told, queries=1_500, seed=1)
    assert third.errors.error != one.errors.error


def test_the_curve_has_powers_of_ten_and_ends_where_the_stream_does(people: Table) -> None:
    found = attacked(people, queries=1_234)
    places = [each.queries for each in found.curve]
    assert places[0] == 1 and places[-1] == 1_234 and {1, 10, 100, 1_000} < set(places)
    assert places == sorted(set(places))
    last = found.curve[-1]
    assert (last.error, last.limit) == (found.errors.error, found.errors.limit)


def test_blocks_do_not_change_the_limit(people: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = attacked(people, queries=900)
    attacked.cache_clear()
    monkeypatch.setattr("casemate.attack.one_bit.attack.NUMBERS_PER_BLOCK", 400)
    parts = attacked(people, queries=900)
    attacked.cache_clear()
    assert parts.errors.limit == pytest.approx(whole.errors.limit, rel=0.02)
    assert parts.queries == 900


def test_a_ratio_counts_only_below_a_quarter_of_one_half(people: Table) -> None:
    early, late = attacked(people, queries=3), attacked(people, queries=5_000)
    assert early.errors.limit > early.errors.baseline / 4 and early.errors.ratio is None
    assert early.late_ratio is None
    assert late.errors.limit < late.errors.baseline / 4
    assert late.errors.ratio == late.errors.error / late.errors.limit
    assert repr(late) == "<OneBitFound: 5000 queries about 4 groups>"  # nothing of the secret


def test_the_learner_is_chosen_by_the_law_and_the_length_of_the_stream(people: Table) -> None:
    """An edge of uniform noise pays after 8.5 queries a group, one of a law cut far out later."""
    assert attacked(people, "uniform:500", queries=100).learner == "edge"
    assert attacked(people, "uniform:500", queries=20).learner == "kalman"
    assert attacked(people, "gaussian:500[-1500:1500]", queries=100).learner == "kalman"


@pytest.mark.parametrize("learner", ["edge", "bisection"])
def test_learners_that_read_the_law_have_to_be_told_it_and_confidence_is_a_chance(
    people: Table, learner: str
) -> None:
    with pytest.raises(Misconfigured, match=f"the learner {learner} has to know the law"):
        attacked(people, "uniform:500", learner, "scale")
    with pytest.raises(Misconfigured, match="must lie between 0 and 1"):
        OneBitOptions(confidence=1.0)


def test_groups_that_queries_cannot_tell_apart_have_no_value(people: Table) -> None:
    assert attacked(people, queries=3).values == ()
    told_apart = attacked(people, queries=4)
    assert [each.records for each in told_apart.values] == told_apart.totals.groups.sizes.tolist()
    assert identifiable(np.diag([1.0, 0.0, 3.0])).tolist() == [True, False, True]


def test_an_interrupt_leaves_the_best_so_far(people: Table) -> None:
    seen = []

    def interrupted(count: int) -> None:
        seen.append(count)
        if sum(seen) >= 100:
            raise KeyboardInterrupt

    found = OneBitAttack.of(
        people,
        noise="laplace:100",
        queries=10_000,
        bounds=BOUNDS,
        random=np.random.default_rng(0),
        progress=interrupted,
    )
    assert not found.finished and found.queries == sum(seen) == found.curve[-1].queries
    assert len(found.values) == 16


# What is true on average ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "told", "most"),
    [
        ("gaussian:1000", "law", 1.35),
        ("laplace:1000[-500:3000]", "law", 1.5),
        ("gaussian:1000", "nothing", 1.7),
        ("uniform:1000", "law", 1.35),
    ],
)
def test_the_filter_is_near_the_limit_and_thresholds_at_the_edge_of_the_noise_far_below_it(
    people: Table, noise: str, told: str, most: float, seed: int
) -> None:
    found = ratios(people, noise, "kalman", told, seed=seed)
    assert len(found) == RUNS and 0.7 < np.mean(found) < most
    if noise.startswith("uniform"):
        assert np.mean(ratios(people, noise, "edge", seed=seed)) < 0.6 * np.mean(found)


def test_bisection_keeps_the_truth_in_its_box_and_is_far_from_the_limit(
    people: Table, seed: int
) -> None:
    runs = [attacked(people, "uniform:100", "bisection", seed=seed + i) for i in range(4)]
    assert all(each.weights is Weighting.SINGLE and each.inside == 4 for each in runs)
    assert all(each.errors.error < each.curve[0].error for each in runs)
    assert np.mean([each.errors.error / each.errors.limit for each in runs]) > 3


def test_intervals_hold_the_truth_about_as_often_as_they_say(people: Table, seed: int) -> None:
    runs = [attacked(people, "gaussian:1000", "kalman", seed=seed + i) for i in range(RUNS)]
    missed = sum(len(each.values) - each.inside for each in runs)
    assert_rate_at_most(missed, 4 * RUNS, 0.2)
    with pytest.raises(AssertionError):  # the twin: intervals a tenth as wide
        assert_rate_at_most(_outside_a_tenth(runs), 4 * RUNS, 0.2)


def _outside_a_tenth(runs: list[OneBitFound]) -> int:
    return sum(
        abs(value.value - run.totals.value(mean)) > (value.high - value.low) / 20
        for run in runs
        for value, mean in zip(run.values, run.totals.means, strict=True)
    )


def test_the_better_threshold_of_two_humps_is_found(people: Table, seed: int) -> None:
    """Between the humps the median tells next to nothing; `auto` asks elsewhere."""
    humps = two_humps(Gaussian(400), 1000)
    better, median = (
        attacked(people, humps, learner, queries=20_000, dimensions=2, seed=seed)
        for learner in ("auto", "kalman")
    )
    assert better.learner == "edge" and better.errors.kind == "supremum"
    assert better.noise == "mixture"
    assert better.errors.error < 0.5 * median.errors.error
    assert math.isfinite(better.errors.van_trees or math.inf)
