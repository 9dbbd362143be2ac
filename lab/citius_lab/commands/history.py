"""The command ``citius lab history``: what a request cost, commit by commit, from what was kept.

Two costs are kept in the checkout: CPU time per request, in the results of ``lab/published``, and
instructions per request, in ``lab/costs/instructions.json``. Every commit that changed one is a row.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from citius_lab import record
from citius_lab.commands.base import Lab, lab
from citius_lab.commands.keep import PUBLISHED
from citius_lab.errors import LabError
from citius_lab.judge import analyse
from citius_lab.paths import in_checkout, lab_root
from citius_lab.report.words import mark, micros


@dataclass(frozen=True, slots=True)
class Commit:
    """One row: what was kept by a commit.

    Attributes:
        cpu: CPU time per request in µs with a mark where it is suspect, by experiment and case.
        instructions: Instructions per request, by kind of request.
    """

    name: str
    day: str
    subject: str
    cpu: dict[str, str] = field(default_factory=dict[str, str])
    instructions: dict[str, int] = field(default_factory=dict[str, int])


@lab.command("history")
@click.option("--contestant", default="citius", show_default=True, help="Whose CPU time.")
@click.option("--case", "cases", multiple=True, default=("hello",), show_default=True)
@click.option("--commits", "most", type=click.IntRange(1), default=20, show_default=True)
@click.pass_obj
def history_(lab: Lab, contestant: str, cases: tuple[str, ...], most: int) -> None:
    """Show CPU time and instructions per request of the commits that kept them, newest first."""
    if not in_checkout():
        raise LabError("the history is that of a checkout of Citius; this lab is an installed one")
    found = history(lab_root().parent, contestant, cases, most)
    if not found:
        raise LabError("no commit has kept a result or a count of instructions")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("commit", "CPU µs per request", "instructions per request"):
        table.add_column(column, overflow="fold")
    for one in found:
        cpu = "\n".join(f"{name} {text}" for name, text in one.cpu.items())
        counts = "\n".join(f"{name} {count:,}" for name, count in one.instructions.items())
        table.add_row(f"[bold]{one.name}[/] {one.day}\n[dim]{one.subject}[/]", cpu, counts)
    lab.console.print(table)


def history(root: Path, contestant: str, cases: tuple[str, ...], most: int) -> list[Commit]:
    """Return the commits of a checkout that kept a cost, newest first.

    Raises:
        LabError: It is no repository.
    """
    folder = f"lab/{PUBLISHED}"
    lines = _git(root, "log", f"-{most}", "--format=%h%x00%cs%x00%s", "--", folder, *COUNTS)
    found: list[Commit] = []
    for line in lines.splitlines():
        name, day, subject = line.split("\0")
        changed = _git(root, "show", "--name-only", "--format=", name, "--", folder, *COUNTS)
        paths = [Path(path) for path in changed.splitlines()]
        results = dict.fromkeys(path.parent for path in paths if path.name == record.RUN)
        cpu: dict[str, str] = {}
        for result in results:
            cpu |= _cpu(root, name, result, contestant, cases)
        counts: dict[str, int] = {}
        for kept in COUNTS:
            if Path(kept) in paths:
                counts |= _instructions(root, name, kept)
        if cpu or counts:
            found.append(Commit(name, day, subject, cpu, counts))
    return found


def _cpu(
    root: Path, commit: str, result: Path, contestant: str, cases: tuple[str, ...]
) -> dict[str, str]:
    """Return the CPU times that one kept result had at a commit; none if it is of another schema."""
    with tempfile.TemporaryDirectory(prefix="citius-lab-") as name:
        folder = Path(name)
        try:
            for file in (record.RUN, record.RECORDS):
                (folder / file).write_text(_git(root, "show", f"{commit}:{result / file}"))
            analysis = analyse.analyse(record.load(folder))
        except LabError:
            return {}  # removed by this commit, or kept by a lab of another schema
    return {
        f"{figure.section} {figure.case}": f"{micros(figure.cpu_us.value)}{mark(figure.cost_verdict)}"
        for figure in analysis.figures.values()
        if figure.contestant == contestant and figure.case in cases and figure.cpu_us is not None
    }


def _instructions(root: Path, commit: str, path: str) -> dict[str, int]:
    try:
        kept: dict[str, Any] = json.loads(_git(root, "show", f"{commit}:{path}"))
    except LabError:
        return {}  # removed or renamed by this commit
    return {name: counts["total"] for name, counts in kept["kinds"].items()}


def _git(root: Path, *words: str) -> str:
    """Return what git says.

    Raises:
        LabError: It fails.
    """
    command = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise LabError(f"{' '.join(command)}: {getattr(error, 'stderr', '') or error}") from error
    return done.stdout


# Where they are kept, and where they were before.
COUNTS = ("lab/costs/instructions.json", "scripts/instructions.json")
