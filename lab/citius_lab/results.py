"""The commands that read result folders: ``citius lab report | compare | experiments``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from citius_lab import (
    analyse,
    compare,
    experiments,
    record,
    report,
    report_compare,
    report_generators,
    report_terminal,
)
from citius_lab.commands import Lab, lab
from citius_lab.errors import LabError

if TYPE_CHECKING:
    from citius_lab.compare import Difference
    from citius_lab.statistics import Interval


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
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--baseline", default=None, help="What ratios refer to.")
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
        report_terminal.print_to(lab.console, found, analysis)
        for name, said in report_generators.lines(found):
            lab.console.print(f"{name}: {said}", soft_wrap=True, markup=False)
    lab.console.print(f"report: {page}", soft_wrap=True, markup=False)


@lab.command("compare")
@click.argument("first", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("second", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--changes", is_flag=True, help="Only what differs.")
@click.pass_obj
def compare_(lab: Lab, first: Path, second: Path, changes: bool) -> None:
    """Compare two result folders: every figure of SECOND as a ratio to that of FIRST."""
    print_comparison(lab, first, second, changes=changes)


def print_comparison(
    lab: Lab, first: Path, second: Path, *, changes: bool = False, reproduce: bool = False
) -> None:
    """Print every figure's ratio with its interval, and how many are the same."""
    loaded = [record.load(folder) for folder in (first, second)]
    found = compare.runs(*map(analyse.analyse, loaded))
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("section", "case", "contestant", "requests/s", "CPU per request", ""):
        table.add_column(column, overflow="fold")
    for one in found:
        if not changes or one.verdict not in (compare.SAME, compare.UNDECIDED):
            table.add_row(*one.key, ratio_text(one.ratio), ratio_text(one.cpu_ratio), _words(one))
    lab.console.print(f"{second} over {first}", soft_wrap=True, markup=False)
    lab.console.print(table)
    same, decided = compare.reproduced(found)
    undecided = sum(one.verdict == compare.UNDECIDED for one in found)
    verb = "reproduced" if reproduce else "are the same within their intervals"
    note = f"; the intervals of {undecided} are too wide to tell" if undecided else ""
    lab.console.print(f"{same} of {decided} figures {verb}{note}")
    page = second / "compare.html"
    try:
        page.write_text(report_compare.html(loaded[0], loaded[1], found, (str(first), str(second))))
    except OSError as error:
        raise LabError(f"the drawing cannot be written: {error}") from error
    lab.console.print(f"drawn: {page}", soft_wrap=True, markup=False)


def _words(one: Difference) -> Text:
    style = "" if one.verdict in (compare.SAME, compare.UNDECIDED) else "bold"
    return Text(one.verdict + (f": {one.why}" if one.why else ""), style=style)


def ratio_text(ratio: Interval | None) -> str:
    """Return a ratio with its interval: 1.20 (1.15–1.26)."""
    if ratio is None:
        return ""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.3g} (one restart)"
    return f"{ratio.value:.3g} ({ratio.low:.3g}–{ratio.high:.3g})"
