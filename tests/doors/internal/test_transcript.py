"""What a transcript says, its chain, and one contract for memory, SQLite and PostgreSQL."""

import hashlib
import json
import threading
from dataclasses import fields, replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from privacy.places import Books

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
    open_transcript,
)
from casemate.doors.transcript import (
    ENTRIES_PER_PAGE,
    FORM,
    FORMS,
    START,
    TranscriptBook,
    following,
    from_lines,
    from_text,
    require_follows,
    to_lines,
    to_text,
    write_once,
)
from casemate.errors import TranscriptDamaged
from casemate.privacy.book import IN_MEMORY, Head

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
def test_a_torn_last_line_is_damage_and_one_without_its_newline_is_whole(
    said: list[Content], data: st.DataObject
) -> None:
    *whole, last = to_lines(chained(said))
    torn = last[: data.draw(st.integers(1, len(last) - 2))]
    with pytest.raises(TranscriptDamaged, match=f"entry {len(whole)} .* was cut off"):
        list(from_lines([*whole, torn]))
    assert list(from_lines([*whole, last[:-1]])) == chained(said)


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


# Every form of it ------------------------------------------------------------------------------


def easy(text: str, run: str = "r1") -> Easy:
    return Easy(text, "p", "v", run, 1, 10, -1)


def test_entries_come_back_in_order_with_what_they_say(books: Books) -> None:
    transcript = books.transcript()
    said: list[Content] = [
        Closed("r0", "first"),
        easy("q1"),
        easy("q2 'quoted' λ \x01"),
        Closed("r1", "last"),
    ]
    for content in said:
        first = transcript.append(content)
    again = books.transcript().append(Closed("r1", "another reason"))
    assert again == first, "an entry is written once, and a second writer gets the first"
    for reader in (transcript, books.transcript()):
        assert [entry.content for entry in reader.replay()] == said
    newest = transcript.newest()
    assert newest is not None and newest.questions == 2


def test_find_and_latest_look_up_by_key_and_by_run(books: Books) -> None:
    transcript = books.transcript()
    assert transcript.newest() is transcript.find("closed r1") is transcript.latest("r1") is None
    entries = [transcript.append(content) for content in (easy("q1"), easy("q2", "r2"))]
    entries.append(transcript.append(easy("q3")))
    assert transcript.find(easy("q2").key) == entries[1]
    assert transcript.latest("r1") == entries[2]
    assert transcript.latest("r2") == entries[1]


def test_work_that_fails_leaves_nothing_behind(books: Books) -> None:
    transcript = books.transcript()
    transcript.append(easy("q0"))

    def interrupted(book: TranscriptBook) -> None:
        write_once(book, easy("q1"))
        assert book.find(easy("q1").key) is not None, "its own work is seen inside"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        transcript.run(interrupted)
    assert transcript.find(easy("q1").key) is transcript.latest("r9") is None
    assert transcript.append(easy("q1")).number == 1
    assert len(list(transcript.replay())) == 2


def test_writers_at_the_same_moment_share_one_chain(books: Books) -> None:
    together, got = threading.Barrier(4), list[TranscriptEntry]()

    def write(name: int) -> None:
        transcript = books.transcript()
        together.wait(timeout=60)
        for number in range(8):
            got.append(transcript.append(easy(f"q{number}", run=f"r{name}")))

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 32
    assert {entry.head for entry in got} == {entry.head for entry in books.transcript().replay()}
    assert len({entry.key for entry in got}) == len(list(books.transcript().replay())) == 8


def test_a_head_kept_elsewhere_is_looked_for(books: Books) -> None:
    transcript = books.transcript()
    heads = [transcript.append(easy(f"q{n}")).head for n in range(3)]
    assert len(list(transcript.replay(expected_head=heads[1]))) == 3
    with pytest.raises(TranscriptDamaged, match="entry 1 of the transcript"):
        list(transcript.replay(expected_head=Head(1, "00" * 32)))
    with pytest.raises(TranscriptDamaged, match=r"entry 7 of the transcript .* it is missing"):
        list(transcript.replay(expected_head=Head(7, "00" * 32)))


def test_a_transcript_longer_than_a_page_is_replayed_whole() -> None:
    transcript = open_transcript(IN_MEMORY)
    for number in range(ENTRIES_PER_PAGE + 5):
        transcript.append(easy(f"q{number}"))
    assert [entry.number for entry in transcript.replay()] == list(range(ENTRIES_PER_PAGE + 5))
