"""The commands about contestants: ``citius lab list | build | start | verify``."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from citius_lab import paths
from citius_lab.commands import options
from citius_lab.definitions import certificate, contestants, experiments, wires
from citius_lab.definitions.workloads import contract
from citius_lab.errors import BuildError, LabError
from citius_lab.processes import launch
from citius_lab.processes.services import Services
from citius_lab.verify import inspection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius_lab.definitions.contestants import Contestant
    from citius_lab.definitions.experiments import Experiment


@dataclass(slots=True)
class Lab:
    """What all commands have in common."""

    console: Console
    folders: list[Path] = field(default_factory=list[Path])
    experiment_folders: list[Path] = field(default_factory=list[Path])

    def found(self) -> dict[str, Contestant]:
        """Read the definitions of all contestants."""
        return contestants.load([paths.lab_root() / "contestants", *self.folders])

    def experiments(self) -> dict[str, Experiment]:
        """Read all experiments."""
        return experiments.load([experiments.own(), *self.experiment_folders], self.found())


class LabGroup(click.Group):
    """Turns the lab's own errors into one message and exit code 1, and interrupts into 130."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            with launch.signals_as_interrupts():
                return super().invoke(ctx)
        except LabError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            # Each block that had started a process has ended it on the way here.
            click.echo("interrupted; nothing of it is left running", err=True)
            raise click.exceptions.Exit(130) from None


@click.group(cls=LabGroup)
@click.option(
    "--contestants",
    "folders",
    multiple=True,
    type=options.FOLDER,
    help="A further folder of contestants (one folder each, with a contestant.toml); repeatable.",
)
@click.option(
    "--workloads",
    "workload_folders",
    multiple=True,
    type=options.FOLDER,
    help="A further folder of workloads (NAME.toml); repeatable.",
)
@click.option(
    "--experiments",
    "experiment_folders",
    multiple=True,
    type=options.FOLDER,
    help="A further folder of experiments (NAME.toml); repeatable.",
)
@click.pass_context
def lab(
    ctx: click.Context,
    folders: tuple[Path, ...],
    workload_folders: tuple[Path, ...],
    experiment_folders: tuple[Path, ...],
) -> None:
    """Measure HTTP servers on verified work."""
    # Tables are made for a hundred columns; where there is no terminal, rich would take eighty.
    told = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(highlight=False, width=None if told else 100)
    ctx.obj = Lab(console, list(folders), list(experiment_folders))
    for folder in workload_folders:
        contract().add(folder)


