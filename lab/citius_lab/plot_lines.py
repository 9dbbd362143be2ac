"""Plots with one line per contestant over a few steps, such as latency over fractions of capacity."""

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


def line_plot(title: str, steps: Sequence[str], lines: Sequence[Line], x_title: str) -> Markup:
    """Return the drawing with its title."""
    lines = [line for line in lines if line.points]
    points = [point for line in lines for point in line.points]
    values = scale_ends(
        [point.value.value for point in points],
        [end for point in points for end in ends(point.value)],
    )
    caption = el("figcaption", title)
    if not values:
        return el("figure", caption, el("p", "No figure holds.", class_="dim"))
    scale = Scale.over(values, BOTTOM, TOP)
    right = WIDTH - 16 - max(len(line.label) for line in lines) * LETTER
    gap = (right - LEFT) / max(len(steps), 1)
    centres = [LEFT + gap * (number + 0.5) for number in range(len(steps))]
    parts = [*_grid(scale, right), *_steps(steps, centres, x_title, right)]
    shift = min(5.0, gap / (len(lines) + 1))
    names: list[tuple[float, Line, float]] = []
    for number, line in enumerate(lines):
        # Side by side, so that whiskers of one step do not cover each other.
        xs = [centre + (number - (len(lines) - 1) / 2) * shift for centre in centres]
        parts.append(_line(line, xs, scale))
        last = line.points[-1]
        names.append((scale.at(last.value.value), line, xs[last.step]))
    parts += _labels(names, right)
    said = f"{title}: " + "; ".join(_said(line, steps) for line in lines)
    return el(
        "figure",
        caption,
        el("svg", parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=said),
    )


def _said(line: Line, steps: Sequence[str]) -> str:
    points = ", ".join(f"{point.value.value:.3g} at {steps[point.step]}" for point in line.points)
    return f"{line.label} {points}"


def _grid(scale: Scale, right: float) -> Iterable[Markup]:
    for value in scale.ticks():
        y = f"{scale.at(value):.1f}"
        yield el("line", class_="grid", x1=LEFT, x2=f"{right:.1f}", y1=y, y2=y)
        y = f"{scale.at(value) + 4:.1f}"
        yield el("text", tick(value), class_="tick", x=LEFT - 6, y=y, text_anchor="end")


def _steps(
    steps: Sequence[str], centres: Sequence[float], x_title: str, right: float
) -> Iterable[Markup]:
    for text, x in zip(steps, centres, strict=True):
        yield el("text", text, class_="tick", x=f"{x:.1f}", y=BOTTOM + 16, text_anchor="middle")
    x = f"{(LEFT + right) / 2:.1f}"
    yield el("text", x_title, class_="tick", x=x, y=HEIGHT - 4, text_anchor="middle")


def _line(line: Line, xs: Sequence[float], scale: Scale) -> Markup:
    places = [(xs[point.step], scale.at(point.value.value)) for point in line.points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [el("path", class_="line", d=path)]
    for point, (x, y) in zip(line.points, places, strict=True):
        if point.value.low and point.value.high:
            low, high = scale.at(point.value.low), scale.at(point.value.high)
            d = f"M{x:.1f} {low:.1f}V{high:.1f}"
            # Beyond the axis it has no end.
            for end, y_end in ((point.value.low, low), (point.value.high, high)):
                if scale.holds(end):
                    d += f"M{x - 3:.1f} {y_end:.1f}h6"
            parts.append(el("path", class_="whisker", d=d))
        parts.append(plot_marks.mark(line.family, x, y, firm=point.firm, size=4.0))
    return el("g", parts, class_=f"f-{line.family}")


def _labels(ends: list[tuple[float, Line, float]], right: float) -> Iterable[Markup]:
    """Name the lines at their ends, apart enough to be read, joined to their ends by a thread."""
    ends = sorted(ends, key=lambda end: end[0])
    places: list[float] = []
    for y, _, _ in ends:
        places.append(max(y, places[-1] + LABEL) if places else max(y, TOP))
    over = max(0.0, places[-1] - BOTTOM) if places else 0.0
    for number in range(len(places) - 1, -1, -1):
        ceiling = places[number] - over if number == len(places) - 1 else places[number + 1] - LABEL
        places[number] = min(places[number], ceiling)
    for (y, line, x), place in zip(ends, places, strict=True):
        thread = f"M{x + 6:.1f} {y:.1f}L{right + 4:.1f} {place:.1f}"
        yield el(
            "g",
            el("path", class_="thread", d=thread),
            el("text", line.label, class_="end", x=f"{right + 8:.1f}", y=f"{place + 4:.1f}"),
            class_=f"f-{line.family}",
        )


WIDTH, HEIGHT = 340, 250
LEFT, TOP, BOTTOM = 38, 12, 206
LETTER = 7.2
# Between the baselines of two names.
LABEL = 14
