"""Boxes that keep strangers out, against all boxes there are."""

from random import Random

import pytest
from attack.small_languages import every_box, small_language

from casemate.attack.plan.sides import Boxes, Effort, Friends, Unfinished


def test_a_box_is_found_iff_there_is_one(rng: Random) -> None:
    found_some = found_none = 0
    for _ in range(60):
        language = small_language(rng)
        boxes = every_box(language)
        target, strangers, friends = (rng.getrandbits(language.count) for _ in range(3))
        target %= language.count
        strangers &= ~(1 << target)
        least = rng.randint(0, 2)
        right = [
            members
            for members in map(language.members, boxes)
            if members >> target & 1
            and not members & strangers
            and (members & friends).bit_count() >= least
        ]
        search = Boxes(language, target, range(len(language.axes)), Effort(10_000))
        given = [language.members(b) for b in search.around(strangers, [Friends(friends, least)])]
        assert set(given) <= set(right)
        assert all(any(not members & ~wide for wide in given) for members in right)
        found_some, found_none = found_some + bool(right), found_none + (not right)
    assert found_some > 5 and found_none > 5


def test_a_search_without_steps_gives_up(rng: Random) -> None:
    language = small_language(rng)
    search = Boxes(language, 0, range(len(language.axes)), Effort(0))
    with pytest.raises(Unfinished):
        next(search.around(2, []))
    with pytest.raises(Unfinished):
        Effort(5, until=0.0).step()
