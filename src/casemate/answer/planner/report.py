"""A comparison of strategies as text, as the object `casemate.plan/1`, and as a page.

It is made of a policy, a public transcript and questions: there is nothing in it to hide. The page
draws the errors beside each other; sentences say what has to be said beside the numbers.
"""

import math
from fractions import Fraction
from typing import Any

from casemate.answer.planner.comparison import Comparison
from casemate.answer.planner.forecasts import EXACT_GAUSSIAN, StrategyForecast
from casemate.answer.planner.workload import LoggedQuestion
from casemate.answer.report import notes_section
from casemate.report import (
    Code,
    Drawing,
    Facts,
    Figure,
    Paragraph,
    Report,
    Section,
    TableBlock,
    Where,
    count_of,
    shorten,
)
from casemate.report.plots import Bands, Bar, Logarithmic, Plot, Tone
from casemate.table import Strategy
from casemate.table.sources import redact_source

SCHEMA = "casemate.plan/1"
SQL_LETTERS_IN_TEXT = 100
HEADER = ("strategy", "mean error", "largest", "proven within", "a question costs")


def comparison_report(found: Comparison) -> Report:
    """The strategies by their predicted errors, and which of them is recommended."""
    best = found.recommended
    numbers = [
        ("questions", f"{found.work.number:,}"),
        ("mean error, people", people_words(best.mean)),
        ("largest, people", people_words(best.largest)),
        ("proven within", "none" if best.proven is None else people_words(best.proven)),
    ]
    rows = [_row(each, found) for each in found.forecasts]
    caption = "Errors and proven half-widths in people"
    return Report(
        "casemate plan",
        f"recommended: {strategy_name(best)}",
        lambda: _fields(found),
        [
            Paragraph(basis(found)),
            Paragraph(f"split of the budget: {split_words(found)}"),
            Facts(numbers),
        ],
        [
            Section("errors", "Predicted errors", [Figure(lambda: _draw_errors(found))]),
            Section("strategies", "Strategies", [TableBlock(caption, HEADER, rows)], label=""),
            Section(
                "saving",
                "What is gained",
                [
                    Paragraph(saving_words(found)),
                    Paragraph(f"the policy as it is: {present_words(found)}"),
                ],
                label="",
            ),
            Section("questions", "The best for each question", _questions(found)),
            Section("refused", "Refused", _refused_tables(found)),
            notes_section(notes(found)),
        ],
    )


def _questions(found: Comparison) -> list[TableBlock]:
    """The best for each question of the log: cut to a line of text, whole on a page."""
    if found.log is None:
        return []
    ranked = paid_for(found)
    bests = ["exact, free" if best is None else strategy_name(best) for _, best, _ in ranked]
    errors = [people(error, found) for _, _, error in ranked]
    rows, lines = [], []
    for (question, forecast, _), best, error in zip(ranked, bests, errors, strict=True):
        short = shorten(" ".join(question.sql.split()), SQL_LETTERS_IN_TEXT, "...")
        rows.append((f"{question.line}", Code(question.sql), best, error))
        lines.append((question.line, best if forecast is None else f"{best}, {error}", short))
    caption, header = count_of(len(rows), "question"), ("line", "SQL", "best", "predicted error")
    return [
        TableBlock(caption, (), lines, line="line {}: {}: {}".format, where=Where.TEXT),
        TableBlock(caption, header, rows, where=Where.PAGE),
    ]


def _refused_tables(found: Comparison) -> list[TableBlock]:
    refused = [] if found.log is None else found.log.refused
    rows = [(f"{each.line}", Code(each.text), each.reason) for each in refused]
    header = ("line", "SQL", "reason")
    return [TableBlock("Not planned", header, rows, line="line {0}: {2}".format)]


# Notes ------------------------------------------------------------------------------------------


def notes(found: Comparison) -> list[str]:
    """Every note on a comparison."""
    clauses = [
        *found.notes,
        *(each.reason for each in found.universe.left_out),
        *_on_questions(found),
        *_on_people(found),
        *_on_unknown(found),
        *_on_baseline(found),
    ]
    return list(dict.fromkeys(clauses))


