"""The commands that read result folders: ``citius lab report | compare | experiments``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from citius_lab import record
from citius_lab.commands import options
from citius_lab.commands.base import Lab, lab
from citius_lab.definitions import experiments
from citius_lab.errors import LabError
from citius_lab.judge import analyse, compare
from citius_lab.report import page as report
from citius_lab.report import terminal, words
from citius_lab.report.sections import comparison, generators

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from citius_lab.judge.compare import Difference
    from citius_lab.judge.statistics import Interval


@lab.command("experiments")
@click.pass_obj
def experiments_(lab: Lab) -> None:
    """List the named experiments and what each asks."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("name", "article", "minutes", "what it asks"):
        table.add_column(column, overflow="fold")
    found = lab.experiments()
    for one in found.values():
        minutes = f"{one.budget_s / 60:.1f}"
        table.add_row(
            one.name, "" if one.article is None else one.article.id, minutes, one.question
        )
    total_s = sum(one.budget_s for one in experiments.named(experiments.ALL, found))
    left_out = ", ".join(one.name for one in found.values() if not one.in_all)
    table.add_row(experiments.ALL, "", f"{total_s / 60:.1f}", f"all but {left_out}")
    lab.console.print(table)


@lab.command("report")
@options.folder
@options.baseline
@click.pass_obj
def report_(lab: Lab, folder: Path, baseline: str | None) -> None:
    """Draw the report of the result folder FOLDER again, from its records alone."""
    draw(lab, folder, baseline)


def draw(lab: Lab, folder: Path, baseline: str | None, *, tables: bool = True) -> None:
    """Write the page and print the tables."""
    found = record.load(folder)
    analysis = analyse.analyse(found, baseline)
    if not analysis.figures:
        lab.console.print("nothing was measured")
        return
    if baseline is not None and not any(analysis.baselines.values()):
        raise LabError(f"{baseline} was not measured in this run; it cannot be the baseline")
    page = folder / "report.html"
    try:
        page.write_text(report.html(found, analysis))
    except OSError as error:
        raise LabError(f"the report cannot be written: {error}; the records are kept") from error
    if tables:
        terminal.print_to(lab.console, found, analysis)
        for name, said in generators.lines(found):
            lab.console.print(f"{name}: {said}", soft_wrap=True, markup=False)
    lab.console.print(f"report: {page}", soft_wrap=True, markup=False)


@lab.command("compare")
@click.argument("first", type=options.FOLDER)
@click.argument("second", type=options.FOLDER)
@click.option("--changes", is_flag=True, help="Only what differs.")
@click.pass_obj
def compare_(lab: Lab, first: Path, second: Path, changes: bool) -> None:
    """Compare two result folders: every figure of SECOND as a ratio to that of FIRST."""
    print_comparison(lab, first, second, changes=changes)


def print_comparison(
    lab: Lab, first: Path, second: Path, *, changes: bool = False, reproduce: bool = False
) -> None:
    """Print every figure's ratios with their intervals, section by section, and how many are the same."""
    loaded = [record.load(folder) for folder in (first, second)]
    analyses = [analyse.analyse(one) for one in loaded]
    found = compare.runs(*analyses)
    console = lab.console
    console.print(f"{second} over {first}", soft_wrap=True, markup=False)
    for word, one in zip(("first", "second"), loaded, strict=True):
        console.print(f"{word}: {words.origin(one.run)}", soft_wrap=True, markup=False)
    both = [one for one in found if one.verdict != compare.NOT_COMPARABLE]
    shown = [one for one in both if not changes or compare.is_changed(one)]
    for section in dict.fromkeys(one.key[0] for one in shown):
        rows = [one for one in shown if one.key[0] == section]
        console.print(f"\n[bold]{section}[/]")
        console.print(_table(rows, analyses[1].baseline_of(section)))
    console.print()
    for line in compare.left_out(found):
        console.print(line, soft_wrap=True, markup=False)
    for line in compare.conclusions(found, reproduce=reproduce):
        console.print(line, soft_wrap=True, markup=False)
    page = second / "compare.html"
    try:
        page.write_text(comparison.html(loaded[0], loaded[1], found, (str(first), str(second))))
    except OSError as error:
        raise LabError(f"the drawing cannot be written: {error}") from error
    console.print(f"drawn: {page}", soft_wrap=True, markup=False)


def _table(rows: Sequence[Difference], baseline: str | None) -> Table:
    """Return a row per figure; columns of what neither run has are left out."""
    columns: list[tuple[str, Callable[[Difference], Text]]] = [
        ("requests/s", lambda one: _change(one.rate)),
        ("CPU per request", lambda one: _change(one.cpu)),
        (f"CPU beside {baseline}", lambda one: _change(one.beside_baseline)),
        ("instructions", _count),
    ]
    columns = [(title, cell) for title, cell in columns if any(cell(one).plain for one in rows)]
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("case", "contestant", *(title for title, _ in columns), ""):
        table.add_column(title, overflow="fold")
    for one in rows:
        table.add_row(one.key[1], one.key[2], *(cell(one) for _, cell in columns), one.why)
    return table


def _change(change: compare.Change) -> Text:
    style = "" if change.verdict in ("", compare.SAME, compare.UNDECIDED) else "bold"
    return Text(f"{ratio_text(change.ratio)} {change.verdict}".strip(), style=style)


def _count(one: Difference) -> Text:
    return Text(count_ratio_text(one.count_ratio), style="" if one.has_same_count else "bold")


def count_ratio_text(ratio: float | None) -> str:
    """Return a ratio of instructions: 1.003."""
    return "" if ratio is None else f"{ratio:.3f}"


def ratio_text(ratio: Interval | None) -> str:
    """Return a ratio with its interval: 1.20 (1.15–1.26)."""
    if ratio is None:
        return ""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.3g} (one restart)"
    return f"{ratio.value:.3g} ({ratio.low:.3g}–{ratio.high:.3g})"
