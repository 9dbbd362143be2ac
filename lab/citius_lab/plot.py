"""Dot plots on a log scale as SVG text: one row per contestant, a dot and its 95 % interval.

Made for a phone first: the drawing is ``WIDTH`` units wide and scales with the page. Colours are
Okabe and Ito's, which people with any colour vision tell apart; what they say (the language, and
whether a figure is suspect) is also said by the label and by the hollow dot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Dot:
    """One row of a plot.

    Attributes:
        value: ``None`` where there is nothing to show; ``text`` then says why.
        text: What stands at the end of the row.
        firm: Drawn as a full dot; a hollow one otherwise.
    """

    label: str
    colour: str
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    firm: bool = True


def dot_plot(title: str, dots: Sequence[Dot]) -> str:
    """Return the drawing; ``title`` is what a screen reader says."""
    edges = [edge for dot in dots for edge in (dot.low, dot.value, dot.high) if edge]
    if not edges:
        return "<p>There is nothing to draw: no figure of this case holds.</p>"
    scale = _Scale.around(min(edges), max(edges))
    height = TOP + len(dots) * ROW + 4
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">',
        *_grid(scale, height),
    ]
    for row, dot in enumerate(dots):
        parts += _row(dot, TOP + row * ROW + ROW / 2, scale)
    return "\n".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float

    @classmethod
    def around(cls, low: float, high: float) -> _Scale:
        """Choose ends at 1, 2 or 5 times a power of ten, apart by a factor of four at least."""
        if high / low < 4:
            middle = math.sqrt(low * high)
            low, high = min(low, middle / 2), max(high, middle * 2)
        return cls(_step_below(low), -_negative_step_above(high))

    def x(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> list[float]:
        """Return what is labelled: powers of ten, and 2 and 5 between them if there is room."""
        decades = math.log10(self.high / self.low)
        steps = (1, 2, 5) if decades <= 1.7 else (1,)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        ticks = [step * 10.0**power for power in powers for step in steps]
        return [tick for tick in ticks if self.low * 0.999 <= tick <= self.high * 1.001]


def _step_below(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value * 1.0001)


def _negative_step_above(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return -min(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.9999)


def _grid(scale: _Scale, height: float) -> list[str]:
    lines: list[str] = []
    for tick in scale.ticks():
        x = scale.x(tick)
        lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height}"/>')
        lines.append(
            f'<text class="tick" x="{x:.1f}" y="{TOP - 11}" text-anchor="middle">'
            f"{short_number(tick)}</text>"
        )
    return lines


def _row(dot: Dot, y: float, scale: _Scale) -> list[str]:
    parts = [
        f'<text x="{LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{escape(dot.label)}</text>',
        f'<text class="value" x="{WIDTH - 2}" y="{y + 4:.1f}" text-anchor="end">'
        f"{escape(dot.text)}</text>",
    ]
    if dot.value is None:
        return parts
    if dot.low and dot.high:
        x_low, x_high = scale.x(dot.low), scale.x(dot.high)
        parts.append(
            f'<path d="M{x_low:.1f} {y - 4:.1f}v8m0 -4H{x_high:.1f}m0 -4v8" '
            f'stroke="{dot.colour}" stroke-width="1.6" fill="none"/>'
        )
    fill = dot.colour if dot.firm else "#fff"
    parts.append(
        f'<circle cx="{scale.x(dot.value):.1f}" cy="{y:.1f}" r="4.2" fill="{fill}" '
        f'stroke="{dot.colour}" stroke-width="1.8"/>'
    )
    return parts


def short_number(value: float) -> str:
    """Return 500, 2k, 0.1, 1.5M."""
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return f"{value:g}"


COLOURS = {
    "Citius": "#d55e00",
    "Python": "#0072b2",
    "Go": "#009e73",
    "Rust": "#a0548b",
    "floor": "#666666",
}
WIDTH = 420
LEFT = 104
RIGHT = 78
TOP = 26
ROW = 22
