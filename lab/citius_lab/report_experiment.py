"""One experiment: its question, ratios at a glance, every case, and what is kept apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius_lab import report_article, report_case, report_open, report_wires
from citius_lab import report_words as words
from citius_lab.markup import Markup, el
from citius_lab.plot import row_plot
from citius_lab.report_case import cpu_of, per_core_of, rate_of, rows
from citius_lab.report_view import Column, Notes, badge, figures_table, folded, plots, wide

if TYPE_CHECKING:
    from citius_lab.figures import Figure, Section
    from citius_lab.report_view import View


def html(view: View, experiment: dict[str, Any]) -> Markup | None:
    """Return an experiment's section, ``None`` if nothing of it was measured."""
    sections = view.sections(experiment["name"])
    if not sections:
        return None
    parts: list[Markup | None] = [report_wires.html(view, experiment)]
    closed = [one for one in sections if not one.is_pipelined and not report_open.is_open(one)]
    for section in closed:
        parts.append(_series(view, section))
    parts.append(_per_core(view, closed))
    parts.append(report_open.html(view, sections))
    pipelined = [one for one in sections if one.is_pipelined]
    parts += [_pipelined(view, one) for one in pipelined]
    article = experiment["article"]
    if article is not None:
        apart = {str(one.series["id"]) for one in pipelined}
        parts.append(report_article.html(view, experiment, apart))
    return el(
        "section",
        el("h2", experiment["title"], " ", el("code", experiment["name"])),
        el("p", experiment["question"], class_="lead"),
        _noise(view, experiment["name"]),
        parts,
        id=experiment["name"],
        class_="experiment",
    )


def _noise(view: View, experiment: str) -> Markup:
    margin = view.analysis.margin(f"{experiment}/")
    found = [one for one in view.analysis.noise if one.section.startswith(f"{experiment}/")]
    lines = [words.noise(one) for one in found] or ["The noise floor was not measured."]
    if (why := view.analysis.too_noisy(f"{experiment}/")) is not None:
        lines.append(why)
    return el("p", " ".join(f"{line}." for line in lines).replace("..", "."),
              f" Ties are within {words.percent(margin)}.", class_="noise")  # fmt: skip


def _series(view: View, section: Section) -> Markup:
    cases = view.analysis.cases(section.id)
    origin = "The article's own protocol." if section.series["is_article"] else None
    if origin is None and _has_article(view, section):
        origin = "Not in the article: the lab adds it."
    return el(
        "section",
        el("h3", section.title),
        el("p", " ".join(filter(None, (_load(section), origin)))),
        _overview(view, section) if len(cases) > 1 else None,
        [report_case.closed(view, section, case) for case in cases],
        commands(view, section),
        class_="series",
    )


def _load(section: Section) -> str:
    """Return the load in words, where the heading does not say it."""
    text = str(section.series["load_text"])
    return "" if text == section.title else f"{text}."


def _has_article(view: View, section: Section) -> bool:
    experiments = view.results.run["experiments"]
    return any(one["name"] == section.experiment and one["article"] for one in experiments)


def commands(view: View, section: Section) -> Markup:
    """Return the words of the load generator, one line per case."""
    lines: dict[str, str] = {}
    for record in view.results.of_kind("measurement"):
        if f"{record['experiment']}/{record['series']}" == section.id and record.get("command"):
            lines.setdefault(record["case"], " ".join(record["command"]))
    note = "The first of each case; records.jsonl has that of every measurement."
    items = [el("code", line) for line in lines.values()]
    return folded("Commands of the load generator", el("p", note), items)


# --- ratios at a glance ---------------------------------------------------------------------------


def _overview(view: View, section: Section) -> Markup | None:
    baseline = view.analysis.baseline_of(section.id)
    if baseline is None:
        return None
    names = view.analysis.present(section.id)
    head = el("tr", el("th", "case"), [el("th", name) for name in names])
    body: list[Markup] = []
    for case in view.analysis.cases(section.id):
        cells = [_ratio_cell(view.figure(section.id, case, name), baseline) for name in names]
        body.append(el("tr", el("th", case, scope="row"), cells))
    return el(
        "div",
        el("p", f"Requests per second, times {baseline}'s on the same case; below, the 95 % "
           "interval. Bold: in the fastest group. ≈: equal within the margin. ~: not decided. ?: suspect."),
        wide(el("table", el("thead", head), el("tbody", body), class_="matrix")),
    )  # fmt: skip


