"""One picture of an article's part: bars of CPU time per request, as a file of SVG.

The same figures give the same bytes. Colours are readable on light and on dark pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Bar:
    """One contestant.

    Attributes:
        kind: Key of ``COLOURS``.
        low: Lower end of the interval, like ``high`` ``None`` where there is none.
    """

    label: str
    us: float
    low: float | None
    high: float | None
    kind: str


def svg(title: str, bars: Sequence[Bar]) -> str:
    """Return the picture, the cheapest first; long bars are cut off with their value beside them."""
    ordered = sorted(bars, key=lambda bar: bar.us)
    # A bar that is many times all others would leave them nothing to be seen of.
    shown_max = min(ordered[-1].us, CUT * ordered[len(ordered) // 2].us)
    left = 16 + round(max(len(bar.label) for bar in ordered) * LETTER)
    height = TOP + ROW * len(ordered) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + TRACK + RIGHT} {height}" '
        f'width="{left + TRACK + RIGHT}" role="img" font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<text x="8" y="18" fill="#808080">{escape(title)}</text>',
    ]
    for number, bar in enumerate(ordered):
        lines += _bar(bar, left, TOP + number * ROW, shown_max)
    return "\n".join([*lines, "</svg>", ""])


def _bar(bar: Bar, left: int, y: int, shown_max: float) -> list[str]:
    length = TRACK * min(bar.us / shown_max, 1.0)
    is_cut = bar.us > shown_max
    colour = COLOURS[bar.kind]
    found = [
        f'<text x="{left - 8}" y="{y + 15}" text-anchor="end" fill="#808080">{escape(bar.label)}</text>',
        f'<rect x="{left}" y="{y + 3}" width="{length:.1f}" height="16" fill="{colour}"/>',
    ]
    if is_cut:
        found.append(
            f'<path d="M{left + length - 14:.1f} {y + 1}l-5 20M{left + length - 8:.1f} {y + 1}l-5 20" '
            'stroke="#ffffff" stroke-width="3"/>'
        )
    elif bar.low is not None and bar.high is not None:
        low, high = (left + TRACK * min(end / shown_max, 1.06) for end in (bar.low, bar.high))
        found.append(
            f'<path d="M{low:.1f} {y + 11}H{high:.1f}" stroke="#808080" stroke-width="1.5"/>'
        )
    end = left + length
    if bar.high is not None and not is_cut:
        end = max(end, left + TRACK * min(bar.high / shown_max, 1.06))
    found.append(f'<text x="{end + 6:.1f}" y="{y + 15}" fill="#808080">{_us(bar.us)}</text>')
    return found


def _us(value: float) -> str:
    return f"{value:.0f} µs" if value >= 100 else f"{value:.3g} µs"


COLOURS = {"usual": "#8c8c8c", "citius": "#2f7ed8", "compiled": "#1b9e77", "other": "#d98032"}
LETTER = 6.7
TRACK, RIGHT = 360, 90
TOP, ROW = 30, 24
# A bar is cut off beyond so many times the middle one.
CUT = 8
