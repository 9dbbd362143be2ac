"""One experiment: its question, ratios at a glance, every case, and what is kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from citius_lab.judge.figures import VALID
from citius_lab.judge.statistics import Interval, geometric_mean
from citius_lab.report import words
from citius_lab.report.plots.rows import Row, row_plot
from citius_lab.report.sections import article, open_loop, outside, wires
from citius_lab.report.sections import case as report_case
from citius_lab.report.sections.case import cpu_of, per_core_of, rate_of, rows
from citius_lab.report.sections.summary import summary
from citius_lab.report.view import Cell, Column, Notes, badge, figures_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius_lab.judge.figures import Figure, Section
    from citius_lab.report.plots.rows import RowPlot
    from citius_lab.report.sections.case import Case
    from citius_lab.report.sections.summary import Summary
    from citius_lab.report.view import FiguresTable, Note, View


@dataclass(frozen=True, slots=True)
class ExperimentSection:
    """What the page shows of an experiment.

    Attributes:
        picture: What a request costs beside the baseline, over all cases; ``None`` without a baseline.
        summary: The cheapest of each case; ``None`` where nothing can be compared.
        noise: Its noise floors and its margin of ties, in words.
        parts: Each has a ``kind``, which is the name of its template in ``templates/parts``.
    """

    name: str
    title: str
    question: str
    picture: RowPlot | None
    picture_says: str
    summary: Summary | None
    noise: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """Ratios at a glance: a row per case, a column per contestant.

    Attributes:
        what: Of which quantity.
    """

    what: str
    baseline: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True, slots=True)
class Series:
    """The cases of one series."""

    title: str
    text: str
    overviews: tuple[Overview, ...]
    cases: tuple[Case, ...]
    commands: tuple[str, ...]

    kind: ClassVar[str] = "series"


@dataclass(frozen=True, slots=True)
class PerCore:
    """What a core-second buys at different numbers of workers."""

    cases: tuple[tuple[str, tuple[RowPlot, ...]], ...]

    kind: ClassVar[str] = "per_core"


@dataclass(frozen=True, slots=True)
class PipelinedCase:
    """One case, pipelined and not."""

    name: str
    about: str
    plots: tuple[RowPlot, ...]
    table: FiguresTable
    notes: tuple[Note, ...]
    uncounted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipelined:
    """A pipelined series beside the same connections unpipelined."""

    title: str
    load_text: str
    cases: tuple[PipelinedCase, ...]
    commands: tuple[str, ...]

    kind: ClassVar[str] = "pipelined"


class Part(Protocol):
    """A part of the section: a dataclass and the name of the template that shows it."""

    kind: ClassVar[str]


def section(view: View, experiment: dict[str, Any]) -> ExperimentSection | None:
    """Return an experiment's section, ``None`` if nothing of it was measured."""
    sections = view.sections(experiment["name"])
    if not sections:
        return None
    parts: list[Part | None] = [wires.part(view, experiment)]
    closed = [one for one in sections if not one.is_pipelined and not open_loop.is_open(one)]
    parts += [_series(view, one) for one in closed]
    parts.append(_per_core(view, closed))
    parts += open_loop.parts(view, sections)
    pipelined = [one for one in sections if one.is_pipelined]
    parts += [_pipelined(view, one) for one in pipelined]
    parts.append(outside.part(view, experiment["name"]))
    if experiment["article"] is not None:
        apart = {str(one.series["id"]) for one in pipelined}
        parts.append(article.part(view, experiment, apart))
    return ExperimentSection(
        experiment["name"],
        experiment["title"],
        experiment["question"],
        _picture(view, sections),
        PICTURE_SAYS,
        summary(view, [one for one in sections if not one.is_pipelined]),
        _noise(view, experiment["name"]),
        tuple(part for part in parts if part is not None),
    )


