"""What measurements say about a few attributes alone: restricted to them, merged, renumbered."""

from collections.abc import Sequence

from casemate.surrogate.product import (
    Floats,
    Marginal,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
    Scope,
)
from casemate.surrogate.replay import WIDE


def restricted(measurements: Sequence[Measurement], scope: Scope) -> list[Measurement]:
    """Tables summed to the attributes of the scope, and the questions that lie inside it.

    Tables that become the same one are their mean, each weighed by its variance; those that are
    part of another one of their kind (narrow, or wide) say nothing new and are left out.
    """
    kept: list[Measurement] = [*_told_most(_merged(measurements, scope))]
    for one in measurements:
        if isinstance(one, MeasuredProduct) and set(one.product.scope) <= set(scope):
            kept.append(MeasuredProduct(narrowed(one.product, scope), one.value, one.variance))
    return kept


def narrowed(product: Product, scope: Scope) -> Product:
    """The same question on the grid of the scope alone, which holds all that it looks at."""
    place = {attribute: axis for axis, attribute in enumerate(scope)}
    return Product(
        tuple(product.shape[attribute] for attribute in scope),
        {place[attribute]: mask for attribute, mask in product.masks.items()},
        {place[attribute]: weight for attribute, weight in product.weights.items()},
    )


def _merged(measurements: Sequence[Measurement], scope: Scope) -> list[MeasuredMarginal]:
    """One table for each set of axes that some measured table shares with the scope."""
    found: dict[Scope, MeasuredMarginal] = {}
    for table in measurements:
        if isinstance(table, MeasuredMarginal) and set(table.marginal.scope) & set(scope):
            one = _summed(table, scope)
            axes = one.marginal.scope
            found[axes] = _mean(found[axes], one) if axes in found else one
    return list(found.values())


def _summed(table: MeasuredMarginal, scope: Scope) -> MeasuredMarginal:
    """The table without the attributes that are not asked for; the variance of a cell grows."""
    attributes = table.marginal.scope
    dropped = tuple(axis for axis, a in enumerate(attributes) if a not in scope)
    values: Floats = table.values.sum(axis=dropped)
    axes = tuple(scope.index(attribute) for attribute in attributes if attribute in scope)
    return MeasuredMarginal(
        Marginal(axes), values, table.variance * (table.values.size // values.size)
    )


def _mean(one: MeasuredMarginal, other: MeasuredMarginal) -> MeasuredMarginal:
    """Both together; an exact one counts alone."""
    both = one.variance + other.variance
    share = other.variance / both if both else 0.5  # of the first: the less the other is worth
    values = share * one.values + (1 - share) * other.values
    return MeasuredMarginal(one.marginal, values, one.variance * share)


def _told_most(tables: Sequence[MeasuredMarginal]) -> list[MeasuredMarginal]:
    """The tables that are not part of another narrow one, or of another wide one."""

    def more(one: MeasuredMarginal, other: MeasuredMarginal) -> bool:
        inner, outer = set(one.marginal.scope), set(other.marginal.scope)
        return inner < outer and (len(inner) >= WIDE) == (len(outer) >= WIDE)

    return [one for one in tables if not any(more(one, other) for other in tables)]
