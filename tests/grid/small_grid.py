"""A small grid, records on it, their private cells, and questions about them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from casemate.grid import GridQuestion, LinearCells, PrivateCells, Product, Scope
from casemate.grid.question import merge_codes

SHAPE = (4, 3, 2)
NAMES = ("age", "kind", "ill")


def cells_of(codes: NDArray[np.int64], shape: tuple[int, ...] = SHAPE) -> PrivateCells:
    """The cells of a table of codes, one row a record."""

    def count_scope(scope: Scope) -> NDArray[np.int64]:
        sizes = [shape[a] for a in scope]
        table = np.zeros(sizes, np.int64)
        np.add.at(table, tuple(codes[:, a] for a in scope), 1) if scope else table.fill(len(codes))
        return table

    return PrivateCells(shape, lambda classes: merge_codes(count_scope(classes.scope), classes))


def people(number: int, seed: int = 1, shape: tuple[int, ...] = SHAPE) -> NDArray[np.int64]:
    """Records whose attributes depend on each other."""
    random = np.random.default_rng(seed)
    first = random.integers(0, shape[0], number)
    rest = [
        (first * (i + 1) + random.integers(0, width, number) // (i + 2)) % width
        for i, width in enumerate(shape[1:])
    ]
    return np.stack([first, *rest], axis=1).astype(np.int64)


def counting(masks: dict[int, Sequence[int]], shape: tuple[int, ...] = SHAPE) -> GridQuestion:
    """How many records have these codes."""
    chosen = {a: np.isin(np.arange(shape[a]), codes) for a, codes in masks.items()}
    return GridQuestion((LinearCells(((Product(shape, chosen),),)),))
