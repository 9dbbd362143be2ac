"""The commands: ``citius lab list | build | start | verify | run | report``."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from citius_lab import (
    analyse,
    contestants,
    drive,
    environment,
    launch,
    plan,
    record,
    report,
    run,
    verify,
)
from citius_lab.errors import BuildError, LabError, LaunchError
from citius_lab.workloads import WrongAnswer, cases_of

if TYPE_CHECKING:
    from rich.progress import Task

    from citius_lab.contestants import Contestant


@dataclass(slots=True)
class Lab:
    """What all commands have in common."""

    console: Console
    folders: list[Path] = field(default_factory=list)

    def found(self) -> dict[str, Contestant]:
        """Read all definitions."""
        return contestants.load([contestants.lab_root() / "contestants", *self.folders])


class LabGroup(click.Group):
    """Turns the lab's own errors into one message and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except LabError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=LabGroup)
@click.option(
    "--contestants",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A further folder of contestants (one folder each, with a contestant.toml); repeatable.",
)
@click.pass_context
def lab(ctx: click.Context, folders: tuple[Path, ...]) -> None:
    """Measure HTTP servers on verified work."""
    ctx.obj = Lab(Console(highlight=False), list(folders))


@lab.command("list")
@click.pass_obj
def list_(lab: Lab) -> None:
    """List the contestants, what each can do, and whether it builds here."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("name", "language", "what it is", "state", "workloads"):
        table.add_column(column, overflow="fold")
    for contestant in lab.found().values():
        all_of_them = len(contestant.workloads) == len(contestants.WORKLOADS)
        table.add_row(
            contestant.name,
            contestant.language,
            contestant.label,
            _state(contestant),
            "all" if all_of_them else ", ".join(contestant.workloads),
        )
    lab.console.print(table)


def _state(contestant: Contestant) -> str:
    if (reason := contestant.missing()) is not None:
        return reason
    if contestant.built():
        return "ready"
    failure = contestant.last_failure()
    return "not built" if failure is None else f"does not build: {failure[:100]}"


@lab.command()
@click.argument("names", nargs=-1)
@click.option("--again", is_flag=True, help="Build also what is up to date.")
@click.pass_obj
def build(lab: Lab, names: tuple[str, ...], again: bool) -> None:
    """Build the contestants NAMES, all that can be built here without any."""
    chosen = contestants.choose(lab.found(), names)
    failed = _build(lab, chosen, again=again)
    if names and failed:
        raise LabError(f"not built: {', '.join(failed)}")


def _build(lab: Lab, chosen: list[Contestant], *, again: bool = False) -> dict[str, str]:
    """Build what is not; return the reasons of those that could not be."""
    failed = {}
    for contestant in chosen:
        reason = contestant.missing()
        if reason is None and (again or not contestant.built()):
            started_at = time.monotonic()
            try:
                with lab.console.status(f"building {contestant.name} …"):
                    contestant.make()
                lab.console.print(
                    f"built {contestant.name} in {time.monotonic() - started_at:.0f} s"
                )
            except BuildError as error:
                reason = str(error)
        if reason is not None:
            failed[contestant.name] = reason
            lab.console.print(f"left out: {contestant.name}: {reason}", markup=False)
    return failed


@lab.command()
@click.argument("name", metavar="CONTESTANT")
@click.option("--port", type=click.IntRange(1, 65535), required=True)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True)
@click.pass_obj
def start(lab: Lab, name: str, port: int, workers: int) -> None:
    """Become the server CONTESTANT on 127.0.0.1, in the foreground, for checks from outside."""
    (contestant,) = contestants.choose(lab.found(), [name])
    if launch.port_in_use(port):
        raise LabError(f"port {port} of 127.0.0.1 is in use; name another with --port")
    if (failed := _build(lab, [contestant])) != {}:
        raise LabError(f"{name} does not start: {failed[name]}")
    command = contestant.command(port=port, workers=workers)
    os.chdir(contestant.source)
    try:
        os.execvpe(command[0], command, contestant.environment())
    except OSError as error:
        raise LabError(f"{name} does not start: {command[0]}: {error.strerror}") from error


@lab.command("verify")
@click.argument("names", nargs=-1)
@click.pass_obj
def verify_(lab: Lab, names: tuple[str, ...]) -> None:
    """Check the answers and the manners of the contestants NAMES, of all without any."""
    chosen = contestants.choose(lab.found(), names)
    left_out = _build(lab, chosen)
    wrong = [
        contestant.name
        for contestant in chosen
        if contestant.name not in left_out and not _verify(lab, contestant)
    ]
    if wrong or (names and left_out):
        raise LabError(f"not verified: {', '.join([*wrong, *left_out])}")


def _verify(lab: Lab, contestant: Contestant) -> bool:
    """Print a line per case; return whether all is as the contract says."""
    log_path = contestant.build_dir / "verify.log"
    contestant.build_dir.mkdir(parents=True, exist_ok=True)
    log_path.unlink(missing_ok=True)
    cases = cases_of(contestant.workloads)
    faults = []
    try:
        with launch.Server(contestant, workers=1, cpus=(), log_path=log_path) as server:
            for case in cases:
                try:
                    verify.verify_case(server.port, case, random.Random())
                except (OSError, WrongAnswer) as error:
                    faults.append(f"{case.id}: {error}")
            conduct = verify.verify_conduct(server.port, cases).faults()
    except LaunchError as error:
        faults, conduct = [str(error)], {}
    for item, fault in conduct.items():
        faults.append(f"{item.replace('_', ' ')}: {fault}")
    word = "ok" if not faults else "not ok"
    lab.console.print(f"{contestant.name}: {len(cases)} cases, {word}", markup=False)
    for fault in faults:
        lab.console.print(f"    {fault}", markup=False)
    return not faults


@lab.group("run")
def run_() -> None:
    """Measure."""


@run_.command()
@click.option("--out", type=click.Path(path_type=Path), help="Result folder, new or empty.")
@click.option(
    "--time-budget",
    "budget_s",
    type=click.FloatRange(1, max_open=False),
    default=plan.BUDGET_S,
    show_default=True,
    help="Seconds the measurement may take, building excluded.",
)
@click.option("--only", "names", multiple=True, help="Only this contestant; repeatable.")
@click.option(
    "--baseline", default=analyse.BASELINE, show_default=True, help="What ratios refer to."
)
@click.option("--seed", type=int, default=None, help="Seed of the order and of the random inputs.")
@click.pass_obj
def quick(
    lab: Lab,
    out: Path | None,
    budget_s: float,
    names: tuple[str, ...],
    baseline: str,
    seed: int | None,
) -> None:
    """Citius and its peers on every workload, in less than five minutes."""
    found = lab.found()
    chosen = contestants.choose(found, names or plan.QUICK)
    drive.load_command()  # its absence is better said before minutes of building
    left_out = _build(lab, chosen)
    ready = [contestant for contestant in chosen if contestant.name not in left_out]
    if not ready:
        raise LabError("nobody is left to measure; `citius lab list` says what is missing")
    folder = out or Path("lab-results") / time.strftime("quick-%Y%m%d-%H%M%S")
    if out is None and Path("lab", "results").parent.is_dir():
        folder = Path("lab", "results") / folder.name
    seed = random.randrange(1 << 32) if seed is None else seed
    server_cpus, load_cpus = environment.split_cpus(1)
    the_plan = plan.quick(
        ready,
        budget_s=budget_s,
        server_cpus=server_cpus,
        load_cpus=load_cpus,
        random=random.Random(seed),
        seed=seed,
    )
    with record.Recorder(folder) as recorder:
        _write_head(recorder, the_plan, chosen, left_out)
        _warn_of_foreign_load(lab)
        # The lab itself stays off the server's CPU.
        os.sched_setaffinity(0, set(load_cpus))
        with Display(lab.console, the_plan) as display:
            finished = run.run(
                the_plan, {contestant.name: contestant for contestant in ready}, recorder, display
            )
    os.sched_setaffinity(0, {*server_cpus, *load_cpus})
    _report(lab, folder, baseline)
    if not finished:
        lab.console.print(f"interrupted; the records are kept: citius lab report {folder}")
        raise click.exceptions.Exit(130)


def _write_head(
    recorder: record.Recorder,
    the_plan: plan.Plan,
    chosen: list[Contestant],
    left_out: dict[str, str],
) -> None:
    recorder.head(
        {
            "started_at": time.time(),
            "plan": the_plan.as_record(),
            "environment": environment.capture(),
            "load": " ".join(drive.load_command()),
            "contestants": [
                {
                    "name": contestant.name,
                    "language": contestant.language,
                    "label": contestant.label,
                    "note": contestant.note,
                    "json": contestant.json,
                    "records": contestant.records,
                    "rules": contestant.rules,
                    "maintainer": contestant.maintainer,
                    "workloads": list(contestant.workloads),
                    "version": "" if contestant.name in left_out else contestant.version_text(),
                }
                for contestant in chosen
            ],
        }
    )
    for name, reason in left_out.items():
        recorder.write("left out", contestant=name, reason=reason.splitlines()[0])


def _warn_of_foreign_load(lab: Lab) -> None:
    share = environment.foreign_share()
    if share > analyse.FOREIGN_MAX:
        lab.console.print(
            f"other programs keep {share:.1f} CPUs busy right now; figures will be suspect"
        )


@lab.command("report")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--baseline", default=analyse.BASELINE, show_default=True, help="What ratios refer to."
)
@click.pass_obj
def report_(lab: Lab, folder: Path, baseline: str) -> None:
    """Draw the report of the result folder FOLDER again, from its records alone."""
    _report(lab, folder, baseline)


def _report(lab: Lab, folder: Path, baseline: str) -> None:
    results = record.load(folder)
    analysis = analyse.analyse(results, baseline)
    if not analysis.figures:
        lab.console.print("nothing was measured")
        return
    if analysis.baseline is None and baseline != analyse.BASELINE:
        raise LabError(f"{baseline} was not measured in this run; it cannot be the baseline")
    page = folder / "report.html"
    page.write_text(report.html(results, analysis))
    report.print_to(lab.console, results, analysis)
    lab.console.print(f"report: {page}", soft_wrap=True, markup=False)


class _Remaining(ProgressColumn):
    """The time left, from what the cells done so far took."""

    def render(self, task: Task) -> Text:
        left_s = task.time_remaining if task.time_remaining is not None else task.fields["budget_s"]
        minutes, seconds = divmod(int(left_s), 60)
        return Text(f"{minutes}:{seconds:02} left", style="cyan")


class Display:
    """Live progress in the terminal; plain lines where there is none."""

    def __init__(self, console: Console, the_plan: plan.Plan) -> None:
        self._console = console
        self._rounds = the_plan.rounds
        self._round = -1
        self._progress = Progress(
            TextColumn("{task.description}", table_column=None),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            _Remaining(),
            console=console,
            transient=True,
            speed_estimate_period=120,
        )
        self._task = self._progress.add_task(
            "starting",
            total=sum(len(block.cells) for block in the_plan.blocks),
            budget_s=the_plan.budget_s,
        )

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def going(self, block: plan.Block, cell: plan.Cell | None) -> None:
        """Show what is done next."""
        what = "starts" if cell is None else cell.case_id + (" ×24" if cell.pipeline > 1 else "")
        text = f"round {block.round + 1}/{self._rounds}  {block.contestant}: {what}"
        self._progress.update(self._task, description=f"{text:<48}")
        if block.round != self._round and not self._console.is_terminal:
            self._round = block.round
            self._console.print(f"round {block.round + 1} of {self._rounds}")

    def done(self, n_cells: int) -> None:
        """Advance the bar."""
        self._progress.advance(self._task, n_cells)

    def say(self, message: str) -> None:
        """Print above the bar."""
        self._progress.console.print(message, markup=False)
