"""A kept fit is the one that the transcript leads to, bit for bit, or it is not used."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from surrogate.internal.test_stand_in import (
    HERE,
    NAMES,
    SHAPE,
    hard,
    histories,
    measured,
    scratch,
    state,
    total,
    transcript_of,
)

from casemate.doors import Content, Edition, Transcript, open_transcript
from casemate.errors import Misconfigured
from casemate.grid import Measurement, Product, TableQuestion, all_codes
from casemate.surrogate import KeptFit, StandIn, kept_fit
from casemate.surrogate.dense import DenseSurrogate
from casemate.surrogate.mixture import (
    MixtureSurrogate,
    ProductSupport,
    plain_product_value,
    product_value,
)
from casemate.surrogate.mixture_residuals import (
    chain,
    joined_axes,
    plain_transpose_product,
    transpose_product,
)
from casemate.surrogate.stand_in import DailyStandIn


def small_mixture(shape: tuple[int, ...], people: float, variance: float) -> DailyStandIn:
    return MixtureSurrogate(shape, people, variance, components=3, steps=1)


def table(scope: Sequence[int], values: Sequence[int], *, start: bool = True) -> Content:
    question = TableQuestion(all_codes(tuple(scope), SHAPE), start, "" if start else "x")
    return measured(HERE, question.text(NAMES), tuple(values))


START = [total(HERE, 90), table((0, 1), range(10, 16)), table((1, 2), range(11, 17))]
LATER = [hard(HERE, "g", ""), table((0, 1, 2), range(1, 13), start=False)]


def follow(transcript: Transcript, path: Path, edition: Edition = HERE) -> StandIn:
    found = StandIn(NAMES, SHAPE, edition, kept=KeptFit(path))
    found.catch_up(transcript)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a fit of the start and of a surprise."""
    kept = tmp_path / "kept"
    assert follow(transcript_of([*START, *LATER]), kept).surrogate
    return kept


