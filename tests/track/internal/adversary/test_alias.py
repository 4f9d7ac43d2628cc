import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.adversary.plain import alias_table, zipf_weights


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40))
def test_a_draw_from_the_table_has_the_weights_it_was_made_of(weights: list[float]) -> None:
    given_weights = np.array(weights)
    kept, alias = alias_table(given_weights)
    chances = kept.copy()
    np.add.at(chances, alias, 1.0 - kept)
    np.testing.assert_allclose(chances / len(weights), given_weights / given_weights.sum())
    assert np.all((kept >= 0) & (kept <= 1))


def test_zipf_weights_fall_with_the_exponent() -> None:
    np.testing.assert_allclose(zipf_weights(2.0, 3), [1, 1 / 4, 1 / 9])
    np.testing.assert_allclose(zipf_weights(0.0, 3), [1, 1, 1])
