"""An extracted classifier as text, as the object `casemate.extract/1`, and as a page.

The page shows what was found, how fast, and what a custodian can do.
"""

from typing import Any

from casemate.attack.extract.extraction import Extracted
from casemate.attack.words import BEST_SO_FAR
from casemate.report import (
    Drawing,
    Facts,
    Figure,
    Listing,
    Paragraph,
    Report,
    Section,
    TableBlock,
    Where,
    plain,
)
from casemate.report.plots import Logarithmic, Plot, Tone

SCHEMA = "casemate.extract/1"
WEIGHTS_IN_TEXT = 12
CURVE_POINTS = 256
"""The most points of the curve of angles."""

DEFENCES = (
    "A label is an answer: who may ask for labels without end may copy the classifier. Count the "
    "labels of each principal, and end them.",
    "Noise on labels does not hide the boundary, it sets the price: the angle falls with one over "
    "the square root of the queries. Labels flipped wherever the point is hide even less.",
    "Points far from any real case are a sign of extraction; so are points that come closer and "
    "closer to the boundary.",
)


def extraction_report(found: Extracted) -> Report:
    """What was extracted, how fast, and what a custodian can do."""
    numbers = [
        ("queries", f"{found.queries:,}"),
        ("angle", "–" if found.angle is None else f"{found.angle:.2g}"),
        ("agreement", "–" if found.agreement is None else f"{100 * found.agreement:.1f} %"),
        ("noise", f"{found.noise:.3g}"),
        ("dimensions", f"{found.box.dimension:,}"),
    ]
    progress = Figure(lambda: _draw_progress(found))
    return Report(
        "casemate attack extract",
        _headline(found),
        lambda: _fields(found),
        [*map(Paragraph, _clauses(found)), Facts(numbers)],
        [
            Section("progress", "How fast it is found", [progress]),
            Section("weights", "Weights", _weights(found), label=""),
            Section("defences", "What to do about it", [Listing(DEFENCES)], where=Where.PAGE),
        ],
    )


def _headline(found: Extracted) -> str:
    """What it came to, in one line."""
    asked = f"{found.queries:,} labels"
    if found.linear is False:
        return f"no flat boundary explains {asked}; this is the one it ended with"
    if found.angle is None:
        return f"a boundary in {found.box.dimension} dimensions from {asked}"
    return f"the boundary within an angle of {found.angle:.2g} from {asked}"


def _clauses(found: Extracted) -> list[str]:
    """What is to be said about it, one thing a line."""
    below, above = (plain(label) for label in found.labels)
    clauses = [
        f"label {above} where weights . point + intercept > 0, label {below} elsewhere",
        f"learner {found.learner}; {_noise(found)}",
    ]
    if found.angle is not None and found.linear is False:
        clauses.append(f"the angle to the truth given is {found.angle:.2g}")
    if found.checked is not None:
        clauses.append(
            f"it foretells the labels of {100 * found.checked.agreement:.1f} % of "
            f"{found.checked.points:,} fresh points"
        )
    if found.linear is False:
        clauses.append(_not_linear(found))
    if not found.finished:
        clauses.append(BEST_SO_FAR)
    return clauses


def _noise(found: Extracted) -> str:
    if not (found.noise or found.flips):
        return "labels without noise"
    flipped = f", and {100 * found.flips:.2g} % of labels flipped anywhere" if found.flips else ""
    return f"noise of deviation {found.noise:.3g} across the boundary{flipped}"


def _not_linear(found: Extracted) -> str:
    if found.checked is not None and found.checked.repeats:
        return "its wrong labels were the same when asked again: the classifier is not linear"
    return "more labels disagree than noise explains: the classifier is not linear"


def _fields(found: Extracted) -> dict[str, Any]:
    """What was extracted, as the fields of the JSON object."""
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


def curve(found: Extracted, most: int = CURVE_POINTS) -> list[tuple[int, float]]:
    """The angle after so many queries, to the truth; without one, to what was found at the end."""
    target = found.found if found.truth is None else found.truth
    every = -(-len(found.history) // most)
    points = [*found.history[:-1:every], found.history[-1]]
    return [(count, boundary.angle(target)) for count, boundary in points]


def _draw_progress(found: Extracted) -> Drawing | None:
    """The angle against the queries, on logarithmic axes."""
    points = [(count, angle) for count, angle in curve(found) if angle > 0]
    if len({count for count, _ in points}) < 2:
        return None
    counts, angles = zip(*points, strict=True)
    plot = Plot(
        Logarithmic(min(counts), max(counts)), Logarithmic(min(angles) / 2, 2 * max(angles))
    )
    to = "what was found at the end" if found.truth is None else "the truth"
    svg = plot.draw(
        "progress",
        f"The angle to {to}",
        f"From {angles[0]:.2g} after {counts[0]} queries to {angles[-1]:.2g} after {counts[-1]}.",
        plot.axes("queries", "angle, in radians"),
        plot.curve(points),
        plot.points(points[-1:], Tone.STRONG),
    )
    caption = f"The angle between the boundary believed so far and {to}, on logarithmic axes."
    return Drawing(svg, caption)


def _weights(found: Extracted) -> list[Facts | TableBlock]:
    weights = found.found.weights.tolist()
    more = len(weights) - WEIGHTS_IN_TEXT
    rest = [f"and {more} more, all of them in the JSON"] if more > 0 else []
    first = ", ".join([*(f"{weight:.6g}" for weight in weights[:WEIGHTS_IN_TEXT]), *rest])
    intercept = f"{found.found.intercept:.6g}"
    columns = {"coordinate": range(1, len(weights) + 1), "weight": weights}
    if found.truth is not None:
        true = found.truth.unit().weights
        # Which label is called above is a matter of names.
        columns["true weight"] = (true if true @ found.found.weights >= 0 else -true).tolist()
    rows = [[f"{cell:.6g}" for cell in row] for row in zip(*columns.values(), strict=True)]
    caption = f"Weights of length 1, with an intercept of {intercept}"
    return [
        Facts([("weights", first), ("intercept", intercept)], where=Where.TEXT),
        TableBlock(caption, tuple(columns), rows, where=Where.PAGE),
    ]
