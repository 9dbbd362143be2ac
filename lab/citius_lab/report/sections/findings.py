"""What a run found, in sentences: who takes how much of the server's CPU time, case by case.

CPU time per request comes first, because it is steady where rates are not. A sentence says no more than
its interval: where that reaches across 1, the two are not told apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.judge.statistics import paired_ratio
from citius_lab.report import words
from citius_lab.report.plots import marks

if TYPE_CHECKING:
    from citius_lab.judge.figures import Figure, Section
    from citius_lab.report.view import View


def findings(view: View) -> list[str]:
    """Return a sentence for each case of each section, in the order of the page."""
    return [
        sentence
        for section in view.analysis.sections
        for case in view.analysis.cases(section.id)
        if (sentence := _finding(view, section, case))
    ]


def _finding(view: View, section: Section, case: str) -> str:
    """Return what a case shows; empty where fewer than two figures have a cost."""
    figures = [one for one in view.ranked(section.id, case) if words.is_shown(one) and one.cpu_us]
    figures.sort(key=_cost)
    if len(figures) < 2:
        return ""
    name = view.analysis.baseline_of(section.id)
    base = next((one for one in figures if one.contestant == name), None)
    least = figures[0]
    place = f"{section.experiment}, {section.title}, {case}"
    said = f"{place}: {least.contestant} takes the least CPU time, {_micros(least)} µs a request"
    if tied := [one.contestant for one in figures[1:] if _is_tied(one, least)]:
        names = ", ".join(tied[:TIED_MAX]) + (" and others" if tied[TIED_MAX:] else "")
        said += f" ({names} not told apart from it)"
    if base is None:
        return f"{said}; {figures[-1].contestant} takes the most, {_micros(figures[-1])} µs."
    if marks.is_own(base.contestant):
        compared = [_compared(one, base) for one in figures if one is not base][:COMPARED_MAX]
    else:
        own = (one for one in figures if marks.is_own(one.contestant))
        others = {one.contestant: one for one in (least, *own) if one is not base}
        compared = [_compared(one, base) for one in others.values()]
    if not compared:
        return f"{said}."
    return f"{said}. Beside {base.contestant} ({_micros(base)} µs): {'; '.join(compared)}."


def _compared(figure: Figure, base: Figure) -> str:
    ratio = figure.cpu_ratio
    doubt = ", suspect" if words.mark(figure.cost_verdict) or words.mark(base.cost_verdict) else ""
    if ratio is None:
        return f"{figure.contestant} {_micros(figure)} µs{doubt}"
    span = words.span(ratio)
    if ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
        return f"{figure.contestant} is not told apart from it (×{words.times(ratio.value)}, {span}{doubt})"
    return f"{figure.contestant} takes ×{words.times(ratio.value)} of it ({span}{doubt})"


def _is_tied(figure: Figure, least: Figure) -> bool:
    """Tell whether the restarts leave open which of the two costs less."""
    ratio = paired_ratio(figure.cpu_by_round, least.cpu_by_round)
    return ratio is None or ratio.low is None or ratio.low <= 1


def _cost(figure: Figure) -> float:
    return figure.cpu_us.value if figure.cpu_us is not None else 0.0


def _micros(figure: Figure) -> str:
    return words.micros(_cost(figure)) + words.mark(figure.cost_verdict)


# Beside a baseline that is Citius, the cheapest of the others.
COMPARED_MAX = 4
# Of those that are not told apart from the cheapest, so many are named.
TIED_MAX = 3
