"""Two runs side by side as a page: every figure's ratio with its interval, drawn."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup

from citius_lab import compare, plot_marks
from citius_lab import report_words as words
from citius_lab.plot import Row, row_plot
from citius_lab.render import render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from citius_lab.compare import Difference
    from citius_lab.plot import RowPlot
    from citius_lab.record import Results


def html(
    first: Results, second: Results, found: Sequence[Difference], names: tuple[str, str]
) -> str:
    """Return the page; ``names`` are what the two runs are called on it."""
    families = {
        one["name"]: plot_marks.family(one)
        for one in (*first.run["contestants"], *second.run["contestants"])
    }
    same, decided = compare.reproduced(found)
    style = resources.files("citius_lab").joinpath("report.css").read_text(encoding="utf-8")
    shown = sorted(set(families.values()))
    return render(
        "compare.html",
        style=Markup(style),  # the lab's own file, not data
        first=names[0],
        second=names[1],
        same=same,
        decided=decided,
        undecided=sum(one.verdict == compare.UNDECIDED for one in found),
        left_out=[one for one in found if one.ratio is None],
        legend=plot_marks.legend(shown),
        plots=[plot for what in WHAT for plot in _plots(found, families, what)],
    )


def _plots(
    found: Sequence[Difference], families: Mapping[str, str], what: str
) -> list[tuple[str, RowPlot]]:
    """Return a drawing for each section: of rates, or of CPU time per request."""
    sections: dict[str, list[Row]] = {}
    for one in found:
        ratio = one.ratio if what == RATE else one.cpu_ratio
        if ratio is None:
            continue
        section, case, contestant = one.key
        text = f"×{words.times(ratio.value)} {one.verdict if what == RATE else ''}".strip()
        firm = one.verdict != compare.UNDECIDED
        label = f"{contestant} {case}"
        family = families.get(contestant, "other")
        sections.setdefault(section, []).append(Row(label, family, text, ratio, firm, cross=1.0))
    return [
        (f"{section}: {what}", row_plot(f"{section}: {what}", rows))
        for section, rows in sections.items()
    ]


RATE = "requests/s, the second over the first"
WHAT = (RATE, "CPU time per request, the second over the first")
