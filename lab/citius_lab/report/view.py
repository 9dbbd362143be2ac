"""What every part of the page needs of a run, and what their tables consist of."""

from __future__ import annotations

import functools
import html
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from citius_lab import record
from citius_lab.judge import analyse
from citius_lab.judge.figures import FAILED, SUSPECT, VALID
from citius_lab.report.plots import marks
from citius_lab.report.words import is_shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from citius_lab.judge.figures import Analysis, Figure, Key, Section, Verdict
    from citius_lab.record import Results


@dataclass(frozen=True)
class View:
    """A run as the page sees it."""

    results: Results
    analysis: Analysis

    def entry(self, name: str) -> dict[str, Any]:
        """Return what run.json says of a contestant."""
        return next(one for one in self.results.run["contestants"] if one["name"] == name)

    def family(self, name: str) -> str:
        """Return which mark a contestant has."""
        return marks.family(self.entry(name))

    def figure(self, section: str, case: str, name: str) -> Figure | None:
        """Return one figure, if there is one."""
        return self.analysis.figures.get((section, case, name))

    def raw(self, figure: Figure) -> Cell:
        """Return the cell that leads to a figure's records, each by its line in the file of the records."""
        return Cell(links=tuple((str(line), f"#record-{line}") for line in self._lines[figure.key]))

    def raw_records(self) -> list[RawRecord]:
        """Return the records that the figures are made of, in the order of their lines."""
        lines = sorted({line for found in self._lines.values() for line in found})
        return [_raw_record(line, self.results.records[line - 1]) for line in lines]

    @functools.cached_property
    def _lines(self) -> dict[Key, list[int]]:
        """The lines of the records that each figure is made of, counted from 1."""
        found: dict[Key, list[int]] = {}
        for number, entry in enumerate(self.results.records, 1):
            if entry["kind"] == "measurement" and not (entry["again"] or entry["discarded"]):
                found.setdefault(analyse.key_of(entry), []).append(number)
            elif entry["kind"] == "fault" and not entry["again"]:
                for series, case in entry["cells"]:
                    place = f"{entry['experiment']}/{series}", case, entry["contestant"]
                    found.setdefault(place, []).append(number)
        return found

    def sections(self, experiment: str) -> list[Section]:
        """Return the sections of an experiment, in the order of its series."""
        return [one for one in self.analysis.sections if one.experiment == experiment]

    def costs_lead(self, section: str) -> bool:
        """Tell whether costs are shown before rates: where more rates than costs are in doubt, and many."""
        found = [one for key, one in self.analysis.figures.items() if key[0] == section]
        rates = sum(one.verdict.word == SUSPECT for one in found)
        costs = sum(one.cost_verdict.word == SUSPECT for one in found)
        return rates > costs and rates > MANY * len(found)

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


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A line of the records as it stands in the file, and what it is about."""

    line: int
    title: str
    json: Markup


def _raw_record(line: int, entry: dict[str, Any]) -> RawRecord:
    words = [entry["kind"], entry["contestant"]]
    if entry["kind"] == "measurement":
        words += [f"{entry['experiment']}/{entry['series']}", entry["case"]]
    # A quotation mark needs no escape in an element's text, and every second character would be one.
    text = html.escape(record.line_of(entry), quote=False)
    return RawRecord(line, f"{', '.join(words)}, round {entry['round'] + 1}", Markup(text))


@dataclass(frozen=True, slots=True)
class Note:
    """One kind of reason under a table, and the rows it concerns."""

    letter: str
    kind: str
    places: tuple[str, ...]


class Notes:
    """Reasons under a table, each kind named by a letter in the rows it concerns."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}

    def letters(self, figure: Figure, place: str | None = None) -> str:
        """Return the letters of a figure's reasons, and note them."""
        found: list[str] = []
        for reason in figure.reasons:
            places = self._places.setdefault(reason.kind, [])
            detail = f" ({reason.detail})" if reason.detail else ""
            places.append((place or figure.contestant) + detail)
            found.append(_letter(list(self._places).index(reason.kind)))
        return " ".join(sorted(found))

    def found(self) -> list[Note]:
        """Return the reasons that were noted."""
        return [
            Note(_letter(number), kind, tuple(places))
            for number, (kind, places) in enumerate(self._places.items())
        ]


def _letter(number: int) -> str:
    first, second = divmod(number, 26)
    return (chr(96 + first) if first else "") + chr(97 + second)


@dataclass(frozen=True, slots=True)
class Badge:
    """A verdict as a word with its sign, and the letters of its reasons."""

    word: str
    sign: str
    letters: str


def badge(verdict: Verdict, letters: str = "") -> Cell:
    """Return the cell of a verdict."""
    return Cell(badge=Badge(verdict.word, SIGNS[verdict.word], letters))


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a cell: a verdict, or a text with something small behind or below it.

    Attributes:
        letters: Of reasons, behind the text; ``None`` where a cell has no place for them.
        links: Texts in place of the text, each with what it leads to within the page.
        sort: What rows are sorted by where this cell's column is chosen; its text without one.
    """

    text: str = ""
    small: str = ""
    letters: str | None = None
    below: bool = False
    class_: str = ""
    links: tuple[tuple[str, str], ...] = ()
    badge: Badge | None = None
    sort: float | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of figures: its heading, a figure's cell, and the number it stands for, if any."""

    title: str
    cell: Callable[[Figure], Cell | str]
    key: Callable[[Figure], float | None] | None = None

    def cell_of(self, figure: Figure) -> Cell:
        """Return the cell of a figure, with what its rows are sorted by."""
        found = as_cell(self.cell(figure))
        if self.key is None or found.text in ("", "–"):
            return found
        return replace(found, sort=self.key(figure))


@dataclass(frozen=True, slots=True)
class TableRow:
    """One contestant's row."""

    name: str
    cells: tuple[Cell, ...]
    class_: str = ""


@dataclass(frozen=True, slots=True)
class FiguresTable:
    """A table with a row per contestant."""

    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]


def figures_table(figures: Sequence[Figure], columns: Sequence[Column]) -> FiguresTable:
    """Return a table with a row per figure."""
    rows: list[TableRow] = []
    before: int | None = None
    for figure in figures:
        cells = [column.cell_of(figure) for column in columns]
        new_group = figure.is_capacity and before is not None and figure.group != before
        class_ = f"{figure.verdict.word}{' group' if new_group else ''}"
        rows.append(TableRow(figure.contestant, tuple(cells), class_))
        before = figure.group
    return FiguresTable(tuple(column.title for column in columns), tuple(rows))


def as_cell(found: Cell | str) -> Cell:
    """Return a text as a cell."""
    return Cell(found) if isinstance(found, str) else found


# The share of rates in doubt from which a machine is called a noisy one.
MANY = 0.25
SIGNS = {VALID: "✓", SUSPECT: "?", FAILED: "✕"}