def _picture(view: View, sections: list[Section]) -> RowPlot | None:
    """Draw the CPU time per request of each contestant, as a multiple of the baseline's."""
    baseline = view.analysis.baseline_of(sections[0].id)
    if baseline is None:
        return None
    found: list[Row] = []
    for name in view.analysis.contestants:
        own = [
            figure
            for section in sections
            for case in view.analysis.cases(section.id)
            if (figure := view.figure(section.id, case, name)) is not None
            and (figure.cpu_ratio is not None or (name == baseline and figure.cpu_us is not None))
            and words.is_shown(figure)
        ]
        if own:
            found.append(_picture_row(view, name, own))
    if view.analysis.too_noisy(sections[0].id) is None:
        found.sort(key=lambda row: row.value.value if row.value is not None else 0.0)
    return row_plot(f"CPU time per request, × {baseline}", found) if len(found) > 1 else None


def _picture_row(view: View, name: str, own: list[Figure]) -> Row:
    ratios = [1.0 if one.cpu_ratio is None else one.cpu_ratio.value for one in own]
    mean = geometric_mean(ratios)
    firm = all(one.cost_verdict.word == VALID for one in own)
    many = f", {len(own)} cases" if len(own) > 1 else ""
    text = f"×{words.times(mean)}{'' if firm else '?'}{many}"
    band = (min(ratios), max(ratios)) if len(own) > 1 else None
    interval = Interval(mean, None, None) if len(own) > 1 else own[0].cpu_ratio
    return Row(name, view.family(name), text, interval or Interval(mean, None, None), firm, band)


def _noise(view: View, experiment: str) -> str:
    margin = view.analysis.margin(f"{experiment}/")
    found = [one for one in view.analysis.noise if one.section.startswith(f"{experiment}/")]
    lines = [words.noise(one) for one in found] or ["The noise floor was not measured."]
    said = " ".join(f"{line}." for line in lines).replace("..", ".")
    return f"{said} Ties are within {words.percent(margin)}."


def _series(view: View, section: Section) -> Series:
    cases = view.analysis.cases(section.id)
    origin = "The article's own protocol." if section.series["is_article"] else None
    if origin is None and _has_article(view, section):
        origin = "Not in the article: the lab adds it."
    return Series(
        section.title,
        " ".join(filter(None, (_load(section), origin))),
        _overviews(view, section) if len(cases) > 1 else (),
        tuple(report_case.closed(view, section, case) for case in cases),
        commands(view, section),
    )


def _load(section: Section) -> str:
    """Return the load in words, where the heading does not say it."""
    text = str(section.series["load_text"])
    return "" if text == section.title else f"{text}."


def _has_article(view: View, section: Section) -> bool:
    experiments = view.results.run["experiments"]
    return any(one["name"] == section.experiment and one["article"] for one in experiments)


def commands(view: View, section: Section) -> tuple[str, ...]:
    """Return the words of the load generator, one line per case."""
    lines: dict[str, str] = {}
    for record in view.results.of_kind("measurement"):
        if f"{record['experiment']}/{record['series']}" == section.id and record.get("command"):
            lines.setdefault(record["case"], " ".join(record["command"]))
    return tuple(lines.values())


# --- ratios at a glance ---------------------------------------------------------------------------


def _overviews(view: View, section: Section) -> tuple[Overview, ...]:
    """Return the ratios of rates and those of costs, those first that are less in doubt."""
    baseline = view.analysis.baseline_of(section.id)
    if baseline is None:
        return ()
    names = tuple(view.analysis.present(section.id))
    cases = view.analysis.cases(section.id)

    def overview(what: str, cell: Callable[[Figure | None, str], Cell]) -> Overview:
        rows = [
            (case, tuple(cell(view.figure(section.id, case, name), baseline) for name in names))
            for case in cases
        ]
        return Overview(what, baseline, names, tuple(rows))

    rates, costs = overview(RATES, _ratio_cell), overview(COSTS, _cost_cell)
    return (costs, rates) if view.costs_lead(section.id) else (rates, costs)


