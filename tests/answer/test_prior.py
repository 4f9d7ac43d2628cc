"""A public table that the stand-in starts from: read before a charge, in the edition, replayed."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from answer.session_world import parity

from casemate import Misconfigured, Session, replay
from casemate.answer.prior import PublicPrior
from casemate.table import Universe, load_policy

SQL = "SELECT a, b, c, COUNT(*) AS n FROM t GROUP BY a, b, c"


def with_prior(folder: Path, head: str = "a,b,c", rows: int = 400) -> Path:
    """A policy whose prior has the parity that tables of two columns do not show."""
    policy = parity(folder, 'prior = "last.csv"')
    lines = [f"{i % 2},{i // 2 % 2},{(i + i // 2) % 2}" for i in range(rows)]
    (folder / "last.csv").write_text("\n".join([head, *lines, ""]))
    return policy


def test_the_stand_in_starts_from_it_and_keeps_what_no_table_of_two_columns_says(
    tmp_path: Path,
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    shown = []
    for policy in (with_prior(tmp_path), parity(plain)):
        with Session.simulated(policy, seed=1) as session:
            construction = session._dataset.construction
            construction.start()
            counts = construction.stand_in.surrogate.marginal((0, 1, 2))
            even = counts[0, 0, 0] + counts[0, 1, 1] + counts[1, 0, 1] + counts[1, 1, 0]
            shown.append(float(even / counts.sum()))
    assert shown[0] > 0.9 and shown[1] == pytest.approx(0.5, abs=0.1)


def test_every_answer_says_that_it_is_public(tmp_path: Path) -> None:
    with Session.simulated(with_prior(tmp_path), seed=1) as session:
        assert any("last.csv, which is public" in note for note in session.query(SQL).notes)


def test_its_content_is_part_of_the_edition_and_a_replay_starts_from_it(tmp_path: Path) -> None:
    policy = with_prior(tmp_path)
    with Session(policy) as session:
        session.query(SQL)
        edition, stand_in = session._dataset.doors.edition, session._dataset.construction.stand_in
        counts = [stand_in.surrogate.marginal((axis,)).tobytes() for axis in range(3)]
    found = replay(policy)
    assert found.equal and found.stand_in == hashlib.sha256(b"".join(counts)).hexdigest()
    (tmp_path / "last.csv").write_text("a,b,c\n0,0,0\n")
    with Session(policy) as session:
        assert session._dataset.doors.edition != edition


@pytest.mark.parametrize(
    ("head", "rows", "reason"), [("a,b,other", 10, "`columns.c`"), ("a,b,c", 0, "has no rows")]
)
def test_a_table_that_does_not_fit_is_refused_before_there_is_a_ledger(
    head: str, rows: int, reason: str, tmp_path: Path
) -> None:
    policy = with_prior(tmp_path, head, rows)
    with pytest.raises(Misconfigured, match=reason):
        Session(policy)
    assert not (tmp_path / "casemate.ledger").exists()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    policy = with_prior(tmp_path)
    (tmp_path / "last.csv").unlink()
    with pytest.raises(Misconfigured, match=r"`answer.prior` names .*last.csv"):
        Session(policy)


def test_a_grid_too_large_for_it_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("casemate.answer.prior.MAX_DENSE_CELLS", 7)
    with pytest.raises(Misconfigured, match=r"`answer\.prior` needs a grid of at most 7 cells"):
        Session(with_prior(tmp_path))


def test_no_cell_is_without_mass(tmp_path: Path) -> None:
    policy = load_policy(with_prior(tmp_path))
    shares = PublicPrior(policy, Universe.of(policy)).shares
    assert shares is not None and shares.min() > 0 and np.isclose(shares.sum(), 1)
