from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from casemate.audit.online.summed_space import Components

seeds = st.integers(0, 2**32).map(Random)


@given(seeds)
def test_components_are_those_of_the_graph_of_all_questions(rng: Random) -> None:
    size = rng.randint(1, 12)
    parts: Components[int] = Components(size)
    groups: list[tuple[set[int], set[int]]] = []  # the slow way: members and marks
    for mark in range(rng.randint(1, 8)):
        members = rng.sample(range(size), rng.randint(1, min(4, size)))
        touched = [group for group in groups if group[0] & set(members)]
        asked = np.array(members, np.int64)
        assert parts.marks(asked) <= set().union(*(group[1] for group in touched))
        assert bool(parts.marks(asked)) == bool(touched)
        parts.join(asked, mark)
        merged = (
            set(members).union(*(group[0] for group in touched)),
            {mark}.union(*(group[1] for group in touched)),
        )
        groups = [group for group in groups if group not in touched] + [merged]
    for group, _ in groups:
        assert len({parts.component(member) for member in group}) == 1
    assert len({parts.component(next(iter(group))) for group, _ in groups}) == len(groups)


def test_a_component_has_the_mark_of_the_question_that_joined_it_last() -> None:
    parts: Components[str] = Components(3)
    parts.join(np.array([0, 1]), "sums")
    assert parts.marks(np.array([2])) == set()
    assert parts.marks(np.array([1, 2])) == {"sums"}


def test_a_copy_goes_its_own_way() -> None:
    parts: Components[str] = Components(3)
    parts.join(np.array([0, 1]), "sums")
    twin = parts.copy()
    twin.join(np.array([1, 2]), "sums")
    assert parts.marks(np.array([2])) == set()
    assert twin.component(0) == twin.component(2)
