"""What every part of the page needs of a run, and the pieces of HTML that several parts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from citius_lab import plot_marks
from citius_lab.figures import FAILED, SUSPECT, VALID
from citius_lab.markup import Markup, el
from citius_lab.report_words import is_shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from citius_lab.figures import Analysis, Figure, Section
    from citius_lab.record import Results


@dataclass(frozen=True, slots=True)
class View:
    """A run as the page sees it."""

    results: Results
    analysis: Analysis

    def entry(self, name: str) -> dict[str, Any]:
        """Return what run.json says of a contestant."""
        return next(one for one in self.results.run["contestants"] if one["name"] == name)

    def family(self, name: str) -> str:
        """Return which mark a contestant has."""
        return plot_marks.family(self.entry(name))

    def figure(self, section: str, case: str, name: str) -> Figure | None:
        """Return one figure, if there is one."""
        return self.analysis.figures.get((section, case, name))

    def sections(self, experiment: str) -> list[Section]:
        """Return the sections of an experiment, in the order of its series."""
        return [one for one in self.analysis.sections if one.experiment == experiment]

    def ranked(self, section: str, case: str) -> list[Figure]:
        """Return the figures of a case, fastest group first, failed ones last."""
        found = [
            figure
            for name in self.analysis.contestants
            if (figure := self.figure(section, case, name)) is not None
        ]
        return sorted(found, key=_rank)


def _rank(figure: Figure) -> tuple[bool, int, float]:
    if not is_shown(figure) or figure.rate is None:
        return True, 0, 0.0
    return False, (figure.group or 0) if figure.is_capacity else 0, -figure.rate.value


class Notes:
    """Reasons under a table, each kind named by a letter in the rows it concerns."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}

    def letters(self, figure: Figure, place: str | None = None) -> str:
        """Return the letters of a figure's reasons, and note them."""
        found: list[str] = []
        for reason in figure.verdict.reasons:
            places = self._places.setdefault(reason.kind, [])
            detail = f" ({reason.detail})" if reason.detail else ""
            places.append((place or figure.contestant) + detail)
            found.append(_letter(list(self._places).index(reason.kind)))
        return " ".join(sorted(found))

    def html(self) -> Markup | None:
        """Return the list, ``None`` if nobody has a reason."""
        if not self._places:
            return None
        items = [
            el("li", el("b", _letter(number)), " ", el("span", kind, ": ", "; ".join(places)))
            for number, (kind, places) in enumerate(self._places.items())
        ]
        return el("ol", items, class_="notes")


def _letter(number: int) -> str:
    first, second = divmod(number, 26)
    return (chr(96 + first) if first else "") + chr(97 + second)


def badge(figure: Figure, letters: str = "") -> Markup:
    """Return the verdict as a word with its sign."""
    word = figure.verdict.word
    return el("span", f"{SIGNS[word]} {word}", el("sup", letters) if letters else None,
              class_=f"badge {word}")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of figures: its heading and what stands in a figure's cell."""

    title: str
    cell: Callable[[Figure], object]


def figures_table(figures: Sequence[Figure], columns: Sequence[Column]) -> Markup:
    """Return a table with a row per contestant; narrow pages show a row as a block."""
    head = el("tr", el("th", "contestant"), [el("th", column.title) for column in columns])
    rows: list[Markup] = []
    before: int | None = None
    for figure in figures:
        cells = [
            el("td", text, data_label=column.title)
            for column in columns
            if (text := column.cell(figure)) is not None
        ]
        new_group = figure.is_capacity and before is not None and figure.group != before
        class_ = f"{figure.verdict.word}{' group' if new_group else ''}"
        rows.append(el("tr", el("th", figure.contestant, scope="row"), cells, class_=class_))
        before = figure.group
    return wide(el("table", el("thead", head), el("tbody", rows), class_="figures"))


def with_small(text: str, small: str) -> list[object]:
    """Return a value with its uncertainty behind it."""
    return [text, " ", el("small", small)] if small else [text]


def wide(table: Markup) -> Markup:
    """Let a table scroll within itself rather than widen the page."""
    return el("div", table, class_="wide")


def plots(figures: Iterable[Markup]) -> Markup:
    """Put plots side by side where there is room."""
    found = list(figures)
    return el("div", found, class_=f"plots {f'of-{len(found)}' if len(found) <= 4 else 'many'}")


def folded(summary: str, *children: object) -> Markup:
    """Return what a first look does not need; print shows it."""
    return el("details", el("summary", summary), *children)


SIGNS = {VALID: "✓", SUSPECT: "?", FAILED: "✕"}
