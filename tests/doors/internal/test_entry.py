import hashlib
import json
from dataclasses import fields, replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.doors import (
    Closed,
    Content,
    Easy,
    Edition,
    EntryKind,
    Hard,
    Measured,
    Opened,
    PeopleTotal,
    TranscriptEntry,
)
from casemate.doors.transcript import (
    FORM,
    FORMS,
    START,
    following,
    from_lines,
    from_text,
    require_follows,
    to_lines,
    to_text,
)
from casemate.errors import TranscriptDamaged

words = st.text(max_size=12)
wholes = st.integers(-(10**30), 10**30)
scales = st.fractions(min_value=Fraction(1, 99), max_value=99)
asked = (words, words, words, words, st.integers(1, 10**9), wholes, st.integers(-1, 99))
noised = (words, words, words, words, scales, st.lists(wholes, max_size=5).map(tuple))
contents: st.SearchStrategy[Content] = st.one_of(
    st.builds(Opened, words, scales, scales, scales, st.integers(1, 9)),
    st.builds(Easy, *asked),
    st.builds(Hard, *asked, st.sampled_from([-1, 0, 1]), st.integers(0, 10**30)),
    st.builds(Measured, *noised),
    st.builds(PeopleTotal, *noised),
    st.builds(Closed, words, words),
)


def chained(said: list[Content]) -> list[TranscriptEntry]:
    entries: list[TranscriptEntry] = []
    for content in said:
        entries.append(following(entries[-1] if entries else None, content))
    return entries


def require_chained(entries: list[TranscriptEntry]) -> None:
    for before, entry in zip([None, *entries], entries, strict=False):
        require_follows(before, entry)


@given(contents)
def test_a_content_is_read_back_from_its_text(content: Content) -> None:
    assert from_text(content.kind, to_text(content)) == content
    assert to_text(from_text(content.kind, to_text(content))) == to_text(content)


@given(st.lists(contents, max_size=8))
def test_entries_are_numbered_counted_and_follow_one_another(said: list[Content]) -> None:
    entries = chained(said)
    require_chained(entries)
    assert [entry.number for entry in entries] == list(range(len(said)))
    if entries:
        assert entries[-1].questions == sum(
            c.kind in (EntryKind.EASY, EntryKind.HARD) for c in said
        )
        assert entries[-1].runs == sum(c.kind == EntryKind.OPENED for c in said)


def test_anybody_can_compute_the_hash() -> None:
    entry = following(None, Closed("r1", "tired"))
    row = [0, "closed", "closed r1", "r1", 0, 0, '{"reason":"tired","run":"r1"}']
    plain = json.dumps(row, separators=(",", ":")).encode()
    assert entry.hash == hashlib.sha256(bytes(32) + plain).digest()


@given(st.lists(contents, min_size=2, max_size=4), st.data())
def test_a_changed_field_is_found(said: list[Content], data: st.DataObject) -> None:
    entries = chained(said)
    where = data.draw(st.integers(0, len(entries) - 1))
    name = data.draw(
        st.sampled_from([f.name for f in fields(TranscriptEntry) if f.name != "number"])
    )
    old = getattr(entries[where], name)
    new = old + (1 if isinstance(old, int) else b"x" if isinstance(old, bytes) else "x")
    entries[where] = replace(entries[where], **{name: new})
    with pytest.raises(TranscriptDamaged, match=f"entry {where} of the transcript is damaged"):
        require_chained(entries)


def test_a_well_hashed_entry_with_counts_that_do_not_follow_is_found() -> None:
    forged = replace(following(None, Closed("r1", "")), questions=7)
    forged = replace(forged, hash=FORM.digest(forged, START))
    with pytest.raises(TranscriptDamaged, match="its fields do not follow"):
        require_follows(None, forged)


def test_a_text_that_says_nothing_is_damage() -> None:
    with pytest.raises(TranscriptDamaged, match="it cannot be read"):
        replace(following(None, Closed("r1", "")), text='{"other":1}').content


@given(st.lists(st.tuples(words, words, words), min_size=2, max_size=2, unique=True))
def test_another_policy_data_or_question_has_another_key(
    pair: list[tuple[str, str, str]],
) -> None:
    one, other = (Edition(policy, data).key(question) for policy, data, question in pair)
    assert one != other


def test_easy_and_hard_share_their_question_s_key_and_a_total_is_no_measurement() -> None:
    easy = Easy("q", "p", "v", "r", 1, 10, -1)
    assert easy.key == Hard("q", "p", "v", "r2", 9, 20, 5, 1, 4).key
    measured = Measured("q", "p", "v", "laplace", Fraction(2), (3,))
    assert measured.key == replace(measured, values=(4,)).key
    assert len({measured.key, replace(measured, scale=Fraction(3)).key, easy.key}) == 3
    assert PeopleTotal("q", "p", "v", "laplace", Fraction(2), (3,)).key != measured.key


def test_every_kind_has_a_form() -> None:
    assert set(FORMS) == {kind.value for kind in EntryKind}


# As lines -------------------------------------------------------------------------------------


@given(st.lists(contents, max_size=6))
def test_a_published_transcript_is_read_back_whole(said: list[Content]) -> None:
    entries = chained(said)
    lines = list(to_lines(entries))
    assert list(from_lines(lines)) == entries
    assert all(line.isascii() and line.count("\n") == 1 for line in lines)


@given(st.lists(contents, min_size=1, max_size=4), st.data())
def test_a_torn_last_line_is_left_out(said: list[Content], data: st.DataObject) -> None:
    *whole, last = to_lines(chained(said))
    torn = last[: data.draw(st.integers(0, len(last) - 1))]
    assert list(from_lines([*whole, torn])) == chained(said)[:-1]


def test_a_changed_missing_or_unreadable_line_is_damage() -> None:
    lines = list(to_lines(chained([Closed(f"r{n}", "tired") for n in range(3)])))
    for broken in (
        [lines[0], lines[1].replace("tired", "bored"), lines[2]],
        [lines[0], lines[2]],
        [lines[0], "{}\n"],
        [lines[0], lines[1][:-9] + "\n", lines[2]],
    ):
        with pytest.raises(TranscriptDamaged, match="entry 1 of the transcript"):
            list(from_lines(broken))
