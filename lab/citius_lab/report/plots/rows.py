"""Plots with one row per contestant on a logarithmic axis, as SVG that stands in the page.

A row has a mark at its value, whiskers over its 95 % interval, and, where a second value belongs
to it (p99 beside p50, the peak beside the loaded memory), a band up to that one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from citius_lab.report.plots import marks
from citius_lab.report.plots.scale import Scale, ends, scale_ends
from citius_lab.report.words import tick

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from citius_lab.judge.statistics import Interval
    from citius_lab.report.plots.marks import Mark


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a plot.

    Attributes:
        family: Key of ``plot_marks.SHAPES``.
        text: What stands at the end of the row; says why if there is no value.
        firm: Drawn full; hollow otherwise.
        band: From where to where a band goes, of the same axis.
        band_whisker: The interval of the band's end.
        cross: A second value of the row from another source: a published one.
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


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """A row with its places.

    Attributes:
        whiskers: Paths of SVG.
        band: Left end and width of the band.
        divided: Whether a line parts it from the row above.
    """

    label: str
    text: str
    family: str
    y: float
    divided: bool
    mark: Mark | None
    band: tuple[float, float] | None
    whiskers: tuple[str, ...]
    cross: float | None


@dataclass(frozen=True, slots=True)
class RowPlot:
    """A drawing for ``templates/plots.html``; without rows it says that there is nothing to draw.

    Attributes:
        said: What it shows, for readers who do not see it.
        left: Where the names end.
        grid: Places and labels of the axis.
    """

    title: str
    said: str = ""
    width: float = 0.0
    height: float = 0.0
    left: float = 0.0
    grid: tuple[tuple[float, str], ...] = ()
    rows: tuple[DrawnRow, ...] = ()

    kind: ClassVar[str] = "rows"


def row_plot(title: str, rows: Sequence[Row], like: Sequence[Row] = ()) -> RowPlot:
    """Return the drawing with its title; rows of ``like`` are on the axis, but not drawn."""
    drawn_rows = (*rows, *like)
    edges = scale_ends(
        [value for row in drawn_rows for value in row.values()],
        [end for row in drawn_rows for one in (row.value, row.band_whisker) for end in ends(one)],
    )
    if not edges:
        return RowPlot(title)
    left = 12 + max(len(row.label) for row in rows) * LETTER
    right = 10 + max(len(row.text) for row in rows) * LETTER
    width = max(WIDTH, left + right + TRACK)
    scale = Scale.over(edges, left + PAD, width - right - PAD)
    drawn = [
        _row(row, scale, TOP + number * ROW + ROW / 2,
             divided=bool(number) and row.group != rows[number - 1].group)
        for number, row in enumerate(rows)
    ]  # fmt: skip
    return RowPlot(
        title,
        f"{title}: " + "; ".join(f"{row.label} {row.text}" for row in rows),
        width,
        TOP + len(rows) * ROW + 4,
        left,
        tuple((scale.at(value), tick(value)) for value in scale.ticks()),
        tuple(drawn),
    )


def _row(row: Row, scale: Scale, y: float, *, divided: bool) -> DrawnRow:
    mark = band = None
    whiskers: list[str] = []
    if row.value is not None:
        if row.band is not None and row.band[1] > row.band[0]:
            low, high = (scale.at(end) for end in row.band)
            band = low, high
        whiskers += _whisker(row.band_whisker, y + 7, scale, cap=2)
        whiskers += _whisker(row.value, y, scale)
        mark = marks.mark(row.family, scale.at(row.value.value), y, firm=row.firm)
    cross = None if row.cross is None else scale.at(row.cross)
    return DrawnRow(row.label, row.text, row.family, y, divided, mark, band, tuple(whiskers), cross)


def _whisker(value: Interval | None, y: float, scale: Scale, cap: int = 4) -> Iterable[str]:
    if value is None or not value.low or not value.high:
        return
    low, high = scale.at(value.low), scale.at(value.high)
    d = f"M{low:.1f} {y:.1f}H{high:.1f}"
    # Beyond the axis it has no end.
    for end, x in ((value.low, low), (value.high, high)):
        if scale.holds(end):
            d += f"M{x:.1f} {y - cap:.1f}v{2 * cap}"
    yield d


# As wide as a phone shows without scaling, wider where long names would leave no room for values.
WIDTH = 340
TRACK = 150
# Of the axis and of one row; templates/plots.html draws with the same.
TOP = 22
ROW = 22
# Of the plot's 12-pixel letters, on average.
LETTER = 7.2
PAD = 6
