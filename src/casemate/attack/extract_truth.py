"""The true boundary from a file: JSON, or numbers with commas or blanks between."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from casemate.attack.extract_boundary import Boundary
from casemate.errors import Misconfigured


def read_truth(path: Path, dimension: int) -> Boundary:
    """Weights, and where it is there, the intercept (otherwise it is not a number).

    A JSON object has `weights` and may have `intercept`; a list, or plain numbers, may end with it.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"--truth {path} cannot be read") from None
    numbers = _numbers(_parsed(text), path)
    if len(numbers) not in (dimension, dimension + 1):
        raise Misconfigured(
            f"--truth {path} has {len(numbers)} numbers; expected {dimension} weights, "
            f"and perhaps an intercept"
        )
    if not all(math.isfinite(each) for each in numbers) or not any(numbers[:dimension]):
        raise Misconfigured(f"--truth {path}: weights must be finite and not all 0")
    intercept = numbers[dimension] if len(numbers) > dimension else math.nan
    return Boundary(np.array(numbers[:dimension], np.float64), intercept)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.replace(",", " ").split()


def _numbers(value: Any, path: Path) -> list[float]:
    if isinstance(value, Mapping):
        last = [value["intercept"]] if value.get("intercept") is not None else []
        weights = value.get("weights")
        value = [*weights, *last] if isinstance(weights, list) else None
    if isinstance(value, int | float):
        value = [value]
    if isinstance(value, Sequence) and not isinstance(value, str):
        try:
            return [float(each) for each in value]
        except (TypeError, ValueError):
            value = None
    raise Misconfigured(
        f"--truth {path} is neither numbers nor JSON such as "
        f'{{"weights": [1, -2], "intercept": 0.5}}'
    )
