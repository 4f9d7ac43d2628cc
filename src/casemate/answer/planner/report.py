"""A comparison of strategies as text for the terminal, and as the object `casemate.plan/1`.

It is made of a policy, a public transcript and questions: there is nothing in it to hide.

What has to be said beside the numbers of a plan, in sentences.

A comparison of strategies as a page, with the errors drawn beside each other.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from casemate.answer.planner.comparison import Comparison
from casemate.answer.planner.forecasts import EXACT_GAUSSIAN, StrategyForecast
from casemate.answer.planner.workload import LoggedQuestion
from casemate.report import (
    Bands,
    Bar,
    Logarithmic,
    Markup,
    Plot,
    Tone,
    counted,
    facts,
    figure,
    joined,
    listing,
    page,
    paragraph,
    section,
    table,
    tag,
)
from casemate.table import Strategy
from casemate.table.sources import shown


def notes(found: Comparison) -> list[str]:
    """Every note on a comparison."""
    told = [
        *found.notes,
        *(each.reason for each in found.universe.left_out),
        *_on_questions(found),
        *_on_people(found),
        *_on_unknown(found),
        *_on_baseline(found),
    ]
    return list(dict.fromkeys(told))


def said(error: float) -> str:
    """An error in people, to three digits.

    >>> said(0.01234), said(1234.5)
    ('0.0123', '1,230')
    """
    return f"{float(f'{error:.3g}'):,.10g}"


def amount(price: Fraction) -> str:
    """A price, to three digits."""
    return f"{float(price):.3g}"


def _on_questions(found: Comparison) -> list[str]:
    told = [
        "errors are predictions from the noise alone, in people; for a sum, in what one person can "
        "add at most"
    ]
    if found.log is not None and found.log.repeats:
        told.append("a question that is asked again is free, and is counted once")
    if found.history.questions or found.history.people is not None:
        told.append(
            f"{found.history.questions} questions were asked of the gate and it fired "
            f"{found.history.surprises} times; what was spent on it is spent, and another strategy "
            f"needs another budget"
        )
    return told


def _on_people(found: Comparison) -> list[str]:
    if found.people is None:
        return [
            "the number of people is not known, so there are no shares; give --people N, or ask "
            "once: the first answer measures it with noise"
        ]
    if found.people == found.history.people:
        return ["the number of people is the noised one of the transcript"]
    return ["the number of people is assumed"]


def _on_unknown(found: Comparison) -> list[str]:
    told = []
    starred = [each for each in found.forecasts if each.available and not each.checked]
    if starred:
        told.append(
            "* questions look at more attributes together than these tables have; what only more "
            "of them show is unknown, is in no prediction, and nothing checks it: it can be large"
        )
    warm = next((each for each in found.forecasts if each.strategy is Strategy.WARM), None)
    if warm is not None and warm.available and warm.wider:
        told.append(
            f"warm: the unknown part of such questions is bounded by the gate: {_bound(warm)}"
        )
    told.append(
        "cold: a guess; from nothing, errors were about an eighth of the gate's threshold, and the "
        "largest about the threshold, on the tables that were tried"
    )
    return told


def _bound(warm: StrategyForecast) -> str:
    return f"no answer that passes is further off than {said(warm.proven or 0.0)} people"


def _on_baseline(found: Comparison) -> list[str]:
    if found.baseline.name != EXACT_GAUSSIAN:
        return ["delta is 0, so the baseline is Laplace noise: no Gaussian noise is pure"]
    return [
        "exact accounting of Gaussian noise is for questions that are all fixed in advance; the "
        "ledger allows them to be chosen along the way, which takes a little more noise"
    ]


# Answer plan ------------------------------------------------------------------------------------


SCHEMA = "casemate.plan/1"
SHOWN_IN_TEXT = 20
LONGEST = 100
"""Letters of a question that the text shows."""

HEADER = ("strategy", "mean error", "largest", "proven within", "a question costs")


def as_text(found: Comparison) -> str:
    """A comparison as lines to read."""
    lines = [headline(found), basis(found), f"split of the budget: {split_said(found)}", ""]
    lines += _columns([HEADER, *(row(each, found) for each in found.forecasts)])
    lines += ["", saving_said(found), f"the policy as it is: {present_said(found)}"]
    if found.log is not None:
        lines += ["", "the best for each question:", *_first(_by_question(found))]
        refused = [f"  line {each.line}: {each.reason}" for each in found.log.refused]
        lines += ["", "refused:", *_first(refused)] if refused else []
    return "\n".join([*lines, "", *(f"note: {each}" for each in notes(found))])


def headline(found: Comparison) -> str:
    """What is recommended, in a line."""
    return f"recommended: {named(found.recommended)}"


def named(forecast: StrategyForecast) -> str:
    """A strategy in words."""
    tables = f"tables of {counted(forecast.order or 0, 'attribute')}"
    if forecast.strategy is Strategy.TABLES:
        return tables
    if forecast.strategy is Strategy.WARM and forecast.order:
        return f"warm, from {tables}"
    return str(forecast.strategy)


def basis(found: Comparison) -> str:
    """What the comparison is for."""
    number, budget = counted(found.work.number, "question"), found.policy.budget
    assert budget is not None, "a comparison has a budget"
    kind = "ranges over three attributes assumed" if found.assumed else "those of the log"
    people = "an unknown number of people"
    if found.people is not None:
        people = f"{found.people:,.0f} people"
    return (
        f"{number} ({kind}), {people}, {found.universe.cells:,} cells, "
        f"epsilon {float(budget.epsilon):g}, delta {float(budget.delta):g}, {budget.neighbours}"
    )


def row(forecast: StrategyForecast, found: Comparison) -> tuple[str, ...]:
    """One line of the table."""
    if not forecast.available:
        return (named(forecast), "-", "-", "-", forecast.reason or "")
    proven = "none" if forecast.proven is None else people(forecast.proven, found)
    mark = " *" if not forecast.checked else ""
    return (
        f"{named(forecast)}{mark}",
        people(forecast.mean, found),
        people(forecast.largest, found),
        proven,
        cost_said(forecast),
    )


def people(error: float, found: Comparison) -> str:
    """An error in people, and as a share of them where their number is known."""
    if found.people is None:
        return said(error)
    share = 100 * error / found.people
    return f"{said(error)} ({share:.2g} %)" if share < 100 else f"{said(error)} ({share:,.0f} %)"


def cost_said(forecast: StrategyForecast) -> str:
    """What a question costs, in words."""
    plan = forecast.plan
    if plan is None:
        return "-"
    if plan.answer is not None:
        return f"{amount(plan.answer)} {plan.currency} each"
    if plan.gate is None:
        return "nothing"
    hard = plan.run_price + plan.price_of(plan.surprise_law)
    return f"nothing, {amount(hard)} {plan.currency} for each of {plan.gate.runs} surprises"


def split(forecast: StrategyForecast, found: Comparison) -> dict[str, float]:
    """The shares of the budget that go to the start, the gate, its surprises, and to answers."""
    plan, whole = forecast.plan, found.setting.means.amount
    assert plan is not None, "what is recommended has a plan"
    runs = 0 if plan.gate is None else plan.gate.runs
    shares = {
        "start": plan.start_price,
        "gate": runs * plan.run_price,
        "surprises": runs * plan.price_of(plan.surprise_law),
        "answers": found.work.number * (plan.answer or Fraction(0)),
    }
    return {name: round(float(each / whole), 4) for name, each in shares.items()}


def split_said(found: Comparison) -> str:
    """The split that is recommended, in words."""
    shares = split(found.recommended, found)
    return ", ".join(f"{100 * each:.3g} % {name}" for name, each in shares.items() if each)


def saving_said(found: Comparison) -> str:
    """The saving against plain noise, also when it is none."""
    mean, most = found.saving
    ours = f"mean error {said(found.baseline.mean)}, largest {said(found.baseline.largest)}"
    return f"against {found.baseline.name} ({ours}): {_less(mean)} mean, {_less(most)} largest"


def _less(part: float) -> str:
    return f"{100 * abs(part):.3g} % {'less' if part >= 0 else 'more'}"


def present_said(found: Comparison) -> str:
    """What the policy leads to now, in words."""
    now = found.present
    if not now.available:
        return f"{named(now)}: {now.reason}"
    return f"{named(now)}, mean error {people(now.mean, found)}, largest {said(now.largest)}"


def paid_for(found: Comparison) -> list[tuple[LoggedQuestion, StrategyForecast | None, float]]:
    """Each question of the log with the strategy that is best for it; None for a free one."""
    assert found.log is not None, "there are questions only where there is a log"
    ranked = found.by_question()
    return [
        (each, None, 0.0) if set(each.asked.scope) <= found.free else (each, *next(ranked))
        for each in found.log.questions
    ]


def _by_question(found: Comparison) -> list[str]:
    lines = []
    for question, forecast, error in paid_for(found):
        best = "exact, free" if forecast is None else f"{named(forecast)}, {people(error, found)}"
        text = " ".join(question.sql.split())
        cut = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
        lines.append(f"  line {question.line}: {best}: {cut}")
    return lines


def _first(lines: list[str]) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - SHOWN_IN_TEXT
    return [*lines[:SHOWN_IN_TEXT], *([f"  and {more} more in the JSON"] if more > 0 else [])]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(each, widths, strict=True)).rstrip()
        for each in rows
    ]


# JSON -----------------------------------------------------------------------------------------


def as_json(found: Comparison) -> dict[str, Any]:
    """A comparison as the object that `--format json` prints."""
    policy, log, budget = found.policy, found.log, found.policy.budget
    assert budget is not None, "a comparison has a budget"
    mean, most = found.saving
    return {
        "schema": SCHEMA,
        "policy": str(policy.path) if policy.path else shown(policy.source),
        "epsilon": float(budget.epsilon),
        "delta": float(budget.delta),
        "neighbours": str(budget.neighbours),
        "currency": str(found.setting.means.currency),
        "cells": found.universe.cells,
        "people": found.people,
        "confidence": found.setting.confidence,
        "questions": {
            "expected": found.work.number,
            "read": 0 if log is None else len(log.questions) + log.repeats,
            "repeats": 0 if log is None else log.repeats,
            "assumed": found.assumed,
            "asked_before": found.history.questions,
        },
        "strategies": [_strategy(each, found) for each in found.forecasts],
        "recommended": _strategy(found.recommended, found)
        | {"split": split(found.recommended, found)},
        "present": _strategy(found.present, found),
        "baseline": {
            "name": found.baseline.name,
            **_errors(found.baseline.mean, found.baseline.largest, found),
        },
        "saving": {"mean": round(mean, 4), "max": round(most, 4)},
        "plan": [] if log is None else [_question(*each, found) for each in paid_for(found)],
        "refused": [] if log is None else [vars(each) for each in log.refused],
        "notes": notes(found),
    }


def _strategy(forecast: StrategyForecast, found: Comparison) -> dict[str, Any]:
    plan = forecast.plan
    hard = None if plan is None else plan.run_price + plan.price_of(plan.surprise_law)
    return {
        "strategy": str(forecast.strategy),
        "tables": forecast.order,
        **_errors(forecast.mean, forecast.largest, found),
        "proven": None if forecast.proven is None else _rounded(forecast.proven),
        "unverified": forecast.wider if forecast.gate is None else 0,
        "start": None if plan is None else _share(plan.start_price, found),
        "each": None if plan is None else _share(plan.answer or Fraction(0), found),
        "surprise": None if not hard else _share(hard, found),
        "surprises": 0 if forecast.gate is None else forecast.gate.runs,
        "reason": forecast.reason,
    }


def _share(price: Fraction, found: Comparison) -> float:
    """A price as a share of the budget."""
    return float(f"{float(price / found.setting.means.amount):.4g}")


def _errors(mean: float, most: float, found: Comparison) -> dict[str, Any]:
    number = found.people
    shares = [None if number is None else _rounded(each / number) for each in (mean, most)]
    return {
        "mean": _rounded(mean),
        "max": _rounded(most),
        "mean_share": shares[0],
        "max_share": shares[1],
    }


def _rounded(value: float) -> float | None:
    """To four digits: a prediction has no more. Nothing where it cannot be had."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _question(
    question: LoggedQuestion, forecast: StrategyForecast | None, error: float, found: Comparison
) -> dict[str, Any]:
    return {
        "line": question.line,
        "sql": question.sql,
        "strategy": "exact" if forecast is None else str(forecast.strategy),
        "tables": None if forecast is None else forecast.order,
        "error": _rounded(error),
        "error_share": None if found.people is None else _rounded(error / found.people),
    }


