"""How many of very many items are drawn, without going through them.

Source     Devroye, Non-Uniform Random Variate Generation (1986), chapter X.2: one rejection method
           for every discrete law with a logarithm that bends downwards, from its mode alone.
Guarantee  The binomial law itself, as exact as floats are: its logarithm is off by less than 1e-9
           for up to 10^15 items.
Cost       Fewer than five tries on average, whatever the law.
"""

import math

from casemate.track.instruction import Draw

_SERIES = 16.0  # from here on the series of the rest of Stirling's formula is exact
_HALF_LOG_TURN = 0.5 * math.log(2.0 * math.pi)


def binomial(items: int, probability: float, draw: Draw) -> int:
    """The number of items that are drawn, when each is with this probability.

    >>> binomial(10**12, 1.0, lambda: 0.5), binomial(0, 0.5, lambda: 0.5)
    (1000000000000, 0)
    """
    if probability >= 1.0 or not items:
        return items
    mode = math.floor((items + 1) * probability)
    peak = log_chance(items, probability, mode)
    height = math.exp(peak)
    flat = 1.0 + height / 2.0  # where the hat begins to fall, in units of 1 / height
    while True:
        uniform = draw() * (1.0 + flat)
        away = uniform if uniform < flat else flat - math.log1p(flat - uniform)
        sign = 1 if draw() < 0.5 else -1
        found = mode + sign * math.floor(away / height + 0.5)
        hat = min(0.0, flat - away)
        if 0 <= found <= items:
            less = log_chance(items, probability, found) - peak
            if math.log1p(-draw()) + hat <= less:
                return found


def log_chance(items: int, probability: float, drawn: int) -> float:
    """The logarithm of the probability that so many are drawn; accurate for any numbers."""
    if drawn == 0:
        return items * math.log1p(-probability)
    if drawn == items:
        return items * math.log(probability)
    left, mean = items - drawn, items * probability
    rest = _rest(items) - _rest(drawn) - _rest(left)
    far = _deviance(drawn, mean) + _deviance(left, items - mean)
    return rest - far - _HALF_LOG_TURN - 0.5 * math.log(drawn * (left / items))


def _deviance(number: int, mean: float) -> float:
    """number * ln(number / mean) + mean - number, where nothing cancels."""
    relative = (number - mean) / mean
    return mean * ((1.0 + relative) * math.log1p(relative) - relative)


def _rest(number: int) -> float:
    """What Stirling's formula leaves out of the logarithm of a factorial."""
    if number < _SERIES:
        stirling = (number + 0.5) * math.log(number) - number + _HALF_LOG_TURN
        return math.lgamma(number + 1.0) - stirling
    square = 1.0 / (float(number) * number)
    return (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0)) / number
