"""The stand-in is a function of the transcript: however read, it is the fold from scratch."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.doors import (
    Answered,
    Content,
    Easy,
    Edition,
    Hard,
    Measured,
    Opened,
    PeopleTotal,
    Transcript,
    open_transcript,
)
from casemate.grid import CellClasses, Floats, TableQuestion, all_codes
from casemate.surrogate import MAX_DENSE_CELLS, StandIn, stand_in_for
from casemate.surrogate.dense import DenseSurrogate
from casemate.surrogate.mixture import MixtureSurrogate

SHAPE, NAMES = (2, 3, 2), ("a", "b", "c")
HERE, ELSEWHERE = Edition("p", "v"), Edition("p", "w")
SCALE = Fraction(2)


def measured(edition: Edition, text: str, values: tuple[int, ...]) -> Measured:
    return Measured(text, edition.policy, edition.data, "gaussian", SCALE, values)


def total(edition: Edition, value: int) -> PeopleTotal:
    return PeopleTotal(
        "the number of people", edition.policy, edition.data, "gaussian", SCALE, (value,)
    )


def hard(edition: Edition, text: str, principal: str) -> Hard:
    facts = (text, edition.policy, edition.data, "r", 1, 5, -1)
    return Hard(*facts, principal=principal, sign=0, gap=2)


def easy(edition: Edition, text: str) -> Easy:
    return Easy(text, edition.policy, edition.data, "r", 1, 5, -1)


# Histories --------------------------------------------------------------------------------------

editions = st.sampled_from([HERE, HERE, HERE, ELSEWHERE])
scopes = st.sets(st.integers(0, 2), min_size=1).map(lambda chosen: tuple(sorted(chosen)))


@st.composite
def tables(draw: st.DrawFn) -> Measured:
    """A table of the start, or of a surprise, whose codes may be put together."""
    scope, edition = draw(scopes), draw(editions)
    start = draw(st.booleans())
    classes = all_codes(scope, SHAPE)
    if not start and draw(st.booleans()):
        classes = CellClasses(scope, tuple((0, *[1] * (SHAPE[a] - 1)) for a in scope))
    question = TableQuestion(classes, start, "" if start else draw(st.sampled_from("xyz")))
    values = draw(st.lists(st.integers(-5, 60), min_size=classes.cells, max_size=classes.cells))
    return measured(edition, question.text(NAMES), tuple(values))


@st.composite
def statements(draw: st.DrawFn) -> Measured:
    """A statement that was measured by itself."""
    mask = {"masks": {"0": [1]}, "weights": {}}
    learn = [mask] if draw(st.booleans()) else []
    plain = {"statement": draw(st.sampled_from("stu")), "part": 0, "learn": learn}
    return measured(draw(editions), json.dumps(plain), (draw(st.integers(0, 50)),))


others = st.one_of(
    st.builds(hard, editions, st.sampled_from("gh"), st.sampled_from(["", "alice"])),
    st.builds(easy, editions, st.sampled_from("ij")),
    st.builds(total, editions, st.integers(1, 200)),
    st.just(Opened("r", Fraction(1), Fraction(2), Fraction(4), 1, True)),
    st.builds(lambda e, t: Answered(t, e.policy, e.data, "{}"), editions, st.sampled_from("kl")),
)
histories = st.lists(st.one_of(tables(), statements(), others), max_size=14)


def transcript_of(history: list[Content]) -> Transcript:
    transcript = open_transcript(":memory:")
    for content in history:
        transcript.append(content)
    return transcript


def state(stand_in: StandIn) -> tuple[object, ...]:
    """All that anybody can see of a stand-in, to the last bit."""
    everything = None
    if stand_in.total is not None:
        everything = stand_in.surrogate.marginal((0, 1, 2)).tobytes()
    return (
        everything,
        stand_in.total,
        dict(stand_in.surprises),
        stand_in.fresh,
        [(table.question, table.values.tobytes()) for table in stand_in.tables],
        len(stand_in.measurements),
        stand_in.number,
    )


def scratch(transcript: Transcript, until: int | None = None) -> StandIn:
    fresh = StandIn(NAMES, SHAPE, HERE)
    fresh.catch_up(transcript, until)
    return fresh


# However it was read ----------------------------------------------------------------------------


@given(histories, st.lists(st.booleans(), min_size=14, max_size=14))
def test_read_as_it_came_and_looked_at_or_not_it_is_the_fold_from_scratch(
    history: list[Content], looked: list[bool]
) -> None:
    """Another edition's entries, late tables of the start and a late total among them."""
    transcript, followed = open_transcript(":memory:"), StandIn(NAMES, SHAPE, HERE)
    for content, look in zip(history, looked, strict=False):
        transcript.append(content)
        followed.catch_up(transcript)
        if look:
            assert state(followed) == state(scratch(transcript))
    assert state(followed) == state(scratch(transcript))


