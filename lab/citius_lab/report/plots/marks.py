"""What tells contestants apart in plots: a colour and a shape per language, both in the legend.

Colours are Okabe and Ito's, which people with any colour vision tell apart; they are named by class
here and given in ``report.css``, where dark pages have lighter ones. Nothing is said by colour
alone: the shape says the language too, the row or the line's end names the contestant, and a hollow
mark is a suspect figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def family(entry: dict[str, Any]) -> str:
    """Return the key of ``SHAPES`` that a contestant's record in run.json belongs to."""
    if is_own(entry["name"]):
        return "citius"
    if entry["rules"] == "floor":
        return "floor"
    name = str(entry["language"]).lower()
    return name if name in SHAPES else "other"


def is_own(name: str) -> bool:
    """Tell whether a contestant runs on Citius, as its name says: ``db-citius``, ``nginx-citius``."""
    return "citius" in name.split("-")


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark around a point; hollow if it is not firm.

    Attributes:
        corners: Points of a polygon as SVG writes them; empty for a circle.
    """

    corners: str
    x: float
    y: float
    size: float
    firm: bool


def mark(kind: str, x: float, y: float, *, firm: bool = True, size: float = 4.6) -> Mark:
    """Return the mark of a language at a point."""
    points = SHAPES[kind][1]
    corners = " ".join(f"{x + dx * size:.1f},{y + dy * size:.1f}" for dx, dy in points)
    return Mark(corners, x, y, size, firm)


def legend(kinds: list[str]) -> list[tuple[str, str, Mark]]:
    """Return class, title and mark of the languages that appear, and of a suspect figure."""
    items = [(kind, SHAPES[kind][0], mark(kind, 8, 8)) for kind in SHAPES if kind in kinds]
    return [*items, ("other", "hollow: suspect", mark("python", 8, 8, firm=False))]


def _plus() -> tuple[tuple[float, float], ...]:
    thin, wide = 0.38, 1.15
    right = ((thin, -wide), (thin, -thin), (wide, -thin), (wide, thin), (thin, thin), (thin, wide))
    return (*right, *((-x, -y) for x, y in right))


# Title and corners by family, in units of the mark's size; no corners: a circle.
SHAPES: dict[str, tuple[str, tuple[tuple[float, float], ...]]] = {
    "citius": ("Citius", ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0))),
    "python": ("Python", ()),
    "pypy": ("PyPy", _plus()),
    "go": ("Go", ((-0.95, -0.95), (0.95, -0.95), (0.95, 0.95), (-0.95, 0.95))),
    "rust": ("Rust", ((0, -1.2), (1.15, 0.9), (-1.15, 0.9))),
    "javascript": ("Node.js", ((0, 1.2), (1.15, -0.9), (-1.15, -0.9))),
    "floor": ("physical floor", ((-0.45, -1.3), (0.45, -1.3), (0.45, 1.3), (-0.45, 1.3))),
    "other": ("others", ((-0.7, -1), (1.1, 0), (-0.7, 1))),
}
