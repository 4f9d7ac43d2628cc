"""An extracted classifier as a page: what was found, how fast, and what a custodian can do."""

from casemate.attack.extract import Extracted
from casemate.report.extract import curve, headline, sentences
from casemate.report.markup import Markup, joined
from casemate.report.page import facts, figure, listing, page, paragraph, section, table
from casemate.report.scales import Logarithmic
from casemate.report.svg import Plot, Tone

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
