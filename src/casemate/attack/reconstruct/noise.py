"""The laws of noise an attacker may suppose, and a simulator that lays them over answers.

This is no mechanism: the draws are ordinary floating-point numbers from an ordinary generator, and
nothing is private because of them. A law says how far a published number may be from the true one
(an attacker needs that to say how sure it is), and `laid_over` plays such a publisher in an
experiment. Noise that protects somebody comes from `casemate.privacy`.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from casemate.errors import Misconfigured
from casemate.exact import Floats

Kind = Literal["laplace", "gaussian", "uniform", "round"]

_SCALES = "laplace:b, gaussian:deviation, uniform:half-width or round:step"
_DEVIATION = {
    "laplace": math.sqrt(2),
    "gaussian": 1.0,
    "uniform": 1 / math.sqrt(3),
    "round": 1 / math.sqrt(12),
}


@dataclass(frozen=True)
class NoiseLaw:
    """One law of noise and its scale; rounding to a step counts as noise within half a step.

    The scale is Laplace's b, a Gaussian's standard deviation, a uniform law's half-width, or the
    step that answers are rounded to.

    >>> law = NoiseLaw.read("laplace:2.5")
    >>> law.kind, law.scale, str(law)
    ('laplace', 2.5, 'laplace:2.5')
    >>> NoiseLaw.read("round:10").bounded
    5.0
    """

    kind: Kind
    scale: float

    def __post_init__(self) -> None:
        """Refuse what is no law."""
        if self.kind not in get_args(Kind):
            raise ValueError(f"a law of noise is one of {', '.join(get_args(Kind))}")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError("the scale of a law of noise must be finite and above 0")

    @classmethod
    def read(cls, text: str) -> "NoiseLaw":
        """The law that a text such as `laplace:2.5` states."""
        kind, _, scale = text.strip().partition(":")
        for each in get_args(Kind):
            if kind.strip().lower() == each:
                return cls(each, _scale(scale, text))
        raise Misconfigured(
            f"unknown law of noise {text!r}: give {_SCALES}, for example laplace:2.5"
        )

    def __str__(self) -> str:
        """The text that `read` takes."""
        return f"{self.kind}:{repr(float(self.scale)).removesuffix('.0')}"

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return _DEVIATION[self.kind] * self.scale

    @property
    def bounded(self) -> float | None:
        """How far the noise can be from 0 at most, or None where it has no such bound."""
        return {"uniform": self.scale, "round": self.scale / 2}.get(self.kind)

    def laid_over(self, answers: Floats, random: np.random.Generator) -> Floats:
        """The answers as somebody would publish them who adds this noise, or rounds to the step."""
        true = np.asarray(answers, np.float64)
        if self.kind == "round":
            return np.asarray(np.round(true / self.scale) * self.scale)  # a half goes to the even
        return np.asarray(true + self.scale * self._draws(true.shape, random))

    def _draws(self, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
        if self.kind == "laplace":
            return random.laplace(size=shape)
        if self.kind == "gaussian":
            return random.standard_normal(shape)
        return random.uniform(-1.0, 1.0, shape)


def _scale(text: str, law: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        raise Misconfigured(
            f"the law of noise {law!r} has no number after its name: give {_SCALES}, "
            "for example laplace:2.5"
        ) from None
    if not (math.isfinite(scale) and scale > 0):
        raise Misconfigured(
            f"the scale of the law of noise {law!r} must be finite and above 0: give {_SCALES}, "
            "for example laplace:2.5, or state no law where there is no noise"
        )
    return scale
