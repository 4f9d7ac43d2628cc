"""An extracted classifier as text for the terminal and as the object `casemate.extract/1`."""

from typing import Any

from casemate.attack.extract import Extracted
from casemate.report.audit import plain

SCHEMA = "casemate.extract/1"
SHOWN_IN_TEXT = 12


def as_text(found: Extracted) -> str:
    """What was extracted, as lines to read."""
    weights = found.found.weights.tolist()
    more = len(weights) - SHOWN_IN_TEXT
    told = [f"and {more} more, all of them in the JSON"] if more > 0 else []
    shown = ", ".join([*(f"{each:.6g}" for each in weights[:SHOWN_IN_TEXT]), *told])
    lines = [headline(found), *sentences(found), ""]
    return "\n".join([*lines, f"weights    {shown}", f"intercept  {found.found.intercept:.6g}"])


def headline(found: Extracted) -> str:
    """What it came to, in one line."""
    asked = f"{found.queries:,} labels"
    if found.linear is False:
        return f"no flat boundary explains {asked}; this is the one it ended with"
    if found.angle is None:
        return f"a boundary in {found.box.dimension} dimensions from {asked}"
    return f"the boundary within an angle of {found.angle:.2g} from {asked}"


def sentences(found: Extracted) -> list[str]:
    """What is to be said about it, one thing a line."""
    below, above = (plain(label) for label in found.labels)
    said = [
        f"label {above} where weights . point + intercept > 0, label {below} elsewhere",
        f"learner {found.learner}; {_noise(found)}",
    ]
    if found.angle is not None and found.linear is False:
        said.append(f"the angle to the truth given is {found.angle:.2g}")
    if found.checked is not None:
        said.append(
            f"it foretells the labels of {100 * found.checked.agreement:.1f} % of "
            f"{found.checked.points:,} fresh points"
        )
    if found.linear is False:
        said.append(_not_linear(found))
    if not found.finished:
        said.append("interrupted: this is the best so far")
    return said


def _noise(found: Extracted) -> str:
    if not (found.noise or found.flips):
        return "labels without noise"
    flipped = f", and {100 * found.flips:.2g} % of labels flipped anywhere" if found.flips else ""
    return f"noise of deviation {found.noise:.3g} across the boundary{flipped}"


def _not_linear(found: Extracted) -> str:
    if found.checked is not None and found.checked.repeats:
        return "its wrong labels were the same when asked again: the classifier is not linear"
    return "more labels disagree than noise explains: the classifier is not linear"


def as_json(found: Extracted) -> dict[str, Any]:
    """What was extracted, as the object that `--format json` prints."""
    return {
        "schema": SCHEMA,
        "dimension": found.box.dimension,
        "bounds": [found.box.low, found.box.high],
        "learner": found.learner,
        "queries": found.queries,
        "angle": found.angle,
        "offset": found.offset,
        "weights": found.found.weights.tolist(),
        "intercept": found.found.intercept,
        "labels": list(found.labels),
        "noise": found.noise,
        "flips": found.flips,
        "agreement": found.agreement,
        "fresh": 0 if found.checked is None else found.checked.points,
        "linear": found.linear,
        "history": [{"queries": count, "angle": angle} for count, angle in curve(found)],
        "finished": found.finished,
        "seconds": round(found.seconds, 3),
    }


def curve(found: Extracted, most: int = 256) -> list[tuple[int, float]]:
    """The angle after so many queries, to the truth; without one, to what was found at the end."""
    last = found.found if found.truth is None else found.truth
    every = -(-len(found.history) // most)
    kept = [*found.history[:-1:every], found.history[-1]]
    return [(count, boundary.angle(last)) for count, boundary in kept]
