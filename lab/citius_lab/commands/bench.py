"""``citius lab bench``: an application that is not the lab's, against other servers or an earlier commit.

The same machinery as the named experiments: restarts in random order, checked answers, intervals,
verdicts. What is right is what the application under test answers; others have to answer the same.
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from citius_lab import record
from citius_lab.bench import servers, worktree
from citius_lab.commands import options
from citius_lab.commands.base import Lab, lab, split_names
from citius_lab.commands.results import draw, ratio_text
from citius_lab.commands.run import Session, default_folder, finish, head_of
from citius_lab.definitions.experiments import Experiment
from citius_lab.definitions.protocols import Load, Series
from citius_lab.definitions.workloads import Case, Expect, Workload, WrongResponse, contract
from citius_lab.errors import LabError, LaunchError
from citius_lab.judge import analyse
from citius_lab.judge.figures import FAILED, VALID
from citius_lab.judge.thresholds import Condition
from citius_lab.measure import plan
from citius_lab.processes import launch
from citius_lab.report import words as report_words
from citius_lab.verify import session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius_lab.bench.installations import AppPython
    from citius_lab.definitions.contestants import Contestant
    from citius_lab.judge.figures import Figure


@dataclass(frozen=True, slots=True)
class Request:
    """What each contestant is asked."""

    path: str
    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    status: int
    connections: int

    def case(self, *, is_stable: bool) -> Case:
        """Return it as a case whose responses are checked for their status alone."""
        return Case(
            servers.OWN,
            self.path,
            self.connections,
            f"{self.method} {self.path}",
            method=self.method,
            headers=self.headers,
            body=self.body,
            status=self.status,
            is_stable=is_stable,
        )

    def workload(self, expected: bytes, *, is_stable: bool) -> Workload:
        """Return it as the only case of a workload, with what the right response is."""
        case = replace(self.case(is_stable=is_stable), workload=servers.OWN)
        return Workload(servers.OWN, (case,), expect=Expect(expected if is_stable else None))


@dataclass(frozen=True, slots=True)
class Served:
    """The application that servers are compared with.

    Attributes:
        app: ``module:attribute``.
        folder: Where it runs.
        prefer_app: Whether servers installed beside it are taken.
    """

    app: str
    python: AppPython
    folder: Path
    prefer_app: bool

    def by(self, lab: Lab, server: str, interface: str) -> Contestant:
        """Return it served by ``server``, which is installed if need be."""
        with lab.console.status(f"preparing {server} …"):
            return servers.serve(
                server, self.app, interface, self.folder, self.python, prefer_app=self.prefer_app
            )


@lab.command()
@click.argument("app", required=False)
@click.option("--server", default="citius", show_default=True, help="What serves APP.")
@click.option(
    "--against",
    multiple=True,
    metavar="NAME,…",
    help="Other servers of the same APP (uvicorn, granian, gunicorn, gunicorn-sync, hypercorn, "
    "waitress, uwsgi, citius), or git:REF: the same at another commit; repeatable.",
)
@click.option(
    "--python",
    "named_python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="APP's interpreter or virtual environment; VIRTUAL_ENV's, or the lab's own, without it.",
)
@click.option(
    "--prefer-installed",
    is_flag=True,
    help="Take the server that is installed beside APP, where there is one, not the lab's.",
)
@click.option(
    "--cmd",
    "commands",
    multiple=True,
    metavar="[NAME=]COMMAND",
    help="Any server that listens on 127.0.0.1:{port}; {workers} is filled in too; repeatable.",
)
@click.option("--path", default="/", show_default=True, help="Request target.")
@click.option("--method", default=None, help="Method; POST where there is a body.")
@click.option("--header", "headers", multiple=True, metavar="NAME: VALUE", help="Repeatable.")
@click.option(
    "--body", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="File to send."
)
@click.option("--expect-status", "status", type=click.IntRange(100, 999), default=200)
@click.option("-c", "--connections", type=click.IntRange(1), default=64, show_default=True)
@click.option("-w", "--workers", type=click.IntRange(1), default=1, show_default=True)
@options.budget("Seconds it may take; 15 for each server without it.")
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Exit with 3 if it holds: 'ratio<0.95', 'cpu-ratio>1.05', 'p99>20ms', 'errors>0.1%'; "
    "repeatable.",
)
@options.out
@options.seed
@click.pass_obj
def bench(
    lab: Lab,
    app: str | None,
    server: str,
    against: tuple[str, ...],
    named_python: Path | None,
    prefer_installed: bool,
    commands: tuple[str, ...],
    path: str,
    method: str | None,
    headers: tuple[str, ...],
    body: Path | None,
    status: int,
    connections: int,
    workers: int,
    budget_s: float | None,
    conditions: tuple[str, ...],
    out: Path | None,
    seed: int | None,
) -> None:
    """Measure your own application APP (module:attribute), and say how it compares.

    Ratios are of APP served by --server (or of the first --cmd) over each of the others. Exit
    codes: 0 done, 1 something cannot be measured, 3 a --fail-if holds, 130 interrupted.
    """
    wanted = [Condition.parse(text) for text in conditions]
    content = b"" if body is None else body.read_bytes()
    request = Request(
        path,
        method or ("POST" if content else "GET"),
        tuple(_header(line) for line in headers),
        content,
        status,
        connections,
    )
    folder = out or default_folder("bench")
    with contextlib.ExitStack() as stack:
        served = None
        if app is not None:
            served = Served(app, servers.app_python(named_python), Path.cwd(), prefer_installed)
        contenders = _contenders(lab, stack, served, server, split_names(against), commands)
        contract().add_workloads([_agreed(lab, contenders, request, workers)])
        seed = random.randrange(1 << 32) if seed is None else seed
        experiment = _experiment(contenders, connections, workers, budget_s)
        the_plan = plan.make(
            "bench", [experiment], contenders, budget_s=None, random=random.Random(seed), seed=seed
        )
        by_name = {contestant.name: contestant for contestant in contenders}
        with record.Recorder(folder) as recorder:
            recorder.head(head_of(the_plan, [experiment], contenders, {}))
            finish(Session(lab, folder, the_plan, by_name), recorder, None, draw_it=_show)
    figures = _figures(folder)
    held = [line for one in wanted for line in one.held_by(figures[0], figures[1:])]
    for line in held:
        lab.console.print(f"failed: {line}", markup=False)
    if held:
        raise click.exceptions.Exit(3)
    if any(figure.verdict.word == FAILED for figure in figures):
        raise LabError("not all contestants could be measured")


def _experiment(
    contenders: Sequence[Contestant], connections: int, workers: int, budget_s: float | None
) -> Experiment:
    series = Series(
        "closed",
        "closed",
        f"closed loop, {connections} connections",
        Load(connections=connections),
        (servers.OWN,),
        workers=workers,
        is_article=False,
    )
    return Experiment(
        "bench",
        "An application of one's own",
        "How does it compare?",
        tuple(contestant.name for contestant in contenders),
        (series,),
        budget_s if budget_s is not None else 15.0 * (len(contenders) + 1),
        contenders[0].name,
        window_s=1.0,
    )


def _contenders(
    lab: Lab,
    stack: contextlib.ExitStack,
    served: Served | None,
    server: str,
    against: Sequence[str],
    commands: Sequence[str],
) -> list[Contestant]:
    """Return who is measured, the one under test first."""
    here = Path.cwd()
    found: list[Contestant] = []
    if served is not None:
        interface = servers.interface_of(served.app, here, served.python)
        found.append(served.by(lab, server, interface))
        for name in against:
            if name.startswith("git:"):
                found.append(_at_commit(lab, stack, name, served, server, interface))
            else:
                found.append(served.by(lab, name, interface))
    elif against:
        raise LabError("--against serves APP with other servers; name APP as module:attribute")
    for number, text in enumerate(commands, 1):
        name, command = _named_command(text, number)
        found.append(servers.own(name, _words(command), here))
    names = [contestant.name for contestant in found]
    if not found:
        raise LabError("nothing to measure: name APP as module:attribute, or give --cmd")
    if len(set(names)) < len(names):
        raise LabError(f"two of {', '.join(names)} have the same name; use --cmd NAME=COMMAND")
    return found


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise LabError(f"--cmd {command!r}: {error}") from None


def _named_command(text: str, number: int) -> tuple[str, str]:
    name, equals, command = text.partition("=")
    if not equals or not name.replace("-", "").replace(".", "").isalnum():
        name, command = f"cmd-{number}", text
    if "{port}" not in command:
        raise LabError(f"--cmd {text!r} does not say {{port}}, where it has to listen")
    return name, command


def _at_commit(
    lab: Lab,
    stack: contextlib.ExitStack,
    name: str,
    served: Served,
    server: str,
    interface: str,
) -> Contestant:
    here = served.folder
    commit, folder = stack.enter_context(worktree.of(name.removeprefix("git:"), here))
    contestant = replace(served, folder=folder).by(lab, server, interface)
    environment = dict(contestant.env)
    words = contestant.start
    if worktree.is_citius(here) and server == "citius":
        with lab.console.status(f"building Citius at {commit[:12]} …"):
            site = worktree.build_citius(commit, folder)
        # The application stays the one that is here: what differs is the server.
        folder = here
        environment["PYTHONPATH"] = os.pathsep.join([str(site), str(here), *served.python.sites])
        words = ("{python}", "-m", "citius", *words[1:])
    return servers.own(
        name, words, folder, version=f"{server} at {commit[:12]}", environment=environment
    )


def _agreed(lab: Lab, contenders: Sequence[Contestant], request: Request, workers: int) -> Workload:
    """Ask every contestant once; return the workload, the first one's response as the right one.

    Raises:
        LabError: One of them does not start, or its response differs.
    """
    log = Path(launch.scratch(), "bench.log")
    answers: dict[str, list[bytes]] = {}
    for contestant in contenders:
        with lab.console.status(f"asking {contestant.name} …"):
            answers[contestant.name] = _ask(contestant, request, workers, log)
    reference = answers[contenders[0].name]
    is_stable = reference[0] == reference[1]
    for name, bodies in answers.items():
        if is_stable and bodies[0] != reference[0]:
            first = contenders[0].name
            raise LabError(
                f"{name} does not answer what {first} does: {_short(bodies[0])}, "
                f"expected {_short(reference[0])}"
            )
    if not is_stable:
        lab.console.print("answers differ from request to request: only their status is checked")
    return request.workload(reference[0], is_stable=is_stable)


def _ask(contestant: Contestant, request: Request, workers: int, log: Path) -> list[bytes]:
    case = request.case(is_stable=False)
    try:
        with launch.Server(contestant, workers=workers, cpus=(), log_path=log) as server:
            chance = random.Random()
            return [session.verify_case(server.port, case, chance).body for _ in range(2)]
    except (WrongResponse, OSError) as error:
        raise LabError(f"{contestant.name} does not answer as it should: {error}") from error
    except LaunchError as error:
        raise LabError(str(error)) from error


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise LabError(f'a header is "Name: value", got {line!r}')
    return name.strip(), value.strip()


def _short(body: bytes) -> str:
    return repr(body) if len(body) <= 80 else f"{body[:77]!r}… ({len(body)} bytes)"


# --- the table ------------------------------------------------------------------------------------


def _figures(folder: Path) -> list[Figure]:
    """Return the figures of all, the one under test first."""
    analysis = analyse.analyse(record.load(folder))
    return [analysis.figures["bench/closed", servers.OWN, name] for name in analysis.contestants]


def _show(lab: Lab, folder: Path, baseline: str | None) -> None:
    draw(lab, folder, baseline, tables=False)
    found = record.load(folder)
    analysis = analyse.analyse(found)
    if not analysis.figures:
        return
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    first = analysis.contestants[0]
    columns = (
        "requests/s", f"{first} is ×", "CPU µs", "CPU ×", "p50 ms", "p99 ms", "MB", "verdict", "version",
    )  # fmt: skip
    for column in columns:
        table.add_column(column, justify="left" if column in WORDS else "right", no_wrap=True)
    labels = {entry["name"]: entry["label"] for entry in found.run["contestants"]}
    for figure in _figures(folder):
        name = figure.contestant
        table.add_row(name, *_row(figure), Text("" if labels[name] == name else labels[name]))
    lab.console.print(table)
    for figure in _figures(folder):
        for reason in figure.reasons:
            of_rate = reason in figure.verdict.reasons
            word = figure.verdict.word if of_rate else f"CPU time {figure.cost_verdict.word}"
            line = f"{figure.contestant}, {word}: {reason}"
            lab.console.print(line, markup=False)
    for noise in analysis.noise:
        lab.console.print(
            f"noise floor: {noise.contestant} against itself {ratio_text(noise.ratio)}"
        )


def _row(figure: Figure) -> list[Text]:
    verdict = Text(figure.verdict.word)
    if figure.verdict.word == FAILED or figure.rate is None:
        return [Text("")] * 7 + [verdict]
    ratio = None if figure.ratio is None else figure.ratio.inverse()
    cpu_ratio = None if figure.cpu_ratio is None else figure.cpu_ratio.inverse()
    mark = "" if figure.verdict.word == VALID else "?"
    tie = report_words.tie(figure)
    spread = "" if figure.rate.spread is None else f" ±{figure.rate.spread:.0%}"
    return [
        Text(f"{figure.rate.value:,.0f}{spread}{mark}".replace(",", " ")),
        Text(tie + ratio_text(ratio)),
        Text(_cpu_text(figure)),
        Text("" if cpu_ratio is None else f"{cpu_ratio.value:.2f}"),
        Text("" if figure.p50_ms is None else f"{figure.p50_ms:.3g}"),
        Text("" if figure.p99_ms is None else f"{figure.p99_ms:.3g}"),
        Text(f"{(figure.pss_kib or 0) * 1024 / 1e6:.1f}"),
        verdict,
    ]


def _cpu_text(figure: Figure) -> str:
    if figure.cpu_us is None:
        return ""
    return f"{figure.cpu_us.value:.3g}{report_words.mark(figure.cost_verdict)}"


# Columns of the table that are no numbers.
WORDS = ("verdict", "version")