def _cost_cell(figure: Figure | None, baseline: str) -> Cell:
    if figure is None:
        return Cell()
    if not words.is_shown(figure):
        return Cell("failed", class_="failed")
    if figure.contestant == baseline:
        return Cell("1" + words.mark(figure.cost_verdict))
    if figure.cpu_ratio is None:
        return Cell("–")
    text = words.times(figure.cpu_ratio.value) + words.mark(figure.cost_verdict)
    return Cell(text, words.span(figure.cpu_ratio))


def _ratio_cell(figure: Figure | None, baseline: str) -> Cell:
    if figure is None:
        return Cell()
    if not words.is_shown(figure):
        return Cell("failed", class_="failed")
    if figure.ratio is None and figure.contestant != baseline:
        return Cell("–")
    small = "" if figure.ratio is None else words.span(figure.ratio)
    class_ = " ".join(
        name for name, holds in (("leads", figure.leads), ("tie", figure.is_tie)) if holds
    )
    return Cell(words.ratio(figure) + words.mark(figure.verdict), small, class_=class_)


# --- one worker and several -----------------------------------------------------------------------


def _per_core(view: View, sections: list[Section]) -> PerCore | None:
    """Compare what a core-second buys at different numbers of workers, where they were measured."""
    if len({section.series["workers"] for section in sections}) < 2:
        return None
    parts: list[tuple[str, tuple[RowPlot, ...]]] = []
    shared = [set(view.analysis.cases(one.id)) for one in sections]
    for case in view.analysis.cases(sections[0].id):
        if not all(case in cases for cases in shared):
            continue
        drawn = [
            rows(view, view.ranked(section.id, case), per_core_of, words.brief)
            for section in sections
        ]
        all_rows = [row for own in drawn for row in own]
        figures = [
            row_plot(f"Requests per core-second, {section.title}", own, all_rows)
            for section, own in zip(sections, drawn, strict=True)
        ]
        parts.append((case, tuple(figures)))
    return PerCore(tuple(parts))


# --- pipelined, kept apart ------------------------------------------------------------------------


def _pipelined(view: View, section: Section) -> Pipelined:
    beside = f"{section.experiment}/{section.series['beside']}"
    cases = [_pair(view, section, beside, case) for case in view.analysis.cases(section.id)]
    return Pipelined(
        section.title, section.series["load_text"], tuple(cases), commands(view, section)
    )


def _pair(view: View, section: Section, beside: str, case: str) -> PipelinedCase:
    own = view.ranked(section.id, case)
    plain = [
        figure for one in own if (figure := view.figure(beside, case, one.contestant)) is not None
    ]
    by_name = {figure.contestant: figure for figure in plain}
    drawn: list[RowPlot] = []
    for title, value, write in (
        ("Requests per second", rate_of, words.brief),
        ("CPU µs/request", cpu_of, words.micros),
    ):
        single, many = rows(view, plain, value, write), rows(view, own, value, write)
        if single:
            drawn.append(row_plot(f"{title}: unpipelined", single, many))
        drawn.append(row_plot(f"{title}: pipelined", many, single))
    notes = Notes()

    def unpipelined(figure: Figure) -> Cell | str:
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
        Column("pipelined, requests/s", report_case.rate, report_case.rate_key),
        Column("pipelining gives", gain),
        Column("CPU µs/request, pipelined", report_case.cpu, report_case.cpu_key),
        *report_case.count_columns(own),
        Column("p50 ms, each request", lambda figure: report_case.percentile(figure, "p50")),
        Column("p99 ms, each request", lambda figure: report_case.percentile(figure, "p99")),
        Column("verdict", lambda figure: badge(figure.verdict, notes.letters(figure))),
    ]
    load = f"{own[0].connections} connections × {own[0].pipeline} in flight"
    table = figures_table(own, columns)
    return PipelinedCase(
        case, load, tuple(drawn), table, tuple(notes.found()), report_case.uncounted(own)
    )


RATES = "Requests per second"
COSTS = "CPU time per request"
PICTURE_SAYS = (
    "Geometric mean over the cases that a contestant and the baseline answered; the band reaches from the "
    "case that costs least to the one that costs most. Contestants that answer other cases have another "
    "mean. Hollow: a figure in it is suspect. Every case with its interval is below."
)
