"""What tells contestants apart in plots: a colour and a shape per language, both in the legend.

Colours are Okabe and Ito's, which people with any colour vision tell apart; they are named by class
here and given in ``report.css``, where dark pages have lighter ones. Nothing is said by colour
alone: the shape says the language too, the row or the line's end names the contestant, and a hollow
mark is a suspect figure.
"""

from __future__ import annotations

from typing import Any

from citius_lab.markup import Markup, el


def family(entry: dict[str, Any]) -> str:
    """Return the key of ``SHAPES`` that a contestant's record in run.json belongs to."""
    if entry["name"].startswith("citius"):
        return "citius"
    if entry["rules"] == "floor":
        return "floor"
    name = str(entry["language"]).lower()
    return name if name in SHAPES else "other"


def mark(kind: str, x: float, y: float, *, firm: bool = True, size: float = 4.6) -> Markup:
    """Return a mark around a point; hollow if it is not firm."""
    points = SHAPES[kind][1]
    class_ = "mark" if firm else "mark hollow"
    if not points:
        return el("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=size, class_=class_)
    corners = " ".join(f"{x + dx * size:.1f},{y + dy * size:.1f}" for dx, dy in points)
    return el("polygon", points=corners, class_=class_)


def legend(kinds: list[str]) -> Markup:
    """Return the languages that appear, with their marks."""
    items = [
        el("span", el("svg", mark(kind, 8, 8), viewBox="0 0 16 16", aria_hidden="true"), SHAPES[kind][0],
           class_=f"f-{kind}")
        for kind in SHAPES
        if kind in kinds
    ]  # fmt: skip
    hollow = el("svg", mark("python", 8, 8, firm=False), viewBox="0 0 16 16", aria_hidden="true")
    items.append(el("span", hollow, "hollow: suspect", class_="f-other"))
    return el("p", items, class_="legend")


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
