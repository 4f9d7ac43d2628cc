"""An attack as a report: its text, its page, and the object `casemate.attack/1`.

Where the table knows the truth, no value is written without `reveal`; `words` says how the rest is
rounded, and `figures` draws what the page shows.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from casemate.attack import figures
from casemate.attack.attack import Attacked, NoisePoint
from casemate.attack.reconstruct.reconstruction import ReconstructedSecret
from casemate.attack.score.scoring import ERROR_QUANTILES, PairedComparison, Score
from casemate.attack.words import (
    BEST_SO_FAR,
    GUESSES,
    about_noise,
    certainties,
    count_determined,
    finite,
    fractions,
    gap,
    headline,
    is_narrow,
    json_value,
    parts,
    percent,
    points,
    rule,
    shown_value,
    shows_values,
    size_of,
    verdict,
    widths,
)
from casemate.report import (
    Block,
    Code,
    Facts,
    Figure,
    LazyRows,
    Listing,
    Paragraph,
    Prose,
    Report,
    Section,
    TableBlock,
    Where,
    count_of,
    number,
    plain,
    sentence,
)

SCHEMA = "casemate.attack/1"
QUANTILE_NAMES = {0.5: "median", 0.9: "p90", 0.99: "p99", 1.0: "max"}
BASELINES = ("prior_mean", "majority", "marginal", "leave_one_out")
SCORE_FIELDS = (
    "tolerance",
    "recovered",
    "within",
    "baseline",
    "difference",
    "quantiles",
    "coverage",
)
SCOPE = (
    "An attack that fails proves nothing: another may succeed. What follows exactly from the "
    "queries without noise is for casemate audit to decide.",
    "A value that is right is no disclosure by itself: what could be guessed about somebody who is "
    "not in the table is inference.",
)


def attack_report(
    found: Attacked, curve: Sequence[NoisePoint] = (), *, reveal: bool = False
) -> Report:
    """What is right, what that means, and how it came about; `curve` is under other noise."""
    page = partial(Section, where=Where.PAGE)
    noise_levels = Figure(lambda: figures.draw_noise_levels(found, curve))
    interval_widths = Figure(lambda: figures.draw_intervals(found, reveal))
    certainty = Figure(lambda: figures.draw_certainty(found))
    convergence = Figure(lambda: figures.draw_convergence(found))
    shown = shows_values(found, reveal)
    assumptions = Listing([sentence(about_noise(found)), *SCOPE])
    return Report(
        "casemate attack reconstruct",
        headline(found),
        lambda: _fields(found, reveal),
        _introduction(found, shown),
        [
            *(_score_section(name, score, found) for name, score in found.scores.items()),
            page("baselines", "What is right, and what could be guessed", _bars(found)),
            page("strata", "For whom it is disclosure", [_strata_table(found)]),
            page("noise", "How much noise would be enough", [noise_levels]),
            page("errors", "How far off the values are", _error_figures(found, reveal)),
            Section(
                "intervals",
                "How tight the intervals are",
                [interval_widths, *_interval_blocks(found, reveal)],
                label="",
            ),
            page("certainty", "How sure it is of whole numbers", [certainty]),
            page("convergence", "How the solver got there", [convergence]),
            _values_section(found, shown),
            _refused_section(found),
            page("assumptions", "What was taken for granted", [assumptions]),
        ],
    )


def _introduction(found: Attacked, shown: bool) -> list[Block]:
    made, equations = found.reconstruction, found.evidence.problem.equations
    numbers = [
        ("solver", made.solver.value),
        ("records", f"{found.records:,}"),
        ("statements", f"{found.queries:,}"),
        ("equations", f"{equations.height:,}"),
        ("unknowns", f"{equations.width:,}"),
        ("CPU seconds", f"{found.seconds:.1f}"),
    ]
    size = (
        f"{found.queries} statements, {equations.height} equations in {equations.width} unknowns, "
        f"about {found.records} records"
    )
    blocks: list[Block] = [
        Facts(numbers),
        Paragraph(size, where=Where.TEXT),
        Paragraph(about_noise(found), where=Where.TEXT),
        Paragraph(f"relative residual {made.residual:.2g} after {made.iterations} steps"),
    ]
    for name, score in found.scores.items():
        meaning = verdict(score.comparison, count_determined(found))
        said = (f"{name}: {meaning}: {gap(score.comparison)}.",)
        blocks.append(Paragraph(said, where=Where.PAGE))
    if not found.finished:
        blocks.append(Paragraph(BEST_SO_FAR))
    if not shown:
        hidden = "no values are written, and errors and widths are rounded up"
        blocks.append(Paragraph(hidden, remark=True, where=Where.PAGE))
    return blocks


# What is right --------------------------------------------------------------------------------


def _score_section(name: str, score: Score, found: Attacked) -> Section:
    """What is right of one column beside the baselines, and what that means."""
    shares = [(percent(score.recovered), f"this attack ({rule(found, name)})")]
    for key, guess in GUESSES.items():
        share = getattr(score.baseline, key)
        shares += [] if share is None else [(percent(share), guess)]
    level = f"{100 * score.confidence:g} % intervals"
    differences = [f"{who}: {gap(comparison)}" for who, comparison in parts(score)]
    blocks: list[Block] = [
        TableBlock("", (), shares, line="{:>7}  {}".format),
        Paragraph(verdict(score.comparison, count_determined(found))),
        Paragraph(f"the difference to leave one out, with {level}:"),
        Listing(differences),
    ]
    label = f"{name}: the share that is right"
    return Section("score", name, blocks, label=label, where=Where.TEXT)


def _strata_table(found: Attacked) -> TableBlock:
    rows = [
        (
            who,
            name,
            f"{each.targets:,}",
            percent(each.attack),
            percent(each.leave_one_out),
            points(each.difference),
            f"{points(each.low)} to {points(each.high)}",
        )
        for name, score in found.scores.items()
        for who, each in parts(score)
    ]
    header = ("who", "column", "people", "attack", "leave one out", "difference", "interval")
    return TableBlock(
        "The attack and the best guess without the person, for some of the people", header, rows
    )


def _bars(found: Attacked) -> list[Block]:
    return [
        Figure(partial(figures.draw_baselines, place, name, found))
        for place, name in enumerate(found.scores)
    ]


def _error_figures(found: Attacked, reveal: bool) -> list[Block]:
    """How far off the values are, in tolerances; with `reveal` the values against the truth."""
    truth = found.evidence.truth if found.scores else None
    if truth is None:
        return []
    kinds = [figures.draw_errors, *([figures.draw_scatter] if reveal else [])]
    return [
        Figure(partial(draw, place, name, found, truth))
        for draw in kinds
        for place, name in enumerate(found.scores)
    ]


# How sure it is, and of what --------------------------------------------------------------------


def _interval_blocks(found: Attacked, reveal: bool) -> list[Block]:
    """How tight the intervals are, and how many true values lie inside."""
    quantiles = _width_quantiles(found)
    if not quantiles or not found.reconstruction.finished:
        return []
    half, most = (_at_most(quantiles[share], found, reveal) for share in (0.5, 0.9))
    level = f"{100 * found.options.confidence:g} %"
    inside = [
        f"{percent(score.coverage)} of the true values of {name} lie inside"
        for name, score in found.scores.items()
        if score.coverage is not None
    ]
    if found.scores:
        narrow = is_narrow(found)
        inside.append(f"{narrow.sum()} of {len(narrow)} leave no room beyond what counts as right")
    sure = certainties(found)
    likely = int((sure >= found.options.confidence).sum())
    whole = f"{likely} of {len(sure)} whole numbers have a probability of {level} or more"
    return [
        Paragraph(f"{level} intervals: half are {half}, nine in ten {most}"),
        Listing(inside),
        *([Paragraph(whole)] if len(sure) else []),
    ]


def _at_most(width: float, found: Attacked, reveal: bool) -> str:
    if not math.isfinite(width):
        return "without an end"
    return f"at most {size_of(width, found, reveal):.3g} wide"


def _values_section(found: Attacked, shown: bool) -> Section:
    secrets = list(found.secrets) if shown else []
    header = ("record", "person", "column", "value", "from", "to", "probability")
    caption = f"{count_of(len(secrets), 'value')} as the attack has them"
    values = TableBlock(caption, header, LazyRows(secrets, _value_row), line=_value_line)
    return Section("values", "Values", [values], label=f"values: {len(secrets)}")


def _value_row(secret: ReconstructedSecret) -> Sequence[Prose]:
    return (
        plain(secret.record),
        plain(secret.person),
        secret.column,
        shown_value(secret.value),
        *("" if end is None else f"{end:.6g}" for end in (secret.low, secret.high)),
        "" if secret.probability is None else f"{secret.probability:.3g}",
    )


def _value_line(*cells: str) -> str:
    record, person, column, value, low, high, probability = cells
    whose = f"record {record}" + ("" if person == record else f" (person {person})")
    ends = [f"{low} to {high}".strip()] if low or high else []
    likely = [f"probability {probability}"] if probability else []
    how_sure = f" ({', '.join([*ends, *likely])})" if ends or likely else ""
    return f"{whose}: {column} = {value}{how_sure}"


def _refused_section(found: Attacked) -> Section:
    rows = [
        (f"query {each.query}", f"line {each.line}", each.reason, Code(each.text.strip(), True))
        for each in found.evidence.publication.refused
    ]
    header = ("statement", "where", "why", "text")
    caption = f"{count_of(len(rows), 'statement')}, or parts of one, that no equation follows from"
    refused = TableBlock(caption, header, rows, line="{} ({}): {}".format, rows_in_text=None)
    return Section("refused", "Not used", [refused], label=f"not used: {len(rows)}")


# JSON -----------------------------------------------------------------------------------------


def _fields(found: Attacked, reveal: bool) -> dict[str, Any]:
    """An attack as the fields of the JSON object."""
    made, problem = found.reconstruction, found.evidence.problem
    return {
        "schema": SCHEMA,
        "solver": made.solver.value,
        "records": found.records,
        "queries": found.queries,
        "equations": problem.equations.height,
        "unknowns": problem.equations.width,
        "noise": None if found.options.noise is None else str(found.options.noise),
        "confidence": found.options.confidence,
        **_overall_fields(found, reveal),
        "columns": _column_fields(found, reveal),
        "widths": _quantiles(_width_quantiles(found), found, reveal),
        "residual": finite(made.residual),
        "iterations": made.iterations,
        "finished": found.finished,
        "seconds": round(found.seconds, 3),
        "refused": [
            {
                "query": each.query,
                "line": each.line,
                "column": each.column,
                "text": each.text,
                "reason": each.reason,
            }
            for each in found.evidence.publication.refused
        ],
        "values": [_value(each) for each in found.secrets] if shows_values(found, reveal) else None,
    }


def _overall_fields(found: Attacked, reveal: bool) -> dict[str, Any]:
    """The score of the only private column; of several only what can be put together."""
    scores = list(found.scores.values())
    if len(scores) == 1:
        return _score_fields(scores[0], found, reveal)
    overall = fractions(scores)
    fields: dict[str, Any] = dict.fromkeys(SCORE_FIELDS)
    fields["recovered"], fields["within"] = overall["recovered"], overall["within"]
    fields["baseline"] = {name: overall[name] for name in BASELINES} if scores else None
    return fields


def _column_fields(found: Attacked, reveal: bool) -> list[dict[str, Any]] | None:
    if len(found.scores) < 2:
        return None
    return [
        {"column": name, "records": score.records, **_score_fields(score, found, reveal)}
        for name, score in found.scores.items()
    ]


def _score_fields(score: Score, found: Attacked, reveal: bool) -> dict[str, Any]:
    """What is right of one private column, beside what would be right without the attack."""
    strata = [
        {"by": each.by, "which": each.which, **_difference(each.comparison)}
        for each in score.strata
    ]
    return {
        "tolerance": score.tolerance,
        "recovered": score.recovered,
        "within": score.within,
        "baseline": {name: getattr(score.baseline, name) for name in BASELINES},
        "difference": {**_difference(score.comparison), "strata": strata},
        "quantiles": _quantiles(score.quantiles, found, reveal),
        "coverage": score.coverage,
    }


def _difference(comparison: PairedComparison) -> dict[str, Any]:
    return {
        "value": comparison.difference,
        "lo": comparison.low,
        "hi": comparison.high,
        "targets": comparison.targets,
        "attack": comparison.attack,
        "leave_one_out": comparison.leave_one_out,
    }


def _width_quantiles(found: Attacked) -> dict[float, float]:
    ascending = np.sort(widths(found))
    if not len(ascending):
        return {}
    places = [math.ceil(share * len(ascending)) - 1 for share in ERROR_QUANTILES]
    return {
        share: float(ascending[place]) for share, place in zip(ERROR_QUANTILES, places, strict=True)
    }


def _quantiles(
    quantiles: Mapping[float, float], found: Attacked, reveal: bool
) -> dict[str, float | None] | None:
    if not quantiles:
        return None
    return {
        QUANTILE_NAMES[share]: finite(size_of(size, found, reveal)) if math.isfinite(size) else None
        for share, size in quantiles.items()
    }


def _value(secret: ReconstructedSecret) -> dict[str, Any]:
    return {
        "record": number(secret.record),
        "person": number(secret.person),
        "column": secret.column,
        "value": json_value(secret.value),
        "lo": finite(secret.low),
        "hi": finite(secret.high),
        "probability": finite(secret.probability),
    }
