"""How many things happened, whatever kind of whole number says it."""

import operator
from typing import SupportsIndex


def whole(n: SupportsIndex) -> int:
    """The same number as an int, which knows no overflow; what is no whole number is refused.

    >>> import numpy as np
    >>> type(whole(np.uint8(200)))
    <class 'int'>
    """
    try:
        return operator.index(n)
    except TypeError:
        raise ValueError(f"things are counted in whole numbers, got n = {n!r}") from None
