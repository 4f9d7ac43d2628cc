"""An extracted classifier as text for the terminal and as the object `casemate.extract/1`.

An extracted classifier as a page: what was found, how fast, and what a custodian can do.
"""

from typing import Any

from casemate.attack.extract.extraction import Extracted
from casemate.report import (
    Logarithmic,
    Markup,
    Plot,
    Tone,
    facts,
    figure,
    joined,
    listing,
    page,
    paragraph,
    plain,
    section,
    table,
)

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


# Extract html -----------------------------------------------------------------------------------


DEFENCES = (
    "A label is an answer: who may ask for labels without end may copy the classifier. Count the "
    "labels of each principal, and end them.",
    "Noise on labels does not hide the boundary, it sets the price: the angle falls with one over "
    "the square root of the queries. Labels flipped wherever the point is hide even less.",
    "Points far from any real case are a sign of extraction; so are points that come closer and "
    "closer to the boundary.",
)


def as_html(found: Extracted) -> str:
    """The whole page."""
    said = [f"{each[:1].upper()}{each[1:]}." for each in sentences(found)]
    numbers = [
        ("queries", f"{found.queries:,}"),
        ("angle", "–" if found.angle is None else f"{found.angle:.2g}"),
        ("agreement", "–" if found.agreement is None else f"{100 * found.agreement:.1f} %"),
        ("noise", f"{found.noise:.3g}"),
        ("dimensions", found.box.dimension),
    ]
    top = joined([*(paragraph(each) for each in said), facts(numbers)])
    sections = [_progress(found), _weights(found), _defences()]
    title = headline(found)
    return page("casemate attack extract", f"{title[:1].upper()}{title[1:]}.", top, sections)


def _progress(found: Extracted) -> Markup:
    """The angle against the queries, on logarithmic axes."""
    points = [(count, angle) for count, angle in curve(found) if angle > 0]
    if len({count for count, _ in points}) < 2:
        return Markup()
    counts, angles = zip(*points, strict=True)
    plot = Plot(
        Logarithmic(min(counts), max(counts)), Logarithmic(min(angles) / 2, 2 * max(angles))
    )
    to = "what was found at the end" if found.truth is None else "the truth"
    drawn = plot.drawn(
        "progress",
        f"The angle to {to}",
        f"From {angles[0]:.2g} after {counts[0]} queries to {angles[-1]:.2g} after {counts[-1]}.",
        plot.axes("queries", "angle, in radians"),
        plot.curve(points),
        plot.points(points[-1:], Tone.STRONG),
    )
    caption = f"The angle between the boundary believed so far and {to}, on logarithmic axes."
    return section("progress", "How fast it is found", figure(drawn, caption))


def _weights(found: Extracted) -> Markup:
    true = None if found.truth is None else found.truth.unit().weights
    if true is not None and true @ found.found.weights < 0:
        true = -true  # which label is called above is a matter of names
    rows = [
        (f"{place}", f"{each:.6g}", *(() if true is None else (f"{true[place - 1]:.6g}",)))
        for place, each in enumerate(found.found.weights.tolist(), start=1)
    ]
    header = ("coordinate", "weight", *(() if true is None else ("true weight",)))
    caption = f"Weights of length 1, with an intercept of {found.found.intercept:.6g}"
    return section("weights", "Weights", table(caption, header, rows))


def _defences() -> Markup:
    return section("defences", "What to do about it", listing(DEFENCES))
