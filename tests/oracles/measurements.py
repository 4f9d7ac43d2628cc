"""A measurement read back from plain values, as a copy of a transcript would hold it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from casemate.grid import Marginal, MeasuredMarginal, MeasuredProduct, Measurement, Product


def measurement_from_dict(written: Mapping[str, Any]) -> Measurement:
    """The measurement that `to_dict` wrote."""
    if written["kind"] == "product":
        product = Product.from_dict(written["product"])
        return MeasuredProduct(product, float(written["value"]), float(written["variance"]))
    if written["kind"] == "marginal":
        values = np.array(written["values"], np.float64).reshape(written["shape"])
        return MeasuredMarginal(
            Marginal(tuple(written["scope"])), values, float(written["variance"])
        )
    raise ValueError(f"a measurement is of a product or of a marginal, not of {written['kind']!r}")
