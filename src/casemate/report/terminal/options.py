"""Options that several commands have, each written once, and what is refused of them.

An option of one command stands with that command; those of every result are `Output`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from casemate.errors import Misconfigured

# Numbers as people write them -------------------------------------------------------------------


def _whole(_type: Any, tokens: Sequence[Token]) -> int:
    """50_000 or 5e4; the framework would round 1.5."""
    written = tokens[0].value
    number = _decimal(written)
    if number is None or number != number.to_integral_value():
        raise ValueError(f'"{written}" is no whole number; write one as 50, 50_000 or 5e4')
    return int(number)


def _portion(_type: Any, tokens: Sequence[Token]) -> float:
    """0.02 or 2%."""
    written = tokens[0].value
    number = _decimal(written.removesuffix("%"))
    if number is None:
        raise ValueError(f'"{written}" is no number; write one as 0.02 or 2%')
    return float(number / 100 if written.endswith("%") else number)


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and number.adjusted() < _MAX_DIGITS else None


_MAX_DIGITS = 400
"""Digits before the point: more would be a slip of the exponent, and take for ever."""

Whole = Annotated[int, Parameter(converter=_whole)]
Portion = Annotated[float, Parameter(converter=_portion)]

# A table, and questions about it ----------------------------------------------------------------

TablePlace = Annotated[str, Parameter(help="A policy, a source, or a shipped table.")]
Dialect = Annotated[str, Parameter(help="The SQL dialect of the queries.")]
Reveal = Annotated[
    bool, Parameter(negative="", help="Write the values themselves into the report.")
]

Private = Annotated[
    tuple[str, ...], Parameter(negative="", help="A private column, where there is no policy.")
]
MissingChoice = Annotated[
    Literal["none", "secret", "public"] | None,
    Parameter(help="Whether private values may be missing, and who knows which, without a policy."),
]


@Parameter(name="*")
@dataclass(frozen=True)
class SourceOptions:
    """What a policy would say of a source that has none: its key, and how cells are written."""

    key: Annotated[
        str | None, Parameter(help="The column that identifies a record of a database table.")
    ] = None
    missing_marker: Annotated[
        tuple[str, ...], Parameter(negative="", help="A cell that stands for a missing value.")
    ] = ()
    thousands: Annotated[
        str | None, Parameter(help="The mark between the thousands of numbers.")
    ] = None
    decimal: Annotated[str | None, Parameter(help="The decimal mark of numbers.")] = None
    currency: Annotated[
        str | None, Parameter(help="What stands before or after numbers, as $.")
    ] = None

    def keywords(self) -> dict[str, Any]:
        """The same as `casemate.table.plain_source` takes it."""
        said = asdict(self)
        return {"missing_markers": said.pop("missing_marker"), **said}


PolicyOnly = Annotated[str, Parameter(help="A policy, or a shipped table; it is never opened.")]
Seed = Annotated[Whole | None, Parameter(help="Makes what is random repeatable.")]

# What an attacker knows beforehand --------------------------------------------------------------

Known = Annotated[
    Path | None, Parameter(help="A CSV of what is known: record,value or record,lo,hi.")
]
Bounds = Annotated[str | None, Parameter(help="LO:HI, between which every private number lies.")]
Integer = Annotated[bool, Parameter(negative="", help="Private numbers are known to be whole.")]

# A count over many sites ------------------------------------------------------------------------

TrackerChoice = Literal[
    "auto",
    "deterministic",
    "deterministic-paper",
    "allocated",
    "sampled",
    "robust",
    "robust-tuned",
    "exact",
]
Alpha = Annotated[Portion, Parameter(help="The relative error that is promised at all times.")]
Delta = Annotated[
    Portion, Parameter(help="The probability with which the promise may ever be broken.")
]
Horizon = Annotated[Whole, Parameter(help="How many items will come, over all sites.")]

# What is refused before any work is done --------------------------------------------------------


def check_seed(seed: int | None) -> None:
    """Refuse a `--seed` that no generator takes."""
    if seed is not None and seed < 0:
        raise Misconfigured(f"--seed {seed} is negative; give 0 or a number above")


def check_seconds(seconds: float | None) -> None:
    """Refuse a `--seconds` that is no length of time."""
    if seconds is not None and not seconds >= 0:
        raise Misconfigured(f"--seconds {seconds} is not a time; give 0 for no limit")
