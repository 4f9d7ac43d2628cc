"""The names of sites, which are listed or counted."""

from collections.abc import Sequence

import numpy as np

from casemate.errors import Misconfigured


def site_names(sites: int | Sequence[str]) -> list[str]:
    """The names of a list, or numbers from 0 for so many sites.

    >>> site_names(3), site_names(["paris", "lima"])
    (['0', '1', '2'], ['paris', 'lima'])
    """
    if isinstance(sites, int | np.integer) and not isinstance(sites, bool):
        return [str(number) for number in range(sites)]
    if not isinstance(sites, Sequence) or isinstance(sites, str) or not all(map(_is_name, sites)):
        raise Misconfigured("sites are a number of them, or a list of their names")
    return list(sites)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name)