def _ratio_cell(figure: Figure | None, baseline: str) -> Markup:
    if figure is None:
        return el("td")
    if not words.is_shown(figure):
        return el("td", "failed", class_="failed")
    if figure.ratio is None and figure.contestant != baseline:
        return el("td", "–")
    small = None if figure.ratio is None else [el("br"), el("small", words.span(figure.ratio))]
    class_ = " ".join(
        name for name, holds in (("leads", figure.leads), ("tie", figure.is_tie)) if holds
    )
    return el("td", words.ratio(figure) + words.mark(figure), small, class_=class_ or None)


# --- one worker and several -----------------------------------------------------------------------


def _per_core(view: View, sections: list[Section]) -> Markup | None:
    """Compare what a core-second buys at different numbers of workers, where they were measured."""
    if len({section.series["workers"] for section in sections}) < 2:
        return None
    parts: list[Markup] = []
    shared = [set(view.analysis.cases(one.id)) for one in sections]
    for case in view.analysis.cases(sections[0].id):
        if not all(case in cases for cases in shared):
            continue
        drawn = [
            rows(view, view.ranked(section.id, case), per_core_of, words.brief)
            for section in sections
        ]
        everybody = [row for own in drawn for row in own]
        figures = [
            row_plot(f"Requests per core-second, {section.title}", own, everybody)
            for section, own in zip(sections, drawn, strict=True)
        ]
        parts.append(el("article", el("header", el("h4", case)), plots(figures)))
    intro = (
        "What one second of server CPU buys, at each number of workers: the figure that compares "
        "a process with many threads and a process with one. Both plots have one scale."
    )
    return el(
        "section", el("h3", "Requests per core-second"), el("p", intro), parts, class_="series"
    )


# --- pipelined, kept apart ------------------------------------------------------------------------


def _pipelined(view: View, section: Section) -> Markup:
    beside = f"{section.experiment}/{section.series['beside']}"
    intro = (
        "It shows how much of a small request is system calls. No browser does it and it is "
        "nobody's capacity, so it stands apart, next to the same case on the same connections "
        "unpipelined; both on one scale."
    )
    return el(
        "section",
        el("h3", "Kept apart: ", section.title),
        el("p", f"{section.series['load_text']}. {intro}"),
        [_pair(view, section, beside, case) for case in view.analysis.cases(section.id)],
        commands(view, section),
        class_="series apart",
    )


def _pair(view: View, section: Section, beside: str, case: str) -> Markup:
    own = view.ranked(section.id, case)
    plain = [
        figure for one in own if (figure := view.figure(beside, case, one.contestant)) is not None
    ]
    by_name = {figure.contestant: figure for figure in plain}
    drawn: list[Markup] = []
    for title, value, write in (
        ("Requests per second", rate_of, words.brief),
        ("CPU µs/request", cpu_of, words.micros),
    ):
        single, many = rows(view, plain, value, write), rows(view, own, value, write)
        if single:
            drawn.append(row_plot(f"{title}: unpipelined", single, many))
        drawn.append(row_plot(f"{title}: pipelined", many, single))
    notes = Notes()

    def unpipelined(figure: Figure) -> object:
        other = by_name.get(figure.contestant)
        return "not measured" if other is None else report_case.rate(other)

    def gain(figure: Figure) -> str:
        other = by_name.get(figure.contestant)
        if other is None or not (words.is_shown(other) and words.is_shown(figure)):
            return ""
        assert figure.rate is not None
        assert other.rate is not None
        return f"×{figure.rate.value / other.rate.value:.1f}"

    columns = [
        Column("unpipelined, requests/s", unpipelined),
        Column("pipelined, requests/s", report_case.rate),
        Column("pipelining gives", gain),
        Column("CPU µs/request, pipelined", report_case.cpu),
        Column("p50 ms, each request", lambda figure: report_case.percentile(figure, "p50")),
        Column("p99 ms, each request", lambda figure: report_case.percentile(figure, "p99")),
        Column("verdict", lambda figure: badge(figure, notes.letters(figure))),
    ]
    table = figures_table(own, columns)
    load = f"{own[0].connections} connections × {own[0].pipeline} in flight"
    return el("article", el("header", el("h4", case), el("p", load)), plots(drawn), table,
              notes.html())  # fmt: skip
