"""The commands about contestants: ``citius lab list | build | start | verify``."""

from __future__ import annotations

import os
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from citius_lab import contestants, launch, verify
from citius_lab.errors import BuildError, LabError, LaunchError
from citius_lab.workloads import WrongAnswer, cases_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius_lab.contestants import Contestant


@dataclass(slots=True)
class Lab:
    """What all commands have in common."""

    console: Console
    folders: list[Path] = field(default_factory=list[Path])

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
    ctx.obj = Lab(
        Console(highlight=False, width=None if sys.stdout.isatty() else 100), list(folders)
    )


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
    if (failed := build_all(lab, [contestant])) != {}:
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
    log_path = contestant.build_dir / "verify.log"
    contestant.build_dir.mkdir(parents=True, exist_ok=True)
    log_path.unlink(missing_ok=True)
    cases = cases_of(contestant.workloads)
    faults: list[str] = []
    conduct: dict[str, str] = {}
    try:
        with launch.Server(contestant, workers=1, cpus=(), log_path=log_path) as server:
            for case in cases:
                try:
                    verify.verify_case(server.port, case, random.Random())
                except (OSError, WrongAnswer) as error:
                    faults.append(f"{case.id}: {error}")
            conduct = verify.verify_conduct(server.port, cases).faults()
    except LaunchError as error:
        faults = [str(error)]
    for item, fault in conduct.items():
        faults.append(f"{item.replace('_', ' ')}: {fault}")
    word = "ok" if not faults else "not ok"
    lab.console.print(f"{contestant.name}: {len(cases)} cases, {word}", markup=False)
    for fault in faults:
        lab.console.print(f"    {fault}", markup=False)
    return not faults