def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many measurements each call of `learn` is given from now on."""
    seen: list[int] = []
    learn = DenseSurrogate.learn

    def counted(self: DenseSurrogate, given: Sequence[Measurement], **more: int) -> None:
        seen.append(len(given))
        learn(self, given, **more)

    monkeypatch.setattr(DenseSurrogate, "learn", counted)
    return seen


# The same bits ------------------------------------------------------------------------------------


@given(histories, st.lists(st.booleans(), min_size=14, max_size=14), st.booleans())
def test_in_a_new_process_after_any_entry_it_is_the_fold_from_scratch(
    history: list[Content], looked: list[bool], mixed: bool
) -> None:
    make = small_mixture if mixed else scratch(open_transcript(":memory:")).make
    transcript = open_transcript(":memory:")
    with TemporaryDirectory() as folder:
        kept = KeptFit(Path(folder) / "kept")
        for content, look in zip(history, looked, strict=False):
            transcript.append(content)
            if look:
                again, fresh = (StandIn(NAMES, SHAPE, HERE, make, k) for k in (kept, None))
                again.catch_up(transcript)
                fresh.catch_up(transcript)
                assert state(again) == state(fresh)


def test_what_was_fitted_before_is_not_fitted_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript, seen = transcript_of([*START, *LATER]), fits(monkeypatch)
    expected = state(scratch(transcript))
    seen.clear()
    assert state(follow(transcript, path)) == expected
    assert seen == []
    transcript.append(table((0, 2), range(4, 8), start=False))
    assert state(follow(transcript, path)) == state(scratch(transcript))
    assert seen[0] == 1, "only what came since is learnt"


def test_a_late_table_of_the_start_is_learnt_with_the_others(tmp_path: Path) -> None:
    kept, late = tmp_path / "kept", table((0, 2), range(4, 8))
    transcript = transcript_of(START)
    assert follow(transcript, kept).surrogate
    transcript.append(late)
    assert state(follow(transcript, kept)) == state(scratch(transcript))


def test_another_transcript_of_the_same_length_has_no_use_for_it(path: Path) -> None:
    other = transcript_of([START[0], START[2], START[1], *LATER])
    assert state(follow(other, path)) == state(scratch(other))


def test_an_older_transcript_has_no_use_for_it(path: Path) -> None:
    older = transcript_of(START)
    assert state(follow(older, path)) == state(scratch(older))


# Damaged, foreign, gone ---------------------------------------------------------------------------


@given(st.data())
def test_a_file_that_was_cut_or_changed_anywhere_is_done_without(data: st.DataObject) -> None:
    transcript = transcript_of([*START, *LATER])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kept"
        assert follow(transcript, path).surrogate
        whole = path.read_bytes()
        place = data.draw(st.integers(0, len(whole) - 1))
        other = bytes([whole[place] ^ data.draw(st.integers(1, 255))])
        torn = data.draw(
            st.sampled_from([whole[:place], whole[:place] + other + whole[place + 1 :]])
        )
        path.write_bytes(torn)
        assert state(follow(transcript, path)) == state(scratch(transcript))
        assert path.read_bytes() == whole, "and is made again"


def test_a_fit_of_another_edition_grid_or_code_is_done_without(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = scratch(transcript_of(START)).name
    kept = KeptFit(path)
    assert kept.read(name) is not None
    for other in (Edition("p", "w"), Edition("q", "v")):
        assert kept.read(StandIn(NAMES, SHAPE, other).name) is None
    assert kept.read(StandIn(("a", "b", "d"), SHAPE, HERE).name) is None
    assert kept.read(StandIn(NAMES, (2, 3, 3), HERE).name) is None
    monkeypatch.setattr(kept_fit, "fitting_code", lambda: "another")
    assert kept.read(name) is None


def test_a_fit_of_another_form_is_done_without(path: Path) -> None:
    transcript = transcript_of([*START, *LATER])
    found = follow(transcript, path)
    assert found.head is not None
    KeptFit(path).write(found.name, found.head, {"cells": np.ones((1, 2)), "scale": np.ones(1)})
    assert state(follow(transcript, path)) == state(scratch(transcript))


def test_killed_before_the_rename_the_old_file_stays_and_the_next_write_replaces_the_rest(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript, whole = transcript_of([*START, *LATER]), path.read_bytes()
    transcript.append(table((0, 2), range(4, 8), start=False))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    dying = follow(transcript, path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            _ = dying.surrogate
    assert path.read_bytes() == whole
    assert (path.parent / "kept.new").exists()
    assert state(follow(transcript, path)) == state(scratch(transcript))
    assert [each.name for each in path.parent.iterdir()] == ["kept"]
    assert path.read_bytes() != whole


def test_it_is_for_its_owner_alone_and_a_link_or_a_shared_file_is_refused(path: Path) -> None:
    name = scratch(transcript_of(START)).name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with pytest.raises(Misconfigured, match="used by others than its owner"):
        KeptFit(path).read(name)
    link = path.with_name("link")
    link.symlink_to(path)
    with pytest.raises(Misconfigured, match="delete it: it is made again"):
        KeptFit(link).read(name)


def test_where_it_cannot_be_written_or_is_too_large_it_is_done_without(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript = transcript_of(START)
    assert state(follow(transcript, path.parent / "no" / "kept")) == state(scratch(transcript))
    os.unlink(path)
    monkeypatch.setattr(kept_fit, "MAX_KEPT_NUMBERS", 3)
    assert state(follow(transcript, path)) == state(scratch(transcript))
    assert not path.exists()


# Sums without compiled passes ---------------------------------------------------------------------


@pytest.mark.parametrize("components", [1, 3, 4, 7, 200])
def test_the_plain_sums_have_the_bits_of_the_compiled_ones(components: int, seed: int) -> None:
    draws = np.random.default_rng(seed)
    axes = [draws.random((components, width)) for width in (3, 5, 2)]
    weights = draws.random((components, 1))
    left, right = chain(axes[:2], weights)[-1], chain(axes[2:], np.ones_like(weights))[-1]
    assert joined_axes(axes[:2], weights).tobytes() == left.tobytes()
    compiled = transpose_product(left, right)
    assert plain_transpose_product(left, right).tobytes() == compiled.tobytes()
    by_code = np.ascontiguousarray(np.concatenate(axes, axis=1).T)
    codes, factors = np.array([0, 2, 4, 7, 3]), draws.normal(size=5)
    for ends in ([5], [2, 5], [2, 2, 5]):
        support = ProductSupport(codes, factors, np.array(ends))
        found = plain_product_value(weights[:, 0], by_code, support)
        assert found == product_value(weights[:, 0], by_code, support)


def test_many_questions_at_once_are_answered_as_one_at_a_time() -> None:
    found = MixtureSurrogate(SHAPE, 90.0, components=4, steps=1)
    asked = [Product(SHAPE, {0: np.array([True, False])})] * 80
    assert (
        found.answers(asked).tobytes() == np.array([found.answer(each) for each in asked]).tobytes()
    )
