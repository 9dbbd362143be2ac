"""Plots with one row per contestant on a logarithmic axis, as SVG that stands in the page.

A row has a mark at its value, whiskers over its 95 % interval, and, where a second value belongs
to it (p99 beside p50, the peak beside the loaded memory), a band up to that one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from citius_lab import plot_marks
from citius_lab.markup import Markup, el
from citius_lab.plot_scale import Scale, ends, scale_ends
from citius_lab.report_words import tick

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from citius_lab.statistics import Interval


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a plot.

    Attributes:
        family: Key of ``plot_marks.SHAPES``.
        text: What stands at the end of the row; says why if there is no value.
        firm: Drawn full; hollow otherwise.
        band: From where to where a band goes, of the same axis.
        band_whisker: The interval of the band's end.
        cross: A second value of the row that is somebody else's: a published one.
        group: Rows of different groups have a line between them.
    """

    label: str
    family: str
    text: str
    value: Interval | None = None
    firm: bool = True
    band: tuple[float, float] | None = None
    band_whisker: Interval | None = None
    cross: float | None = None
    group: int | None = None

    def values(self) -> Iterable[float]:
        """Return everything that has to be on the axis, but for ends of intervals."""
        if self.value is not None:
            yield self.value.value
        yield from self.band or ()
        if self.cross is not None:
            yield self.cross


def row_plot(title: str, rows: Sequence[Row], like: Sequence[Row] = ()) -> Markup:
    """Return the drawing with its title; rows of ``like`` are on the axis, but not drawn."""
    everybody = (*rows, *like)
    edges = scale_ends(
        [value for row in everybody for value in row.values()],
        [end for row in everybody for one in (row.value, row.band_whisker) for end in ends(one)],
    )
    caption = el("figcaption", title)
    if not edges:
        return el("figure", caption, el("p", "No figure of this case holds.", class_="dim"))
    left = 12 + max(len(row.label) for row in rows) * LETTER
    right = 10 + max(len(row.text) for row in rows) * LETTER
    width = max(WIDTH, left + right + TRACK)
    scale = Scale.over(edges, left + PAD, width - right - PAD)
    height = TOP + len(rows) * ROW + 4
    parts = [*_grid(scale, height)]
    for number, row in enumerate(rows):
        y = TOP + number * ROW + ROW / 2
        if number and row.group != rows[number - 1].group:
            parts.append(_line("group", left - 6, y - ROW / 2, width, y - ROW / 2))
        parts.append(_row(row, y, scale, left, width))
    said = f"{title}: " + "; ".join(f"{row.label} {row.text}" for row in rows)
    return el(
        "figure",
        caption,
        el("svg", parts, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=said),
    )


def _grid(scale: Scale, height: float) -> Iterable[Markup]:
    for value in scale.ticks():
        x = scale.at(value)
        yield _line("grid", x, TOP - 5, x, height)
        yield el("text", tick(value), class_="tick", x=f"{x:.1f}", y=TOP - 10, text_anchor="middle")


def _row(row: Row, y: float, scale: Scale, left: float, width: float) -> Markup:
    parts = [
        el("text", row.label, x=f"{left - 10:.1f}", y=f"{y + 4:.1f}", text_anchor="end"),
        el(
            "text",
            row.text,
            class_="value",
            x=f"{width - 2:.1f}",
            y=f"{y + 4:.1f}",
            text_anchor="end",
        ),
    ]
    if row.value is not None:
        if row.band is not None and row.band[1] > row.band[0]:
            low, high = (scale.at(end) for end in row.band)
            parts.append(el("rect", class_="band", x=f"{low:.1f}", y=f"{y - 3:.1f}",
                            width=f"{max(high - low, 0.5):.1f}", height=6))  # fmt: skip
            parts.append(_line("stop", high, y - 5.5, high, y + 5.5))
        parts += _whisker(row.band_whisker, y + 7, scale, cap=2)
        parts += _whisker(row.value, y, scale)
        parts.append(plot_marks.mark(row.family, scale.at(row.value.value), y, firm=row.firm))
    if row.cross is not None:
        parts.append(cross(scale.at(row.cross), y))
    return el("g", parts, class_=f"f-{row.family}")


def _whisker(value: Interval | None, y: float, scale: Scale, cap: int = 4) -> list[Markup]:
    if value is None or not value.low or not value.high:
        return []
    low, high = scale.at(value.low), scale.at(value.high)
    d = f"M{low:.1f} {y:.1f}H{high:.1f}"
    # Beyond the axis it has no end.
    for end, x in ((value.low, low), (value.high, high)):
        if scale.holds(end):
            d += f"M{x:.1f} {y - cap:.1f}v{2 * cap}"
    return [el("path", class_="whisker", d=d)]


def cross(x: float, y: float) -> Markup:
    """Return the mark of a published figure."""
    return el("path", class_="cross", d=f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8")


def _line(class_: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    return el("line", class_=class_, x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}")


# As wide as a phone shows without scaling, wider where long names would leave no room for values.
WIDTH = 340
TRACK = 150
TOP = 22
ROW = 22
# Of the plot's 12-pixel letters, on average.
LETTER = 7.2
PAD = 6
