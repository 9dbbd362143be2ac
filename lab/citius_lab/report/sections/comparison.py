"""Two runs side by side as a page: every figure's ratio with its interval, drawn."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup

from citius_lab.judge import compare
from citius_lab.judge.compare import Change
from citius_lab.judge.statistics import Interval
from citius_lab.report import words
from citius_lab.report.plots import marks
from citius_lab.report.plots.rows import Row, row_plot
from citius_lab.report.render import render

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from citius_lab.judge.compare import Difference
    from citius_lab.record import Results
    from citius_lab.report.plots.rows import RowPlot


def html(
    first: Results, second: Results, found: Sequence[Difference], names: tuple[str, str]
) -> str:
    """Return the page; ``names`` are what the two runs are called on it."""
    families = {
        one["name"]: marks.family(one)
        for one in (*first.run["contestants"], *second.run["contestants"])
    }
    style = resources.files("citius_lab.report").joinpath("report.css").read_text(encoding="utf-8")
    shown = sorted(set(families.values()))
    return render(
        "compare.html",
        style=Markup(style),  # the lab's own file, not data
        first=names[0],
        second=names[1],
        origins=[words.origin(one.run) for one in (first, second)],
        conclusions=compare.conclusions(found),
        left_out=compare.left_out(found),
        legend=marks.legend(shown),
        plots=[plot for what in WHAT for plot in _plots(found, families, what)],
    )


def _plots(
    found: Sequence[Difference], families: Mapping[str, str], what: What
) -> list[tuple[str, RowPlot]]:
    """Return a drawing of a quantity for each section."""
    sections: dict[str, list[Row]] = {}
    for one in found:
        change = what.change(one)
        if change.ratio is None:
            continue
        section, case, contestant = one.key
        text = f"×{words.times(change.ratio.value)} {change.verdict}".strip()
        firm = change.verdict != compare.UNDECIDED
        label = f"{contestant} {case}"
        family = families.get(contestant, "other")
        sections.setdefault(section, []).append(
            Row(label, family, text, change.ratio, firm, cross=1.0)
        )
    return [
        (f"{section}: {what.title}", row_plot(f"{section}: {what.title}", rows))
        for section, rows in sections.items()
    ]


@dataclass(frozen=True, slots=True)
class What:
    """A quantity that is drawn."""

    title: str
    change: Callable[[Difference], Change]


def _count(one: Difference) -> Change:
    if one.count_ratio is None:
        return compare.NO_CHANGE
    verdict = compare.SAME if one.has_same_count else ""
    return Change(Interval(one.count_ratio, None, None), verdict)


WHAT = (
    What(
        "CPU time per request beside the baseline's, the second over the first",
        lambda one: one.beside_baseline,
    ),
    What("CPU time per request, the second over the first", lambda one: one.cpu),
    What("requests/s, the second over the first", lambda one: one.rate),
    What("instructions per request, the second over the first", _count),
)
