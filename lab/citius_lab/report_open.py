"""Latency at a rate: over fractions of each contestant's capacity, and at a rate for everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab import report_case
from citius_lab import report_words as words
from citius_lab.figures import VALID
from citius_lab.markup import Markup, el, join
from citius_lab.plot_lines import Line, Point, line_plot
from citius_lab.report_view import Notes, badge, folded, plots, wide

if TYPE_CHECKING:
    from citius_lab.figures import Figure, Section
    from citius_lab.report_view import View
    from citius_lab.statistics import Interval


def is_open(section: Section) -> bool:
    """Tell whether a section's rate was asked for, so that its latency is what it shows."""
    return section.series["load"]["pace"] in ("constant", "poisson")


def html(view: View, sections: list[Section]) -> Markup | None:
    """Return what an experiment measured at given rates, ``None`` without any."""
    parts: list[Markup] = []
    fractions = [one for one in sections if one.series["load"]["fraction"] is not None]
    if fractions:
        fractions.sort(key=lambda one: one.series["load"]["fraction"])
        parts.append(_fractions(view, fractions))
    for section in sections:
        if is_open(section) and section not in fractions:
            parts.append(_rate(view, section))
    return join(parts) if parts else None


def _fractions(view: View, sections: list[Section]) -> Markup:
    cases = list(dict.fromkeys(case for one in sections for case in view.analysis.cases(one.id)))
    pace = sections[0].series["load"]["pace"]
    intro = (
        f"Requests came at a {pace} rate, a share of what the same process did in a closed loop a "
        "moment before. The wait counts from the instant a request was due, so a server that "
        "stalls is not spared the requests it kept from being sent."
    )
    return el(
        "section",
        el("h3", "Latency at fractions of the capacity"),
        el("p", intro),
        [_case(view, sections, case) for case in cases],
        class_="series",
    )


def _case(view: View, sections: list[Section], case: str) -> Markup:
    names = [
        name
        for name in view.analysis.contestants
        if any(view.figure(one.id, case, name) for one in sections)
    ]
    steps = [f"{one.series['load']['fraction']:.0%}" for one in sections]
    drawn = [
        line_plot(f"Latency {name}, ms", steps, _lines(view, sections, case, names, name),
                  "share of the contestant's own capacity")
        for name in ("p50", "p99", "p99.9")
        if any(line.points for line in _lines(view, sections, case, names, name))
    ]  # fmt: skip
    notes = Notes()
    head = el("tr", el("th", "contestant"), [el("th", step) for step in steps])
    body = [
        el("tr", el("th", name, scope="row"), [
            el("td", _cell(view.figure(one.id, case, name), notes, f"{name} at {step}"),
               data_label=step)
            for one, step in zip(sections, steps, strict=True)
        ])
        for name in names
    ]  # fmt: skip
    table = wide(el("table", el("thead", head), el("tbody", body), class_="figures tall"))
    return el(
        "article",
        el("header", el("h4", case), el("p", "Each cell: p50 / p99 in ms, and the rate offered.")),
        plots(drawn),
        table,
        notes.html(),
        _service(view, sections, case, names, steps),
    )


def _lines(
    view: View, sections: list[Section], case: str, names: list[str], percentile: str
) -> list[Line]:
    found: list[Line] = []
    for name in names:
        points: list[Point] = []
        for step, section in enumerate(sections):
            figure = view.figure(section.id, case, name)
            if figure is not None and words.is_shown(figure) and percentile in figure.latency_ms:
                firm = figure.verdict.word == VALID
                points.append(Point(step, figure.latency_ms[percentile], firm))
        found.append(Line(name, view.family(name), tuple(points)))
    return found


def _cell(figure: Figure | None, notes: Notes, place: str) -> object:
    if figure is None:
        return ""
    letters = notes.letters(figure, place)
    if not words.is_shown(figure):
        return badge(figure, letters)
    offered = "" if figure.offered_per_s is None else f"{words.brief(figure.offered_per_s)}/s"
    return [_pair(figure.latency_ms), el("sup", letters), el("br"), el("small", offered)]


def _pair(values: dict[str, Interval]) -> str:
    found = [words.millis(values[name].value) for name in ("p50", "p99") if name in values]
    return " / ".join(found)


def _service(
    view: View, sections: list[Section], case: str, names: list[str], steps: list[str]
) -> Markup:
    """Return the same from the actual send: the difference is the wait to be sent."""
    head = el("tr", el("th", "contestant"), [el("th", step) for step in steps])
    body: list[Markup] = []
    for name in names:
        cells: list[Markup] = []
        for section, step in zip(sections, steps, strict=True):
            figure = view.figure(section.id, case, name)
            text = "" if figure is None or not words.is_shown(figure) else _pair(figure.service_ms)
            lag = None if figure is None else figure.lag_p99_ms
            small = [] if lag is None else [el("br"), el("small", f"lag {words.millis(lag)}")]
            cells.append(el("td", text, small, data_label=step))
        body.append(el("tr", el("th", name, scope="row"), cells))
    table = el("table", el("thead", head), el("tbody", body), class_="figures tall")
    note = "p50 / p99 in ms from the actual send; lag is the generator's own, p99 in ms."
    return folded("From the actual send, and the generator's lag", el("p", note), wide(table))


def _rate(view: View, section: Section) -> Markup:
    return el(
        "section",
        el("h3", section.title),
        el("p", f"{section.series['load_text']}. The rate is what was asked for, no capacity."),
        [report_case.paced(view, section, case) for case in view.analysis.cases(section.id)],
        class_="series",
    )
