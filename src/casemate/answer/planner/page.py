"""A comparison of strategies as a page, with the errors drawn beside each other."""

from casemate.answer.planner.comparison import Comparison
from casemate.answer.planner.forecasts import StrategyForecast
from casemate.answer.planner.report import (
    HEADER,
    basis,
    headline,
    named,
    notes,
    paid_for,
    people,
    present_said,
    row,
    said,
    saving_said,
    split_said,
)
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
