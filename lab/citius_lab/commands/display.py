"""What a person sees of a run while it goes on: the budget first, then progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Task

    from citius_lab.measure.plan import Block, Cell, Part, Plan


def budget_table(plan: Plan) -> Table:
    """Return where the time of a plan goes."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("experiment")
    for column in ("contestants", "cells a round", "rounds", "minutes"):
        table.add_column(column, justify="right")
    for part in plan.parts:
        table.add_row(
            part.experiment,
            str(len(part.contestants())),
            str(part.cells_per_round()),
            f"3–{part.rounds}" if part.rounds > ROUNDS_FIXED else str(part.rounds),
            f"{part.budget_s / 60:.1f}",
        )
    table.add_row("", "", "", "at most", f"{plan.budget_s / 60:.1f}", style="bold")
    return table


class _Remaining(ProgressColumn):
    """The time left in the budget; a run may end earlier."""

    def render(self, task: Task) -> Text:
        return Text(f"≤ {clock_text(task.fields['left_s'])} left", style="cyan")


class Display:
    """Live progress in the terminal; plain lines where there is none."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._console = console
        self._said: tuple[str, int] | None = None
        # One line of 80 characters: more would be folded, and leave pieces behind.
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            _Remaining(table_column=Column(no_wrap=True)),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task(
            "starting",
            total=sum(len(block.cells) for part in plan.parts for block in part.blocks),
            left_s=plan.budget_s,
        )

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def going(self, part: Part, block: Block, cell: Cell | None, left_s: float) -> None:
        """Show what is done next."""
        what = "starts" if cell is None else f"{cell.series} {cell.case_id}"
        who = block.contestant + (" again" if block.again else "")
        text = f"{part.experiment} {block.round + 1}/{part.rounds}  {who}: {what}"
        self._progress.update(self._task, description=f"{text:<46}", left_s=left_s)
        if self._said != (part.experiment, block.round) and not self._console.is_terminal:
            self._said = (part.experiment, block.round)
            self._console.print(
                f"{part.experiment}: round {block.round + 1} of at most {part.rounds}, "
                f"{clock_text(left_s)} left at most"
            )

    def done(self, n_cells: int) -> None:
        """Advance the bar."""
        self._progress.advance(self._task, n_cells)

    def say(self, message: str) -> None:
        """Print above the bar."""
        self._progress.console.print(message, markup=False)


def clock_text(seconds: float) -> str:
    """Return a span as minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


# Rounds that are run however narrow the intervals are.
ROUNDS_FIXED = 3
