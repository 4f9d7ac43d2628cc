"""The descent: where it starts, how long it goes on, where it ends."""

import numpy as np
import pytest

from casemate.grid import Floats, Marginal, MeasuredMarginal
from casemate.surrogate import mixture as mixture_fit
from casemate.surrogate.mixture import (
    EXPLAINED,
    FEWEST,
    ShareLayout,
    affordable,
    compared,
    evidence,
    fitted,
    mixture_of,
    start,
)

LAYOUT = ShareLayout((3, 4, 2))


def pair(values: Floats, scope: tuple[int, ...] = (0, 1)) -> MeasuredMarginal:
    return MeasuredMarginal(Marginal(scope), values, 25.0)


def test_the_start_never_changes() -> None:
    """The raw numbers of a generator of counters: another version may not give others."""
    known = evidence(LAYOUT, [pair(np.ones((3, 4)))], 100.0)
    roots = start(2, LAYOUT, known).of_shares
    assert (roots**2)[0, :3] == pytest.approx(
        np.array(np.random.Philox(key=2).random_raw(3), np.uint64) / 2.0**64, abs=1e-15
    )
    assert ((roots > 0) & (roots <= 1)).all()
    assert start(2, LAYOUT, known).of_shares.tobytes() == roots.tobytes()


def test_an_attribute_known_alone_or_not_at_all_starts_alike_in_all_components() -> None:
    known = evidence(LAYOUT, [pair(np.ones((3, 4))), pair(np.ones(2), (2,))], 100.0)
    roots = start(6, LAYOUT, known).of_shares
    assert (roots[:, 7:] == 1).all()
    assert (np.ptp(roots[:, :7], axis=0) > 0).all()


def test_without_evidence_the_mixture_is_its_start() -> None:
    roots = start(6, LAYOUT)
    assert (
        fitted(roots, LAYOUT, [], 100).shares.tolist() == mixture_of(roots, LAYOUT).shares.tolist()
    )
    assert mixture_of(roots, LAYOUT).weights == pytest.approx(np.full(6, 1 / 6))


def test_the_descent_ends_where_the_noise_explains_the_rest(seed: int) -> None:
    draw = np.random.default_rng([seed, 51])
    exact = draw.multinomial(10_000, draw.dirichlet(np.ones(12))).reshape(3, 4)
    known = evidence(LAYOUT, [pair(exact + draw.normal(0, 5, (3, 4)))], 10_000.0)
    roots = start(20, LAYOUT, known)
    before = compared(known, mixture_of(roots, LAYOUT)).excesses.max()
    after = compared(known, fitted(roots, LAYOUT, known, 600)).excesses.max()
    assert after <= EXPLAINED < before


def test_another_round_is_gone_only_where_something_is_not_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds: list[int] = []
    plain = mixture_fit._round

    def counted(*given: object) -> float:
        rounds.append(1)
        return plain(*given)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(mixture_fit, "_round", counted)
    possible = evidence(LAYOUT, [pair(np.full((3, 4), 100.0))], 1_200.0)
    fitted(start(20, LAYOUT, possible), LAYOUT, possible, 100)
    assert len(rounds) == 1
    rounds.clear()
    impossible = evidence(LAYOUT, [pair(np.full((3, 4), 100.0)), pair(np.eye(3, 4))], 1_200.0)
    impossible += evidence(LAYOUT, [pair(np.full(3, 900.0), (0,))], 1_200.0)
    fitted(start(20, LAYOUT, impossible), LAYOUT, impossible, 100)
    assert len(rounds) == mixture_fit.ROUNDS


def test_large_tables_have_fewer_steps_and_never_too_few() -> None:
    small = evidence(LAYOUT, [pair(np.ones((3, 4)))], 100.0)
    layout = ShareLayout((100, 100, 100))
    large = evidence(layout, [pair(np.ones((100, 100, 100)), (0, 1, 2))], 100.0)
    assert affordable(600, 200, small) == 600
    assert FEWEST <= affordable(600, 200, large) < 600
    assert affordable(600, 10**6, large) == FEWEST
    assert affordable(7, 10**6, large) == 7
