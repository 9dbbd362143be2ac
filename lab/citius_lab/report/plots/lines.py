"""Plots with one line per contestant over a few steps, such as latency over fractions of capacity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from citius_lab.report.plots import marks
from citius_lab.report.plots.scale import Scale, ends, scale_ends
from citius_lab.report.words import tick

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from citius_lab.judge.statistics import Interval
    from citius_lab.report.plots.marks import Mark


@dataclass(frozen=True, slots=True)
class Point:
    """A value at one of the steps.

    Attributes:
        step: Which step, from 0.
        firm: Drawn full; hollow otherwise.
    """

    step: int
    value: Interval
    firm: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """One contestant's points; ``family`` is a key of ``plot_marks.SHAPES``."""

    label: str
    family: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line with its places.

    Attributes:
        path: The line itself, a path of SVG.
        points: The whisker of each point, a path or empty, and its mark.
        end: Where the last point is.
        name_y: Where its name stands.
    """

    label: str
    family: str
    path: str
    points: tuple[tuple[str, Mark], ...]
    end: tuple[float, float]
    name_y: float


@dataclass(frozen=True, slots=True)
class LinePlot:
    """A drawing for ``templates/plots.html``; without lines it says that there is nothing to draw."""

    title: str
    said: str = ""
    x_title: str = ""
    right: float = 0.0
    grid: tuple[tuple[float, str], ...] = ()
    steps: tuple[tuple[float, str], ...] = ()
    lines: tuple[DrawnLine, ...] = ()
    names: tuple[DrawnLine, ...] = ()

    kind: ClassVar[str] = "lines"


def line_plot(title: str, steps: Sequence[str], lines: Sequence[Line], x_title: str) -> LinePlot:
    """Return the drawing with its title."""
    lines = [line for line in lines if line.points]
    points = [point for line in lines for point in line.points]
    values = scale_ends(
        [point.value.value for point in points],
        [end for point in points for end in ends(point.value)],
    )
    if not values:
        return LinePlot(title)
    scale = Scale.over(values, BOTTOM, TOP)
    right = WIDTH - 16 - max(len(line.label) for line in lines) * LETTER
    gap = (right - LEFT) / max(len(steps), 1)
    centres = [LEFT + gap * (number + 0.5) for number in range(len(steps))]
    shift = min(5.0, gap / (len(lines) + 1))
    drawn: list[DrawnLine] = []
    for number, line in enumerate(lines):
        # Side by side, so that whiskers of one step do not cover each other.
        xs = [centre + (number - (len(lines) - 1) / 2) * shift for centre in centres]
        drawn.append(_line(line, xs, scale))
    return LinePlot(
        title,
        f"{title}: " + "; ".join(_said(line, steps) for line in lines),
        x_title,
        right,
        tuple((scale.at(value), tick(value)) for value in scale.ticks()),
        tuple(zip(centres, steps, strict=True)),
        tuple(drawn),
        tuple(_named(drawn)),
    )


def _said(line: Line, steps: Sequence[str]) -> str:
    points = ", ".join(f"{point.value.value:.3g} at {steps[point.step]}" for point in line.points)
    return f"{line.label} {points}"


def _line(line: Line, xs: Sequence[float], scale: Scale) -> DrawnLine:
    places = [(xs[point.step], scale.at(point.value.value)) for point in line.points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    drawn = [
        (_whisker(point.value, x, scale),
         marks.mark(line.family, x, y, firm=point.firm, size=4.0))
        for point, (x, y) in zip(line.points, places, strict=True)
    ]  # fmt: skip
    return DrawnLine(line.label, line.family, path, tuple(drawn), places[-1], 0.0)


def _whisker(value: Interval, x: float, scale: Scale) -> str:
    """Return a path of SVG, empty without an interval."""
    if not value.low or not value.high:
        return ""
    low, high = scale.at(value.low), scale.at(value.high)
    d = f"M{x:.1f} {low:.1f}V{high:.1f}"
    # Beyond the axis it has no end.
    for end, y in ((value.low, low), (value.high, high)):
        if scale.holds(end):
            d += f"M{x - 3:.1f} {y:.1f}h6"
    return d


def _named(lines: Sequence[DrawnLine]) -> Iterable[DrawnLine]:
    """Place the names of the lines at their ends, apart enough to be read."""
    ordered = sorted(lines, key=lambda line: line.end[1])
    places: list[float] = []
    for line in ordered:
        y = line.end[1]
        places.append(max(y, places[-1] + LABEL) if places else max(y, TOP))
    over = max(0.0, places[-1] - BOTTOM) if places else 0.0
    for number in range(len(places) - 1, -1, -1):
        ceiling = places[number] - over if number == len(places) - 1 else places[number + 1] - LABEL
        places[number] = min(places[number], ceiling)
    for line, place in zip(ordered, places, strict=True):
        yield replace(line, name_y=place)


# templates/plots.html draws with the same.
WIDTH, HEIGHT = 340, 250
LEFT, TOP, BOTTOM = 38, 12, 206
LETTER = 7.2
# Between the baselines of two names.
LABEL = 14
