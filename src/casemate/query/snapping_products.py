"""Sets of cells as unions of products: for some attributes, which of their cells.

An attribute that is not named may have any cell. The products of a union are kept apart, so what
they hold adds up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]
Product = Mapping[int, Bits]
"""By position of an attribute: the cells that are in."""


@dataclass(frozen=True, eq=False)
class Bracket:
    """Two unions around a condition that cuts cells: those wholly inside, and those touched."""

    inner: tuple[Product, ...]
    outer: tuple[Product, ...]

    def meet(self, other: "Bracket") -> "Bracket":
        """The bracket of both conditions at once."""
        return Bracket(met(self.inner, other.inner), met(self.outer, other.outer))


def trimmed(product: Product) -> Product | None:
    """Without attributes of which every cell is in; None for a product that holds nothing."""
    if not all(mask.any() for mask in product.values()):
        return None
    return {place: mask for place, mask in sorted(product.items()) if not mask.all()}


def meet(left: Product, right: Product) -> Product | None:
    """The cells in both."""
    joined = dict(left)
    for place, mask in right.items():
        joined[place] = joined[place] & mask if place in joined else mask
    return trimmed(joined)


def met(left: Sequence[Product], right: Sequence[Product]) -> tuple[Product, ...]:
    """The cells in both of two unions."""
    found = (meet(one, other) for one in left for other in right)
    return tuple(each for each in found if each is not None)


def without(whole: Product, part: Product) -> list[Product]:
    """The cells of one product that are not in another, as products apart from each other."""
    if meet(whole, part) is None:
        return [whole]
    rest: list[Product | None] = []
    inside: Product | None = whole
    for place, mask in part.items():
        if inside is not None:
            rest.append(meet(inside, {place: ~mask}))
            inside = meet(inside, {place: mask})
    return [each for each in rest if each is not None]


def apart(products: Sequence[Product], most: int) -> list[Product] | None:
    """The same union out of products that are apart, or None where that takes too many."""
    found: list[Product] = []
    for each in products:
        pieces = [each]
        for known in found:
            pieces = [rest for piece in pieces for rest in without(piece, known)]
            if len(found) + len(pieces) > most:
                return None
        found += pieces
    return found
