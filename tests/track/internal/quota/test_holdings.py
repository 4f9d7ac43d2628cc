from hypothesis import given
from hypothesis import strategies as st

from casemate.track.quota.journals import Holding, Holdings

changes = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 50), st.integers(0, 50), st.booleans()),
    max_size=400,
)


@given(changes, st.integers(1, 60), st.integers(0, 4), st.sets(st.integers(0, 5)))
def test_sums_and_donors_are_those_of_a_plain_list(
    changed: list[tuple[int, int, int, bool]], need: int, many: int, busy: set[int]
) -> None:
    holdings = Holdings(())
    rows = [holdings.add(str(i), 1) for i in range(6)]
    for i, used, left, silent in changed:
        holdings.change(rows[i], bound=used + left, used=used, silent=silent)
    heard = [row for row in rows if not row.silent]
    assert holdings.granted == sum(row.bound for row in rows)
    assert (holdings.bound, holdings.used) == (
        sum(row.bound for row in heard),
        sum(row.used for row in heard),
    )
    for _ in range(2):  # looking changes nothing
        found = holdings.donors(need, many, {id(rows[i]) for i in busy})
        assert [row.left for row in found] == _plain(heard, need, many, [rows[i] for i in busy])


def _plain(heard: list[Holding], need: int, many: int, busy: list[Holding]) -> list[int]:
    lefts = sorted((row.left for row in heard if row not in busy and row.left), reverse=True)
    chosen: list[int] = []
    for left in lefts:
        if sum((each + 1) // 2 for each in chosen) >= need and len(chosen) >= many:
            break
        chosen.append(left)
    return chosen
