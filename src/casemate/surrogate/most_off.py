"""The one cell of a measured marginal that a stand-in gets most wrong, as a question."""

import numpy as np

from casemate.surrogate.product import Floats, MeasuredMarginal, Product


def most_off(
    measured: MeasuredMarginal, believed: Floats, shape: tuple[int, ...]
) -> tuple[Product, float]:
    """The question about that cell, the first of equals, and its measured value."""
    if believed.shape != measured.values.shape:
        raise ValueError(
            f"a marginal over {measured.marginal.scope} has the shape {believed.shape} here, "
            f"got {measured.values.shape}"
        )
    where = int(np.argmax(np.abs(measured.values - believed)))
    cell = np.unravel_index(where, believed.shape)
    masks = {
        axis: np.arange(shape[axis]) == code
        for axis, code in zip(measured.marginal.scope, cell, strict=True)
    }
    return Product(shape, masks), float(measured.values[cell])
