"""What an experiment found, in one table: for each case who takes the least of the server's CPU time.

CPU time per request varies less than rates. The contestants whose intervals do not tell them apart from the
cheapest are listed in its row; a case that is too noisy to rank lists none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from citius_lab.judge.statistics import paired_ratio
from citius_lab.report import words
from citius_lab.report.sections.case import cpu
from citius_lab.report.view import Cell, as_cell, badge

if TYPE_CHECKING:
    from citius_lab.judge.figures import Figure, Section
    from citius_lab.report.view import View


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One case.

    Attributes:
        least: The least CPU time per request, in µs.
        by: Who takes it, and below who is not told apart from it.
        times: How many times the baseline's that is, with its interval.
    """

    case: str
    series: str
    least: Cell
    by: Cell
    times: Cell
    verdict: Cell


@dataclass(frozen=True, slots=True)
class Summary:
    """A row for each case of each series; ``baseline`` is empty where the experiment has none."""

    baseline: str
    rows: tuple[SummaryRow, ...]


def summary(view: View, sections: list[Section]) -> Summary | None:
    """Return the table of an experiment; ``None`` where no case can be compared."""
    baseline = view.analysis.baseline_of(sections[0].id) or "" if sections else ""
    rows = [
        row
        for section in sections
        for case in view.analysis.cases(section.id)
        if (row := _row(view, section, case, baseline)) is not None
    ]
    return Summary(baseline, tuple(rows)) if any(row.least.text for row in rows) else None


def _row(view: View, section: Section, case: str, baseline: str) -> SummaryRow | None:
    figures = [one for one in view.ranked(section.id, case) if words.is_shown(one) and one.cpu_us]
    figures.sort(key=_cost)
    if len(figures) < 2:
        return None
    if view.analysis.too_noisy(section.id, case) is not None:
        return SummaryRow(case, section.title, Cell(), Cell("too noisy to rank"), Cell(), Cell())
    least = figures[0]
    tied = [one.contestant for one in figures[1:] if _is_tied(one, least)]
    others = ", ".join(tied[:TIED_MAX]) + (" and others" if tied[TIED_MAX:] else "")
    return SummaryRow(
        case,
        section.title,
        as_cell(cpu(least)),
        Cell(least.contestant, f"not told apart: {others}" if others else "", below=True),
        _times(least, baseline),
        badge(least.cost_verdict),
    )


def _times(least: Figure, baseline: str) -> Cell:
    if least.contestant == baseline:
        return Cell("1")
    if least.cpu_ratio is None:
        return Cell("–")
    return Cell(words.times(least.cpu_ratio.value), words.span(least.cpu_ratio))


def _is_tied(figure: Figure, least: Figure) -> bool:
    """Tell whether the restarts leave open which of the two costs less."""
    ratio = paired_ratio(figure.cpu_by_round, least.cpu_by_round)
    return ratio is None or ratio.low is None or ratio.low <= 1


def _cost(figure: Figure) -> float:
    return figure.cpu_us.value if figure.cpu_us is not None else 0.0


# Of those that are not told apart from the cheapest, so many are named.
TIED_MAX = 3