@given(histories, st.lists(st.tuples(st.integers(0, 14), st.booleans()), max_size=6))
def test_caught_up_in_any_pieces_it_is_the_fold_from_scratch(
    history: list[Content], stops: list[tuple[int, bool]]
) -> None:
    transcript, followed = transcript_of(history), StandIn(NAMES, SHAPE, HERE)
    for stop, look in sorted(stops):
        followed.catch_up(transcript, stop)
        if look and followed.total is not None:
            assert state(followed) == state(scratch(transcript, stop))
    followed.catch_up(transcript)
    assert state(followed) == state(scratch(transcript))


@given(histories, st.integers(0, 14))
def test_as_it_was_at_an_entry_it_is_the_fold_of_the_entries_up_to_it(
    history: list[Content], number: int
) -> None:
    length = len(list(transcript_of(history).replay()))
    number = min(number, length - 1)
    whole, prefix = transcript_of(history), open_transcript(":memory:")
    for entry in list(whole.replay())[: number + 1]:
        prefix.append(entry.content)
    past = scratch(whole).at(number, whole)
    assert state(past) == state(scratch(prefix))


@given(histories)
def test_another_editions_entries_change_nothing_but_the_count(history: list[Content]) -> None:
    def own(content: Content) -> bool:
        return not isinstance(content, Measured | Easy | Answered) or content.data == HERE.data

    mixed, alone = scratch(transcript_of(history)), scratch(transcript_of([*filter(own, history)]))
    assert state(mixed)[:-1] == state(alone)[:-1]


# What is learnt, and when -----------------------------------------------------------------------


def start_table(scope: tuple[int, ...], values: tuple[int, ...]) -> Measured:
    question = TableQuestion(all_codes(scope, SHAPE), start=True)
    return measured(HERE, question.text(NAMES), values)


def full(stand_in: StandIn) -> Floats:
    return stand_in.surrogate.marginal((0, 1, 2))


def test_tables_of_the_start_are_learnt_alike_late_or_in_another_order() -> None:
    start = [
        start_table((0, 1), (20, 5, 5, 1, 4, 5)),
        start_table((1, 2), (9, 12, 3, 6, 8, 2)),
        start_table((0, 2), (13, 17, 9, 1)),
    ]
    both = [scratch(transcript_of([total(HERE, 40), *each])) for each in (start, start[::-1])]
    assert np.allclose(full(both[0]), full(both[1]), atol=0.1)
    transcript = transcript_of([total(HERE, 40), *start[:2]])
    followed = scratch(transcript)
    early = full(followed)
    transcript.append(start[2])
    followed.catch_up(transcript)
    assert not np.allclose(full(followed), early, atol=0.1)
    assert np.array_equal(full(followed), full(both[0])), "as if it had come in time"


def test_a_statement_measured_before_the_number_of_people_is_learnt_with_it() -> None:
    plain = {"learn": [{"masks": {"0": [1]}, "weights": {}}], "part": 0, "statement": "s"}
    alone = measured(HERE, json.dumps(plain), (35,))
    found = scratch(transcript_of([alone, total(HERE, 40)]))
    assert found.surrogate.marginal((0,))[1] == pytest.approx(35, abs=3)
    assert len(found.measurements) == 1


def test_without_a_number_of_people_there_is_no_stand_in() -> None:
    found = scratch(transcript_of([start_table((0,), (10, 30))]))
    with pytest.raises(ValueError, match="number of people"):
        _ = found.surrogate


def test_a_universe_is_dense_up_to_the_documented_number_of_cells() -> None:
    assert MAX_DENSE_CELLS == 200_000_000
    assert isinstance(stand_in_for((4, 5), 10, densest=20), DenseSurrogate)
    assert isinstance(stand_in_for((4, 5), 10, densest=19), MixtureSurrogate)
    assert isinstance(stand_in_for((10,) * 8 + (2, 2), 10), MixtureSurrogate)
