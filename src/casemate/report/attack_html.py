"""An attack as one HTML page: what is right, what that means, and how it came about.

Where the table knows the truth, no value is written without `reveal`.
"""

from collections.abc import Sequence

from casemate.attack.attack import Attacked
from casemate.attack.noise_curve import NoisePoint
from casemate.attack.score import Score
from casemate.report.attack_figures import (
    baselines,
    certainty,
    convergence,
    errors,
    intervals,
    noise_levels,
)
from casemate.report.attack_findings import (
    about_noise,
    determined,
    gap,
    headline,
    parts,
    percent,
    points,
    shown_value,
    shows_values,
    verdict,
)
from casemate.report.audit import plain
from casemate.report.markup import Markup, joined, tag
from casemate.report.page import counted, facts, listing, page, paragraph, section, table

SCOPE = (
    "An attack that fails proves nothing: another may succeed. What follows exactly from the "
    "queries without noise is for casemate audit to decide.",
    "A value that is right is no disclosure by itself: what could be guessed about somebody who is "
    "not in the table is inference.",
)


def as_html(found: Attacked, curve: Sequence[NoisePoint] = (), *, reveal: bool = False) -> str:
    """An attack as a self-contained page; `curve` is what is recovered under other noise."""
    sentence = headline(found)
    return page(
        "casemate attack reconstruct",
        f"{sentence[:1].upper()}{sentence[1:]}.",
        _introduction(found, reveal),
        [
            baselines(found),
            _strata(found),
            noise_levels(found, curve),
            errors(found, reveal),
            intervals(found, reveal),
            certainty(found),
            convergence(found),
            _values(found) if shows_values(found, reveal) else Markup(),
            _refused(found),
            section("assumptions", "What was taken for granted", listing(_assumptions(found))),
        ],
    )


def _introduction(found: Attacked, reveal: bool) -> Markup:
    made, problem = found.reconstruction, found.evidence.problem
    numbers = facts(
        [
            ("solver", made.solver.value),
            ("records", f"{found.records:,}"),
            ("statements", f"{found.queries:,}"),
            ("equations", f"{problem.equations.height:,}"),
            ("unknowns", f"{problem.equations.width:,}"),
            ("CPU seconds", f"{found.seconds:.1f}"),
        ]
    )
    notes = [
        paragraph(
            f"{name}: {verdict(score.comparison, determined(found))}: {gap(score.comparison)}."
        )
        for name, score in found.scores.items()
    ]
    if not found.finished:
        notes.append(paragraph("The work was interrupted: this is the best so far."))
    if not shows_values(found, reveal):
        hidden = "No values are written, and errors and widths are rounded up."
        notes.append(paragraph(hidden, kind="note"))
    return joined([numbers, *notes])


def _strata(found: Attacked) -> Markup:
    rows = [row for name, score in found.scores.items() for row in _rows(name, score)]
    if not rows:
        return Markup()
    header = ("who", "column", "people", "attack", "leave one out", "difference", "interval")
    caption = "The attack and the best guess without the person, for some of the people"
    return section("strata", "For whom it is disclosure", table(caption, header, rows))


def _rows(name: str, score: Score) -> list[tuple[object, ...]]:
    return [
        (
            who,
            name,
            f"{each.targets:,}",
            percent(each.attack),
            percent(each.leave_one_out),
            points(each.difference),
            f"{points(each.low)} to {points(each.high)}",
        )
        for who, each in parts(score)
    ]


def _values(found: Attacked) -> Markup:
    rows = [
        (
            plain(each.record),
            plain(each.person),
            each.column,
            shown_value(each.value),
            *("" if end is None else f"{end:.6g}" for end in (each.low, each.high)),
            "" if each.probability is None else f"{each.probability:.3g}",
        )
        for each in found.secrets
    ]
    header = ("record", "person", "column", "value", "from", "to", "probability")
    caption = f"{counted(len(rows), 'value')} as the attack has them"
    return section("values", "Values", table(caption, header, rows))


def _refused(found: Attacked) -> Markup:
    rows = [
        (f"query {each.query}", each.reason, tag("pre", tag("code", each.text.strip())))
        for each in found.evidence.publication.refused
    ]
    if not rows:
        return Markup()
    caption = f"{counted(len(rows), 'statement')}, or parts of one, that no equation follows from"
    return section("refused", "Not used", table(caption, ("statement", "why", "text"), rows))


def _assumptions(found: Attacked) -> list[str]:
    noise = about_noise(found)
    return [f"{noise[:1].upper()}{noise[1:]}.", *SCOPE]
