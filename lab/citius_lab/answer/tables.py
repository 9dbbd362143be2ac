"""What the articles' question comes to: kept results in, the tables and sentences of a page out.

An experiment with a table ``[answer]`` says which contestant stands in which column of its article's
table: the article's own application on its usual server, the same on Citius, the same handlers written
for Citius, compiled handlers, and the article's other languages. ``answer_page`` writes it down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from citius_lab import record
from citius_lab.judge import analyse
from citius_lab.judge.figures import FAILED, SUSPECT, VALID
from citius_lab.judge.statistics import geometric_mean, median

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from citius_lab.definitions.answers import AnswerRow
    from citius_lab.definitions.experiments import Experiment
    from citius_lab.judge.figures import Analysis, Figure


@dataclass(frozen=True, slots=True)
class Kept:
    """One kept result folder.

    Attributes:
        folder: As the page names it, relative to the checkout.
        foreign: CPUs that other programs kept busy, the median over measurements.
        counted_at: Commits at which instructions were counted.
    """

    folder: str
    run: dict[str, Any]
    analysis: Analysis
    foreign: float
    counted_at: tuple[str, ...] = ()

    def figure(self, series: str, case: str, contestant: str) -> Figure | None:
        """Return a figure that has a number worth showing."""
        (experiment,) = (one["name"] for one in self.run["experiments"])
        found = self.analysis.figures.get((f"{experiment}/{series}", case, contestant))
        shown = found is not None and found.verdict.word != FAILED and found.cpu_us is not None
        return found if shown else None

    def failure(self, series: str, case: str, contestant: str) -> str | None:
        """Return why there is no figure, ``None`` if there is one or nothing was tried."""
        (experiment,) = (one["name"] for one in self.run["experiments"])
        found = self.analysis.figures.get((f"{experiment}/{series}", case, contestant))
        if found is None or found.verdict.word != FAILED:
            return None
        return str(found.verdict.reasons[0]).splitlines()[0].partition(";")[0][:FAILURE_CHARS]

    def counts(self, *, of_cost: bool) -> tuple[int, int, int]:
        """Return how many figures are valid, suspect and failed, by their costs or their rates."""
        figures = self.analysis.figures.values()
        verdicts = [one.cost_verdict if of_cost else one.verdict for one in figures]
        words = [one.word for one in verdicts]
        return words.count(VALID), words.count(SUSPECT), words.count(FAILED)

    def label(self, name: str) -> str:
        """Return a contestant's label."""
        return next(str(one["label"]) for one in self.run["contestants"] if one["name"] == name)


@dataclass(frozen=True, slots=True)
class Cell:
    """What one contestant costs: CPU per request, and how sure that is."""

    contestant: str
    figure: Figure

    @property
    def us(self) -> float:
        """CPU time of the server per request, in µs."""
        assert self.figure.cpu_us is not None, "figure() left out those without"
        return self.figure.cpu_us.value

    @property
    def is_doubtful(self) -> bool:
        """Whether the lab's gates doubt it."""
        return self.figure.cost_verdict.word != VALID


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table.

    Attributes:
        published: What the article published of it, in words.
        cells: What was measured, by column.
        failed: Why there is no figure, by column, with the contestant's name.
        series: Which series it is of.
        over: The series of another row that it is compared with; empty for none.
    """

    case: str
    label: str
    published: str
    cells: Mapping[str, Cell]
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    series: str = ""
    over: str = ""

    @property
    def title(self) -> str:
        """What stands before the row, and names it in sentences."""
        return f"`{self.case}`" + (f", {self.label}" if self.label else "")


def read(folder: Path, name: str) -> Kept:
    """Read a kept result.

    Raises:
        LabError: It is none, one of another schema, or was cut off.
    """
    results = record.load(folder)
    record.expect_whole(folder, results)
    shares = [
        one["usage"]["foreign_share"] for one in results.of_kind("measurement") if "usage" in one
    ]
    foreign = median(shares) if shares else 0.0
    commits = tuple(dict.fromkeys(one["commit"] for one in results.counts))
    return Kept(name, results.run, analyse.analyse(results), foreign, commits)


def rows(experiment: Experiment, kept: Kept) -> list[Row]:
    """Return the rows of an article's table, without those that were not measured."""
    answer = experiment.answer
    assert answer is not None, "an experiment without an article has no such table"
    found: list[Row] = []
    for row in answer.row:
        cells: dict[str, Cell] = {}
        failed: dict[str, str] = {}
        for column, usual in answer.columns.items():
            name = row.columns.get(column, usual)
            figure = kept.figure(row.series, row.case, name)
            if figure is not None:
                cells[column] = Cell(name, figure)
            elif (why := kept.failure(row.series, row.case, name)) is not None:
                failed[column] = f"{name}: {why}"
        if cells or failed:
            said = published(experiment, row)
            found.append(Row(row.case, row.label, said, cells, failed, row.series, row.over))
    return found


def published(experiment: Experiment, row: AnswerRow) -> str:
    """Return what the article published of a row: requests/s by language, with their ratio."""
    article = experiment.article
    if article is None:
        return ""
    by_who: dict[str, list[float]] = {}
    for one in article.published:
        if (one.series, one.case) == (row.series, row.case):
            by_who.setdefault(one.who, []).append(one.requests_per_s)
    said = "; ".join(f"{who}: {_rate(rates)}" for who, rates in by_who.items())
    return said or row.published


def _rate(rates: list[float]) -> str:
    return ", ".join(f"{rate:,.0f}".replace(",", " ") for rate in rates)


def ratio(cells: Mapping[str, Cell], over: str, under: str) -> float | None:
    """Return how many times the cost of ``under`` that of ``over`` is, paired by round."""
    if over not in cells or under not in cells:
        return None
    return _times(cells[over], cells[under])


def times_of(row: Row, other: Row, column: str) -> float | None:
    """Return how many times the cost in ``other`` that in ``row`` is, in one column, paired by round."""
    if column not in row.cells or column not in other.cells:
        return None
    return _times(row.cells[column], other.cells[column])


def _times(over: Cell, under: Cell) -> float | None:
    own, other = (cell.figure.cpu_by_round for cell in (over, under))
    both = sorted(own.keys() & other.keys())
    return geometric_mean([own[number] / other[number] for number in both]) if both else None


# Of a reason; what a server printed may be long.
FAILURE_CHARS = 140
