"""The laws of noise: by name, by text, and made of each other.

>>> parse_law("laplace:2.5")
Laplace(b=2.5)
>>> parse_law("student:3:0.5")
StudentT(df=3.0, s=0.5)
>>> parse_law("gaussian:1[-2:2]").edges
(-2.0, 2.0)
"""

import re
from collections.abc import Callable

from casemate.errors import Misconfigured
from casemate.solve.one_bit.laws_combined import Mixture, Shifted, Truncated, centred
from casemate.solve.one_bit.laws_edged import Exponential, RaisedCosine, Triangular, Uniform
from casemate.solve.one_bit.laws_plain import Cauchy, Gaussian, Laplace, Logistic, StudentT
from casemate.solve.one_bit.laws_protocol import Law, effective_scale

__all__ = [
    "NAMED",
    "Cauchy",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Law",
    "Logistic",
    "Mixture",
    "RaisedCosine",
    "Shifted",
    "StudentT",
    "Triangular",
    "Truncated",
    "Uniform",
    "centred",
    "effective_scale",
    "parse_law",
]

NAMED: dict[str, Callable[..., Law]] = {
    "uniform": Uniform,
    "gaussian": Gaussian,
    "laplace": Laplace,
    "logistic": Logistic,
    "cauchy": Cauchy,
    "student": StudentT,
    "triangular": Triangular,
    "cosine": RaisedCosine,
    "exponential": Exponential,
}
"""How a text names each law; Student's takes its degrees of freedom before its scale."""

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_TEXT = re.compile(
    rf"(?P<name>[a-z]+)(?P<numbers>(?::{_NUMBER})+)(?:\[(?P<low>{_NUMBER}):(?P<high>{_NUMBER})\])?"
)


def parse_law(text: str) -> Law:
    """Read LAW:SCALE or `student:DF:SCALE`, then [LOW:HIGH] where the law is cut."""
    found = _TEXT.fullmatch(text.strip().lower())
    if found is None or found["name"] not in NAMED:
        raise _unread(text)
    numbers = [float(number) for number in found["numbers"][1:].split(":")]
    if len(numbers) != (2 if found["name"] == "student" else 1):
        raise _unread(text)
    try:
        law = NAMED[found["name"]](*numbers)
        return Truncated(law, float(found["low"]), float(found["high"])) if found["low"] else law
    except ValueError as error:
        raise Misconfigured(f"the noise {text!r} does not exist: {error}") from error


def _unread(text: str) -> Misconfigured:
    return Misconfigured(
        f"cannot read the noise {text!r}; write LAW:SCALE with one of {', '.join(NAMED)}, such as "
        f"laplace:2.5, student:3:1 (degrees of freedom first), or gaussian:1[-2:2] for a law cut "
        f"to an interval"
    )