def people_words(error: float) -> str:
    """An error in people, to three digits.

    >>> people_words(0.01234), people_words(1234.5)
    ('0.0123', '1,230')
    """
    return f"{float(f'{error:.3g}'):,.10g}"


def amount(price: Fraction) -> str:
    """A price, to three digits."""
    return f"{float(price):.3g}"


def _on_questions(found: Comparison) -> list[str]:
    clauses = [
        "errors are predictions from the noise alone, in people; for a sum, in what one person can "
        "add at most"
    ]
    if found.log is not None and found.log.repeats:
        clauses.append("a question that is asked again is free, and is counted once")
    if found.history.questions or found.history.people is not None:
        clauses.append(
            f"{found.history.questions} questions were asked of the gate and it fired "
            f"{found.history.surprises} times; what was spent on it is spent, and another strategy "
            f"needs another budget"
        )
    return clauses


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
    clauses = []
    starred = [each for each in found.forecasts if each.available and not each.checked]
    if starred:
        clauses.append(
            "* questions look at more attributes together than these tables have; what only more "
            "of them show is unknown, is in no prediction, and nothing checks it: it can be large"
        )
    warm = next((each for each in found.forecasts if each.strategy is Strategy.WARM), None)
    if warm is not None and warm.available and warm.wider:
        clauses.append(
            f"warm: the unknown part of such questions is bounded by the gate: no answer that "
            f"passes is further off than {people_words(warm.proven or 0.0)} people"
        )
    clauses.append(
        "cold: a guess; from nothing, errors were about an eighth of the gate's threshold, and the "
        "largest about the threshold, on the tables that were tried"
    )
    return clauses


def _on_baseline(found: Comparison) -> list[str]:
    if found.baseline.name != EXACT_GAUSSIAN:
        return ["delta is 0, so the baseline is Laplace noise: no Gaussian noise is pure"]
    return [
        "exact accounting of Gaussian noise is for questions that are all fixed in advance; the "
        "ledger allows them to be chosen along the way, which takes a little more noise"
    ]


# In words ---------------------------------------------------------------------------------------


def strategy_name(forecast: StrategyForecast) -> str:
    """A strategy in words."""
    tables = f"tables of {count_of(forecast.order or 0, 'attribute')}"
    if forecast.strategy is Strategy.TABLES:
        return tables
    if forecast.strategy is Strategy.WARM and forecast.order:
        return f"warm, from {tables}"
    return str(forecast.strategy)


def basis(found: Comparison) -> str:
    """What the comparison is for."""
    number, budget = count_of(found.work.number, "question"), found.policy.budget
    assert budget is not None, "a comparison has a budget"
    kind = "ranges over three attributes assumed" if found.assumed else "those of the log"
    people = "an unknown number of people"
    if found.people is not None:
        people = f"{found.people:,.0f} people"
    return (
        f"{number} ({kind}), {people}, {found.universe.cells:,} cells, "
        f"epsilon {float(budget.epsilon):g}, delta {float(budget.delta):g}, {budget.neighbours}"
    )


def _row(forecast: StrategyForecast, found: Comparison) -> tuple[str, ...]:
    """One line of the table."""
    if not forecast.available:
        return (strategy_name(forecast), "-", "-", "-", forecast.reason or "")
    proven = "none" if forecast.proven is None else people(forecast.proven, found)
    mark = " *" if not forecast.checked else ""
    return (
        f"{strategy_name(forecast)}{mark}",
        people(forecast.mean, found),
        people(forecast.largest, found),
        proven,
        cost_words(forecast),
    )


def people(error: float, found: Comparison) -> str:
    """An error in people, and as a share of them where their number is known."""
    if found.people is None:
        return people_words(error)
    share = 100 * error / found.people
    percent = f"{share:.2g}" if share < 100 else f"{share:,.0f}"
    return f"{people_words(error)} ({percent} %)"


def cost_words(forecast: StrategyForecast) -> str:
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
    plan, budget = forecast.plan, found.setting.means.amount
    assert plan is not None, "what is recommended has a plan"
    runs = 0 if plan.gate is None else plan.gate.runs
    shares = {
        "start": plan.start_price,
        "gate": runs * plan.run_price,
        "surprises": runs * plan.price_of(plan.surprise_law),
        "answers": found.work.number * (plan.answer or Fraction(0)),
    }
    return {name: round(float(price / budget), 4) for name, price in shares.items()}


