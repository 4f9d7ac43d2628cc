"""A small grid, records on it, their private cells, and questions about them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from casemate.grid import CellClasses, GridQuestion, LinearCells, PrivateCells, Product

SHAPE = (4, 3, 2)
NAMES = ("age", "kind", "ill")


def cells_of(
    codes: NDArray[np.int64],
    shape: tuple[int, ...] = SHAPE,
    counted: list[CellClasses] | None = None,
) -> PrivateCells:
    """The private cells of a table of codes, one row a record; `counted` lists what was."""

    def count(classes: CellClasses) -> NDArray[np.int64]:
        table = np.zeros(classes.sizes, np.int64)
        axes = zip(classes.scope, classes.labels, strict=True)
        places = tuple(np.array(labels)[codes[:, a]] for a, labels in axes)
        np.add.at(table, places, 1 if places else len(codes))
        if counted is not None:
            counted.append(classes)
        return table

    return PrivateCells(shape, count)


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


@st.composite
def questions(draw: st.DrawFn) -> GridQuestion:
    """Products of masks and weights on the small grid, one for each cell."""

    def numbers(attribute: int, each: st.SearchStrategy[Any]) -> NDArray[Any]:
        size = SHAPE[attribute]
        return np.array(draw(st.lists(each, min_size=size, max_size=size)))

    def product() -> Product:
        masks = {a: numbers(a, st.booleans()) for a in draw(st.sets(st.integers(0, 2)))}
        weighed = draw(st.sets(st.integers(0, 2), max_size=1))
        weights = {a: numbers(a, st.integers(-3, 3)).astype(float) for a in weighed}
        return Product(SHAPE, masks, weights)

    cells = tuple((product(),) for _ in range(draw(st.integers(1, 3))))
    return GridQuestion((LinearCells(cells),))
