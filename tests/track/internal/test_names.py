"""Names of sites, listed or counted."""

from typing import Any

import numpy as np
import pytest

from casemate.errors import Misconfigured
from casemate.track.messages import site_names


@pytest.mark.parametrize("sites", [2, np.int64(2), ["0", "1"], ("0", "1")])
def test_sites_are_counted_or_listed(sites: Any) -> None:
    assert site_names(sites) == ["0", "1"]


@pytest.mark.parametrize("sites", ["ab", 2.5, None, True, ["a", ""], ["a", 1], {"a", "b"}])
def test_anything_else_names_no_sites(sites: Any) -> None:
    with pytest.raises(Misconfigured, match="a number of them, or a list of their names"):
        site_names(sites)