# Page -------------------------------------------------------------------------------------------


def as_html(found: Comparison) -> str:
    """A comparison as a self-contained page."""
    best = found.recommended
    numbers = [
        ("questions", f"{found.work.number:,}"),
        ("mean error, people", said(best.mean)),
        ("largest, people", said(best.largest)),
        ("proven within", "none" if best.proven is None else said(best.proven)),
    ]
    introduction = joined(
        [
            paragraph(f"{basis(found)}. The split of the budget: {split_said(found)}."),
            paragraph(f"{saving_said(found)[:1].upper()}{saving_said(found)[1:]}."),
            paragraph(f"The policy as it is: {present_said(found)}."),
            facts(numbers),
        ]
    )
    sections = [_chart(found), _table(found), _questions(found), _refused(found), _notes(found)]
    said_first = headline(found)
    return page(
        "casemate plan", f"{said_first[:1].upper()}{said_first[1:]}", introduction, sections
    )


def _chart(found: Comparison) -> Markup:
    """The predicted mean errors, on a scale of ratios."""
    shown = [each for each in found.forecasts if each.available and each.mean > 0]
    labels = tuple(_label(each) for each in shown)
    heights = [each.mean for each in shown]
    plot = Plot(Bands(labels), Logarithmic(min(heights) / 2, max(heights) * 2))
    bars = [
        Bar(place, each.mean, said(each.mean), _tone(each, found))
        for place, each in enumerate(shown)
    ]
    told = ", ".join(f"{a} {said(b)}" for a, b in zip(labels, heights, strict=True))
    drawn = plot.drawn(
        "errors",
        "The predicted mean error of each strategy",
        f"Bars for {told}.",
        plot.axes("", "mean error, people"),
        plot.bars(bars),
    )
    caption = (
        "Pale bars leave a part of the questions unchecked, which is not in their error. The scale "
        "is one of ratios."
    )
    return section("errors", "Predicted errors", figure(drawn, caption))


