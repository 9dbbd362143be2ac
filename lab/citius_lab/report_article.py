"""An article's published figures beside today's, and what its protocol does not tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from citius_lab import report_words as words
from citius_lab.figures import VALID
from citius_lab.markup import Markup, el
from citius_lab.plot import Row, row_plot
from citius_lab.report_view import plots, wide
from citius_lab.statistics import geometric_mean

if TYPE_CHECKING:
    from citius_lab.figures import Figure
    from citius_lab.report_view import View


@dataclass(frozen=True, slots=True)
class Line:
    """What an article says of one contestant on one case: one rate, or those of several runs.

    Attributes:
        today: The same here, ``None`` if nobody comes close or it was not measured.
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


def html(view: View, experiment: dict[str, Any], pipelined: set[str]) -> Markup:
    """Return the article's part; what it published of ``pipelined`` series says so."""
    article = experiment["article"]
    found = lines(view, experiment)
    parts: list[Markup] = []
    for series, case in dict.fromkeys((line.series, line.case) for line in found):
        own = [line for line in found if (line.series, line.case) == (series, case)]
        parts.append(_case(view, experiment, own, series in pipelined))
    return el(
        "section",
        el("h3", "What the article published, beside today's"),
        el("p", f"“{article['title']}” (article {article['id']})."),
        el("dl", el("dt", "its machine"), el("dd", article["machine"]),
           el("dt", "its command"), el("dd", el("code", article["tool"])), class_="pairs"),
        el("p", "The machines differ, so rates say little beside each other; compare who is how "
           "many times whom.") if parts else None,
        plots(parts) if parts else None,
        _items("It says besides", article["other"]),
        _items("What its protocol hides", article["hides"]),
        class_="series article",
        id=f"{experiment['name']}-article",
    )  # fmt: skip


def _items(title: str, sentences: list[str]) -> list[Markup]:
    if not sentences:
        return []
    return [el("h4", title), el("ul", [el("li", sentence) for sentence in sentences])]


def _case(view: View, experiment: dict[str, Any], own: list[Line], pipelined: bool) -> Markup:
    baseline = view.analysis.baselines.get(experiment["name"])
    base = next((line for line in own if line.contestant == baseline), None)
    title = own[0].case + (", pipelined" if pipelined else "")
    head = el("tr", [el("th", text) for text in ("", "then", "today")])
    rows = [_row(line, base) for line in own]
    note = "" if base is None else f" Small: times {base.who} then, times {base.contestant} today."
    return el(
        "article",
        row_plot(f"{title}, requests/s; ×: published", [_plot(view, one) for one in own]),
        wide(el("table", el("thead", head), el("tbody", rows), class_="published")),
        el("p", el("small", note.strip())) if note else None,
    )


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


def _row(line: Line, base: Line | None) -> Markup:
    runs = " · ".join(words.number(rate) for rate in line.rates)
    errors = [f"{share:.1%}" for share in line.shares if share]
    small = [", ".join(line.notes)] if line.notes else []
    if len(line.rates) > 1:
        small.append(f"{len(line.rates)} runs")
    if errors:
        small.append(f"errors {', '.join(errors)}")
    then = [runs]
    if base is not None and base is not line:
        small.insert(0, f"×{words.times(line.rate / base.rate)}")
    here = f"here {line.contestant}" if line.contestant else "nobody here"
    return el(
        "tr",
        el("th", line.who, el("br"), el("small", here), scope="row"),
        el("td", then, el("br"), el("small", "; ".join(small))),
        el("td", _today(line, base)),
    )


def _today(line: Line, base: Line | None) -> list[object]:
    figure = line.today
    if figure is None:
        return ["not measured"]
    if not words.is_shown(figure) or figure.rate is None:
        return [el("span", "failed", class_="failed")]
    small = [words.spread(figure.rate)]
    if base is not None and base is not line and figure.ratio is not None:
        small.insert(0, f"×{words.times(figure.ratio.value)}")
    text = words.number(figure.rate.value) + words.mark(figure)
    return [text, el("br"), el("small", " ".join(filter(None, small)))]


# Longer names leave no room in a plot; there the contestant's here stands for it.
LABEL_MAX = 17