def split_words(found: Comparison) -> str:
    """The split that is recommended, in words."""
    shares = split(found.recommended, found)
    return ", ".join(f"{100 * each:.3g} % {name}" for name, each in shares.items() if each)


def saving_words(found: Comparison) -> str:
    """The saving against plain noise, also when it is none."""
    mean, most = found.saving
    base_mean, base_most = map(people_words, (found.baseline.mean, found.baseline.largest))
    baseline = f"{found.baseline.name} (mean error {base_mean}, largest {base_most})"
    return f"against {baseline}: {_change(mean)} mean, {_change(most)} largest"


def _change(part: float) -> str:
    return f"{100 * abs(part):.3g} % {'less' if part >= 0 else 'more'}"


def present_words(found: Comparison) -> str:
    """What the policy leads to now, in words."""
    now = found.present
    if not now.available:
        return f"{strategy_name(now)}: {now.reason}"
    errors = f"mean error {people(now.mean, found)}, largest {people_words(now.largest)}"
    return f"{strategy_name(now)}, {errors}"


def paid_for(found: Comparison) -> list[tuple[LoggedQuestion, StrategyForecast | None, float]]:
    """Each question of the log with the strategy that is best for it; None for a free one."""
    assert found.log is not None, "there are questions only where there is a log"
    ranked = found.by_question()
    return [
        (each, None, 0.0) if set(each.asked.scope) <= found.free else (each, *next(ranked))
        for each in found.log.questions
    ]


# JSON -----------------------------------------------------------------------------------------


def _fields(found: Comparison) -> dict[str, Any]:
    """A comparison as the fields of the JSON object."""
    policy, log, budget = found.policy, found.log, found.policy.budget
    assert budget is not None, "a comparison has a budget"
    mean, most = found.saving
    return {
        "schema": SCHEMA,
        "policy": str(policy.path) if policy.path else redact_source(policy.source),
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
        "proven": None if forecast.proven is None else _four_digits(forecast.proven),
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
    shares = [None if number is None else _four_digits(each / number) for each in (mean, most)]
    return {
        "mean": _four_digits(mean),
        "max": _four_digits(most),
        "mean_share": shares[0],
        "max_share": shares[1],
    }


def _four_digits(value: float) -> float | None:
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
        "error": _four_digits(error),
        "error_share": None if found.people is None else _four_digits(error / found.people),
    }


# The figure -----------------------------------------------------------------------------------


def _draw_errors(found: Comparison) -> Drawing:
    """The predicted mean errors, on a scale of ratios."""
    available = [each for each in found.forecasts if each.available and each.mean > 0]
    labels = tuple(_label(each) for each in available)
    heights = [each.mean for each in available]
    plot = Plot(Bands(labels), Logarithmic(min(heights) / 2, max(heights) * 2))
    bars = [
        Bar(place, each.mean, people_words(each.mean), _tone(each, found))
        for place, each in enumerate(available)
    ]
    bars_described = ", ".join(
        f"{label} {people_words(height)}" for label, height in zip(labels, heights, strict=True)
    )
    svg = plot.draw(
        "errors",
        "The predicted mean error of each strategy",
        f"Bars for {bars_described}.",
        plot.axes("", "mean error, people"),
        plot.bars(bars),
    )
    caption = (
        "Pale bars leave a part of the questions unchecked, which is not in their error. The scale "
        "is one of ratios."
    )
    return Drawing(svg, caption)


def _label(forecast: StrategyForecast) -> str:
    if forecast.strategy is Strategy.TABLES:
        return f"{forecast.order}-way"
    warm = forecast.strategy is Strategy.WARM
    return f"warm {forecast.order}-way" if warm else str(forecast.strategy)


def _tone(forecast: StrategyForecast, found: Comparison) -> Tone:
    if forecast is found.recommended:
        return Tone.STRONG
    return Tone.PLAIN if forecast.checked else Tone.SOFT