@lab.command("list")
@click.pass_obj
def list_(lab: Lab) -> None:
    """List the contestants, what each can do, and whether it builds here."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("contestant", "decodes into, with", "rules", "MiB", "state"):
        table.add_column(column, overflow="fold", no_wrap=column in ("rules", "MiB"))
    for contestant in lab.found().values():
        finding = inspection.last(contestant)
        table.add_row(
            f"[bold]{contestant.name}[/]\n[dim]{escape(contestant.label)}[/]",
            f"{contestant.records}\n[dim]{escape(contestant.json)}[/]",
            contestant.rules,
            _memory(contestant, finding),
            escape(_state(contestant, finding)) + _without(contestant),
        )
    lab.console.print(table)
    lab.console.print(
        "MiB: memory (PSS) of one worker after every workload, and what a second one adds, as "
        "`citius lab verify` last found it",
        style="dim",
    )


def _memory(contestant: Contestant, finding: inspection.Finding | None) -> str:
    if finding is None or finding.one_worker_kib is None:
        return ""
    one = f"{finding.one_worker_kib / 1024:.0f}"
    if finding.two_workers_kib is None:
        return one
    more_kib = max(0, finding.two_workers_kib - finding.one_worker_kib)
    each = "process" if contestant.workers == "processes" else "thread"
    return f"{one}\n[dim]+ {more_kib / 1024:.0f}/{each}[/]"


def _without(contestant: Contestant) -> str:
    asked = [name for name, one in contract().workloads.items() if not one.is_optional]
    left_out = [name for name in asked if name not in contestant.workloads]
    left_out += contestant.lacks
    more = [wire for wire in contestant.wires if wire != wires.HTTP1]
    lines = [f"without {', '.join(left_out)}"] if left_out else []
    lines += [f"also {', '.join(more)}"] if more else []
    return "".join(f"\n[dim]{line}[/]" for line in lines)


def _state(contestant: Contestant, finding: inspection.Finding | None) -> str:
    if (reason := contestant.missing()) is not None:
        return reason
    if not contestant.built():
        failure = contestant.last_failure()
        return "not built" if failure is None else f"does not build: {failure[:100]}"
    if finding is None:
        return "ready"
    return f"fails: {'; '.join(finding.faults)[:200]}" if finding.faults else "verified"


@lab.command()
@click.argument("names", nargs=-1)
@click.option("--again", is_flag=True, help="Build also what is up to date.")
@click.pass_obj
def build(lab: Lab, names: tuple[str, ...], again: bool) -> None:
    """Build the contestants NAMES, all that can be built here without any."""
    chosen = contestants.choose(lab.found(), names)
    failed = build_all(lab, chosen, again=again)
    if names and failed:
        raise LabError(f"not built: {', '.join(failed)}")


def build_all(lab: Lab, chosen: Sequence[Contestant], *, again: bool = False) -> dict[str, str]:
    """Build what is not; return the reasons of those that could not be."""
    failed: dict[str, str] = {}
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


def split_names(words: Sequence[str]) -> list[str]:
    """Return the names in ``--only a,b --only c``.

    Raises:
        LabError: The option is given, and names nothing.
    """
    names = [name for word in words for name in word.split(",") if name]
    if words and not names:
        raise LabError("expected the names of contestants, separated by commas, got none")
    return names


@lab.command()
@click.argument("name", metavar="CONTESTANT")
@click.option("--port", type=click.IntRange(1, 65535), required=True)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True)
@click.option(
    "--wire",
    type=click.Choice(wires.WIRES),
    default=wires.HTTP1,
    show_default=True,
    help="What it has to speak, where that takes another start.",
)
@click.pass_obj
def start(lab: Lab, name: str, port: int, workers: int, wire: str) -> None:
    """Become the server CONTESTANT on 127.0.0.1, in the foreground, for checks from outside."""
    (contestant,) = contestants.choose(lab.found(), [name])
    if launch.port_in_use(port):
        raise LabError(f"port {port} of 127.0.0.1 is in use; name another with --port")
    if (failed := build_all(lab, [contestant])) != {}:
        raise LabError(f"{name} does not start: {failed[name]}")
    if wire not in contestant.wires:
        raise LabError(f"{name} does not speak {wire}, only {', '.join(contestant.wires)}")
    if wires.is_tls(wire):
        certificate.make(contestant.build_root)
    command = contestant.command(port=port, workers=workers, manner=contestant.manner_of(wire))
    if contestant.services:
        sys.exit(_with_services(contestant, command))
    os.chdir(contestant.source)
    try:
        os.execvpe(command[0], command, contestant.environment())
    except OSError as error:
        raise LabError(f"{name} does not start: {command[0]}: {error.strerror}") from error


def _with_services(contestant: Contestant, command: list[str]) -> int:
    """Run it beside the databases that it needs; return its exit code."""
    with launch.signals_as_interrupts(), Services(()) as services:
        env = contestant.environment() | services.environment(contestant.services)
        process = subprocess.Popen(command, cwd=contestant.source, env=env)
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            return process.wait()


@lab.command("verify")
@click.argument("names", nargs=-1)
@click.pass_obj
def verify_(lab: Lab, names: tuple[str, ...]) -> None:
    """Check the responses and the HTTP conformance of the contestants NAMES, of all without any."""
    chosen = contestants.choose(lab.found(), names)
    left_out = build_all(lab, chosen)
    wrong = [
        contestant.name
        for contestant in chosen
        if contestant.name not in left_out and not _verify(lab, contestant)
    ]
    if wrong or (names and left_out):
        raise LabError(f"not verified: {', '.join([*wrong, *left_out])}")


def _verify(lab: Lab, contestant: Contestant) -> bool:
    """Print a line per case; return whether all is as the contract says."""
    faults = inspection.inspect(contestant).faults
    word = "ok" if not faults else "not ok"
    n_cases = len(contract().cases_of(contestant.workloads))
    lab.console.print(f"{contestant.name}: {n_cases} cases, {word}", markup=False)
    for fault in faults:
        lab.console.print(f"    {fault}", markup=False)
    return not faults