def _label(forecast: StrategyForecast) -> str:
    if forecast.strategy is Strategy.TABLES:
        return f"{forecast.order}-way"
    warm = forecast.strategy is Strategy.WARM
    return f"warm {forecast.order}-way" if warm else str(forecast.strategy)


def _tone(forecast: StrategyForecast, found: Comparison) -> Tone:
    if forecast is found.recommended:
        return Tone.STRONG
    return Tone.PLAIN if forecast.checked else Tone.SOFT


def _table(found: Comparison) -> Markup:
    rows = [row(each, found) for each in found.forecasts]
    caption = "Errors and proven half-widths in people"
    return section("strategies", "Strategies", table(caption, HEADER, rows))


def _questions(found: Comparison) -> Markup:
    if found.log is None:
        return Markup()
    rows = [
        (
            f"{question.line}",
            tag("code", question.sql),
            "exact, free" if forecast is None else named(forecast),
            people(error, found),
        )
        for question, forecast, error in paid_for(found)
    ]
    header = ("line", "SQL", "best", "predicted error")
    told = table(counted(len(rows), "question"), header, rows)
    return section("questions", "The best for each question", told)


def _refused(found: Comparison) -> Markup:
    if found.log is None or not found.log.refused:
        return Markup()
    rows = [(f"{each.line}", tag("code", each.text), each.reason) for each in found.log.refused]
    return section("refused", "Refused", table("Not planned", ("line", "SQL", "reason"), rows))


def _notes(found: Comparison) -> Markup:
    return section("notes", "Notes", listing(notes(found)))
