"""Latency at a rate: over fractions of each contestant's capacity, and at one rate for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from citius_lab.judge.figures import VALID
from citius_lab.report import words
from citius_lab.report.plots.lines import Line, Point, line_plot
from citius_lab.report.sections import case as report_case
from citius_lab.report.view import Cell, FiguresTable, Notes, TableRow, badge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius_lab.judge.figures import Figure, Section
    from citius_lab.judge.statistics import Interval
    from citius_lab.report.plots.lines import LinePlot
    from citius_lab.report.sections.case import Case
    from citius_lab.report.view import Note, View


def is_open(section: Section) -> bool:
    """Tell whether a section's rate was asked for, so that its latency is what it shows."""
    return section.series["load"]["pace"] in ("constant", "poisson")


@dataclass(frozen=True, slots=True)
class FractionsCase:
    """One case at each of the fractions; ``service`` is the same from the actual send."""

    name: str
    plots: tuple[LinePlot, ...]
    table: FiguresTable
    notes: tuple[Note, ...]
    service: FiguresTable


@dataclass(frozen=True, slots=True)
class Fractions:
    """Latency over fractions of each contestant's capacity."""

    pace: str
    cases: tuple[FractionsCase, ...]

    kind: ClassVar[str] = "fractions"


@dataclass(frozen=True, slots=True)
class Rate:
    """Latency at one rate for all contestants."""

    title: str
    load_text: str
    cases: tuple[Case, ...]

    kind: ClassVar[str] = "rate"


def parts(view: View, sections: list[Section]) -> Iterable[Fractions | Rate]:
    """Return what an experiment measured at given rates."""
    fractions = [one for one in sections if one.series["load"]["fraction"] is not None]
    if fractions:
        fractions.sort(key=lambda one: one.series["load"]["fraction"])
        yield _fractions(view, fractions)
    for section in sections:
        if is_open(section) and section not in fractions:
            cases = [
                report_case.paced(view, section, case) for case in view.analysis.cases(section.id)
            ]
            yield Rate(section.title, section.series["load_text"], tuple(cases))


def _fractions(view: View, sections: list[Section]) -> Fractions:
    cases = list(dict.fromkeys(case for one in sections for case in view.analysis.cases(one.id)))
    pace = sections[0].series["load"]["pace"]
    return Fractions(pace, tuple(_case(view, sections, case) for case in cases))


def _case(view: View, sections: list[Section], case: str) -> FractionsCase:
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
    rows: list[TableRow] = []
    service: list[TableRow] = []
    for name in names:
        figures = [view.figure(one.id, case, name) for one in sections]
        placed = zip(figures, steps, strict=True)
        cells = [_cell(figure, notes, f"{name} at {step}") for figure, step in placed]
        rows.append(TableRow(name, tuple(cells)))
        service.append(TableRow(name, tuple(map(_service_cell, figures))))
    return FractionsCase(
        case,
        tuple(drawn),
        FiguresTable(tuple(steps), tuple(rows)),
        tuple(notes.found()),
        FiguresTable(tuple(steps), tuple(service)),
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


def _cell(figure: Figure | None, notes: Notes, place: str) -> Cell:
    if figure is None:
        return Cell()
    letters = notes.letters(figure, place)
    if not words.is_shown(figure):
        return badge(figure.verdict, letters)
    offered = "" if figure.offered_per_s is None else f"{words.brief(figure.offered_per_s)}/s"
    return Cell(_pair(figure.latency_ms), offered, letters, below=True)


def _pair(values: dict[str, Interval]) -> str:
    found = [words.millis(values[name].value) for name in ("p50", "p99") if name in values]
    return " / ".join(found)


def _service_cell(figure: Figure | None) -> Cell:
    """Return the wait from the actual send: the difference is the wait to be sent."""
    text = "" if figure is None or not words.is_shown(figure) else _pair(figure.service_ms)
    lag = None if figure is None else figure.lag_p99_ms
    return Cell(text, "" if lag is None else f"lag {words.millis(lag)}", below=True)
