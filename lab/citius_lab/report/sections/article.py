"""An article's published figures beside today's, and what its protocol does not tell."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from citius_lab.judge.figures import VALID
from citius_lab.judge.statistics import geometric_mean
from citius_lab.report import words
from citius_lab.report.plots.rows import Row, row_plot

if TYPE_CHECKING:
    from citius_lab.judge.figures import Figure
    from citius_lab.report.plots.rows import RowPlot
    from citius_lab.report.view import View


@dataclass(frozen=True, slots=True)
class Line:
    """What an article says of one contestant on one case: one rate, or those of several runs.

    Attributes:
        today: The same here, ``None`` if no contestant comes close or it was not measured.
    """

    who: str
    case: str
    series: str
    contestant: str | None
    rates: tuple[float, ...]
    shares: tuple[float | None, ...]
    notes: tuple[str, ...]
    today: Figure | None

    @property
    def rate(self) -> float:
        """The published rate, the geometric mean of several runs."""
        return geometric_mean(self.rates)


def lines(view: View, experiment: dict[str, Any]) -> list[Line]:
    """Return what the article published, runs of one contestant together."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for one in experiment["article"]["published"]:
        found.setdefault((one["series"], one["case"], one["who"]), []).append(one)
    return [
        Line(
            who,
            case,
            series,
            runs[0]["contestant"],
            tuple(run["requests_per_s"] for run in runs),
            tuple(run["error_share"] for run in runs),
            tuple(run["note"] for run in runs if len(runs) == 1 and run["note"]),
            view.figure(f"{experiment['name']}/{series}", case, runs[0]["contestant"] or ""),
        )
        for (series, case, who), runs in found.items()
    ]


@dataclass(frozen=True, slots=True)
class ArticleRow:
    """One contestant then and today; ``today_small`` is ``None`` where nothing was measured."""

    who: str
    here: str
    then: str
    then_small: str
    failed: bool = False
    today: str = "not measured"
    today_small: str | None = None


@dataclass(frozen=True, slots=True)
class ArticleCase:
    """One case that the article published figures of."""

    plot: RowPlot
    rows: tuple[ArticleRow, ...]
    note: str


@dataclass(frozen=True, slots=True)
class ArticlePart:
    """An article's part of the page; ``article`` is its record in run.json."""

    id: str
    article: dict[str, Any]
    cases: tuple[ArticleCase, ...]

    kind: ClassVar[str] = "article"


def part(view: View, experiment: dict[str, Any], pipelined: set[str]) -> ArticlePart:
    """Return the article's part; what it published of ``pipelined`` series says so."""
    found = lines(view, experiment)
    cases: list[ArticleCase] = []
    for series, case in dict.fromkeys((line.series, line.case) for line in found):
        own = [line for line in found if (line.series, line.case) == (series, case)]
        cases.append(_case(view, experiment, own, series in pipelined))
    return ArticlePart(f"{experiment['name']}-article", experiment["article"], tuple(cases))


def _case(view: View, experiment: dict[str, Any], own: list[Line], pipelined: bool) -> ArticleCase:
    baseline = view.analysis.baselines.get(experiment["name"])
    base = next((line for line in own if line.contestant == baseline), None)
    title = own[0].case + (", pipelined" if pipelined else "")
    note = ""
    if base is not None:
        note = f"Small: times {base.who} then, times {base.contestant} today."
    plot = row_plot(f"{title}, requests/s; ×: published", [_plot(view, one) for one in own])
    return ArticleCase(plot, tuple(_row(line, base) for line in own), note)


def _plot(view: View, line: Line) -> Row:
    name = line.who if len(line.who) <= LABEL_MAX else line.contestant or line.who[:LABEL_MAX]
    family = "other" if line.today is None else view.family(line.today.contestant)
    today = line.today
    shown = today is not None and words.is_shown(today)
    value = today.rate if today is not None and shown else None
    firm = today is not None and today.verdict.word == VALID
    text = words.brief(line.rate)
    if value is not None:
        text += f" → {words.brief(value.value)}"
    return Row(name, family, text, value, firm, cross=line.rate)


def _row(line: Line, base: Line | None) -> ArticleRow:
    errors = [f"{share:.1%}" for share in line.shares if share]
    small = [", ".join(line.notes)] if line.notes else []
    if len(line.rates) > 1:
        small.append(f"{len(line.rates)} runs")
    if errors:
        small.append(f"errors {', '.join(errors)}")
    if base is not None and base is not line:
        small.insert(0, f"×{words.times(line.rate / base.rate)}")
    row = ArticleRow(
        line.who,
        f"here {line.contestant}" if line.contestant else "none here",
        " · ".join(words.number(rate) for rate in line.rates),
        "; ".join(small),
    )
    figure = line.today
    if figure is None:
        return row
    if not words.is_shown(figure) or figure.rate is None:
        return replace(row, failed=True)
    return replace(
        row,
        today=words.number(figure.rate.value) + words.mark(figure.verdict),
        today_small=_today_small(line, base, figure),
    )


def _today_small(line: Line, base: Line | None, figure: Figure) -> str:
    small = [words.spread(figure.rate)]
    if base is not None and base is not line and figure.ratio is not None:
        small.insert(0, f"×{words.times(figure.ratio.value)}")
    return " ".join(filter(None, small))


# Longer names leave no room in a plot; there the contestant's here stands for it.
LABEL_MAX = 17
