"""The commands that measure: ``citius lab run | resume | rerun``."""

from __future__ import annotations

import contextlib
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citius_lab import record
from citius_lab.commands import count, options, results
from citius_lab.commands.base import Lab, build_all, lab, split_names
from citius_lab.commands.display import Display, budget_table
from citius_lab.definitions import certificate, contestants, experiments
from citius_lab.errors import ClusterGone, LabError
from citius_lab.judge.verdict import FOREIGN_MAX
from citius_lab.measure import drive, plan
from citius_lab.measure.run import Run
from citius_lab.processes import callgrind, environment, exclusive

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from citius_lab.cluster.driver import Cluster
    from citius_lab.definitions.contestants import Contestant


@dataclass(frozen=True, slots=True)
class Session:
    """One result folder that is being written, and what it takes to write it."""

    lab: Lab
    folder: Path
    plan: plan.Plan
    contestants: Mapping[str, Contestant]
    before: Sequence[dict[str, Any]] = ()
    cluster: Cluster | None = None


@lab.command("run")
@click.argument("name", metavar="EXPERIMENT")
@options.out
@options.budget(
    "Seconds the measurement may take, building excluded; the experiment's own without it.",
    "--time-budget",
)
@options.only("Only these contestants, whatever the experiment names; repeatable.")
@options.baseline
@options.seed
@click.option(
    "--workers",
    type=click.IntRange(0),
    default=None,
    help="Workers of each server where the experiment has one; 0: as many as there are CPUs for them.",
)
@click.option(
    "--cluster",
    "scheduler",
    default=None,
    metavar="ADDRESS",
    help="Generate the load on the workers of the Dask cluster with this scheduler, tcp://scheduler:8786; "
    "contestants run on this host. Needs citius-lab[cluster] on all of them.",
)
@click.option(
    "--host",
    default=None,
    metavar="ADDRESS",
    help="With --cluster: the address of this host at which workers reach it; "
    "that of the way to the scheduler "
    "without it. Contestants listen on all addresses then.",
)
@click.option(
    "--link-mbit",
    type=click.FloatRange(0, min_open=True),
    default=None,
    metavar="MBIT",
    help="With --cluster: what each machine's link carries, where its device does not say it.",
)
@click.option(
    "--instructions",
    is_flag=True,
    help="Count instructions per request afterwards, as `citius lab count` does, beyond the budget.",
)
@click.option("--dry-run", is_flag=True, help="Show the time budget and stop.")
@click.pass_obj
def run_(
    lab: Lab,
    name: str,
    out: Path | None,
    budget_s: float | None,
    names: tuple[str, ...],
    baseline: str | None,
    seed: int | None,
    workers: int | None,
    scheduler: str | None,
    host: str | None,
    link_mbit: float | None,
    instructions: bool,
    dry_run: bool,
) -> None:
    """Measure EXPERIMENT, such as quick, rest, japronto, h2, or all.

    `citius lab experiments` names them all, says what each of them asks, and which are no part of
    `all`.
    """
    chosen_experiments = experiments.named(name, lab.experiments())
    if workers is not None:
        chosen_experiments = [one.with_workers(workers) for one in chosen_experiments]
    if instructions and (reason := callgrind.missing()) is not None:
        raise LabError(reason)
    found = lab.found()
    wanted = split_names(names)
    chosen = _chosen(found, chosen_experiments, wanted)
    if scheduler is None and (host is not None or link_mbit is not None):
        raise LabError(
            "--host and --link-mbit say how a cluster reaches this host; give --cluster too"
        )
    drive.load_command()  # its absence is better said before minutes of building
    left_out = _left_out_without_building(chosen) if dry_run else build_all(lab, chosen)
    ready = [contestant for contestant in chosen if contestant.name not in left_out]
    if not ready:
        raise LabError("no contestant is left to measure; `citius lab list` says what is missing")
    seed = random.randrange(1 << 32) if seed is None else seed
    the_plan = plan.make(
        name,
        chosen_experiments,
        ready,
        budget_s=budget_s,
        random=random.Random(seed),
        seed=seed,
        chosen=bool(wanted),
        baseline=baseline,
    )
    lab.console.print(budget_table(the_plan))
    if dry_run:
        return
    if not the_plan.parts:
        raise LabError(f"none of {', '.join(one.name for one in ready)} can do what {name} asks")
    folder = out or default_folder(name)
    by_name = {contestant.name: contestant for contestant in ready}
    with (
        _cluster(lab, scheduler, host, link_mbit) as cluster,
        record.Recorder(folder) as recorder,
    ):
        head = head_of(the_plan, chosen_experiments, chosen, left_out)
        recorder.head(head if cluster is None else head | {"cluster": cluster.as_record()})
        for left, reason in left_out.items():
            recorder.write("left out", contestant=left, reason=reason.splitlines()[0])
        finish(Session(lab, folder, the_plan, by_name, cluster=cluster), recorder, baseline)
    if instructions:
        count.count(lab, folder)
        results.draw(lab, folder, baseline, tables=False)


@lab.command()
@options.folder
@click.pass_obj
def resume(lab: Lab, folder: Path) -> None:
    """Go on with the interrupted run in FOLDER, to the end of its plan."""
    before = record.load(folder)
    the_plan = plan.Plan.from_record(before.run["plan"])
    ended = before.of_kind("end")
    if ended and not ended[-1]["interrupted"]:
        raise LabError(f"the run in {folder} came to its end; nothing is left to do")
    _refuse_bench(lab, folder, the_plan)
    by_name = contestants_of(lab, the_plan)
    with (
        _cluster_of(lab, before.run) as cluster,
        record.Recorder(folder, resume=True) as recorder,
    ):
        before = record.load(folder)  # as they are now that nothing else writes them
        recorder.write("resume", environment=environment.capture())
        session = Session(lab, folder, the_plan, by_name, before.records, cluster)
        finish(session, recorder, None)


@lab.command()
@options.folder
@options.out
@options.budget("Seconds it may take; as long as the first run without it.")
@options.only("Only these of its contestants.")
@click.pass_context
def rerun(
    ctx: click.Context,
    folder: Path,
    out: Path | None,
    budget_s: float | None,
    names: tuple[str, ...],
) -> None:
    """Repeat the run in FOLDER with its contestants and say which figures reproduced."""
    lab: Lab = ctx.obj
    first = record.load(folder)
    the_plan = plan.Plan.from_record(first.run["plan"])
    _refuse_bench(lab, folder, the_plan)
    measured = _measured(first, the_plan)
    wanted = split_names(names)
    if unknown := [name for name in wanted if name not in measured]:
        raise LabError(
            f"{folder} has no figure of {', '.join(unknown)}; it has {', '.join(measured)}"
        )
    again = out or default_folder(f"{the_plan.name}-again")
    known: dict[str, Any] = first.run.get("cluster") or {}
    ctx.invoke(
        run_,
        name=the_plan.name,
        out=again,
        budget_s=budget_s if budget_s is not None else the_plan.budget_s,
        # A run of all contestants stays one: then each experiment has those it names.
        names=tuple(wanted or measured) if len(the_plan.parts) == 1 or wanted else (),
        baseline=None,
        seed=None,
        workers=experiments.workers_of(first.run, lab.experiments()),
        scheduler=known.get("scheduler"),
        host=known.get("host"),
        link_mbit=known.get("link_mbit"),
        instructions=bool(first.counts),
        dry_run=False,
    )
    results.print_comparison(lab, folder, again, reproduce=True)


def _measured(first: record.Results, the_plan: plan.Plan) -> list[str]:
    """Return the contestants of a run; a kept one has no blocks in its plan, but their records."""
    planned = [name for part in the_plan.parts for name in part.contestants()]
    recorded = [
        entry["contestant"]
        for entry in first.records
        if "contestant" in entry and entry["kind"] != "left out"
    ]
    return list(dict.fromkeys(planned or recorded))


@contextlib.contextmanager
def _cluster(
    lab: Lab, scheduler: str | None, host: str | None, link_mbit: float | None
) -> Generator[Cluster | None]:
    """Yield the cluster whose workers generate the load; ``None`` without one.

    Raises:
        LabError: It cannot be used.
    """
    if scheduler is None:
        yield None
        return
    from citius_lab.cluster import driver  # its imports are not for runs without one

    own = host or driver.own_address(scheduler)
    with driver.Cluster(scheduler, own, link_mbit=link_mbit) as found:
        for worker in found.workers:
            lab.console.print(
                f"generator: {worker.name}, {worker.survey['cpus']} CPUs", markup=False
            )
        yield found


def _cluster_of(
    lab: Lab, run: Mapping[str, Any]
) -> contextlib.AbstractContextManager[Cluster | None]:
    """Return the cluster of an earlier run, asked again."""
    known: dict[str, Any] = run.get("cluster") or {}
    return _cluster(lab, known.get("scheduler"), known.get("host"), known.get("link_mbit"))


# --- shared ---------------------------------------------------------------------------------------


def finish(
    session: Session,
    recorder: record.Recorder,
    baseline: str | None,
    draw_it: Callable[[Lab, Path, str | None], None] = results.draw,
) -> None:
    """Carry the plan out and draw its report; leave with 130 if it was interrupted."""
    lab, places = session.lab, session.plan.placements.values()
    blocks = [block for part in session.plan.parts for block in part.blocks]
    for name in {block.contestant for block in blocks if block.manner == "tls"}:
        certificate.make(session.contestants[name].build_root)
    _warn_of_foreign_load(lab)
    everything = os.sched_getaffinity(0)
    # The lab itself stays off the CPUs of servers, where that is possible.
    os.sched_setaffinity(0, {cpu for place in places for cpu in place.load_cpus})
    gone: ClusterGone | None = None
    try:
        with exclusive.measuring(session.folder), Display(lab.console, session.plan) as display:
            contestants = dict(session.contestants)
            finished = Run(
                session.plan, contestants, recorder, display, session.before, session.cluster
            ).carry_out()
    except ClusterGone as error:
        gone, finished = error, False
    finally:
        os.sched_setaffinity(0, everything)
    said = f"interrupted; the records are kept: citius lab resume {session.folder} goes on"
    try:
        draw_it(lab, session.folder, baseline)
    except KeyboardInterrupt:
        if finished:
            said = (
                f"interrupted; the records are kept: citius lab report {session.folder} draws them"
            )
        finished = False
    if gone is not None:
        raise LabError(
            f"{gone}; the records are kept: citius lab resume {session.folder} goes on"
        ) from gone
    if not finished:
        lab.console.print(said, soft_wrap=True, markup=False)
        raise click.exceptions.Exit(130)


def head_of(
    the_plan: plan.Plan,
    asked: Sequence[experiments.Experiment],
    chosen: Sequence[Contestant],
    left_out: Mapping[str, str],
) -> dict[str, Any]:
    """Return the contents of ``run.json``."""
    baselines = {part.experiment: part.baseline for part in the_plan.parts}
    return {
        "name": the_plan.name,
        "started_at": time.time(),
        "plan": the_plan.as_record(),
        "experiments": [
            {**one.as_record(), "baseline": baselines.get(one.name, one.baseline)} for one in asked
        ],
        "environment": environment.capture(),
        "load": " ".join(drive.load_command()),
        "load_sha256": environment.sha256(drive.load_command()[0]),
        "contestants": [one.as_record(asked=one.name not in left_out) for one in chosen],
    }


def contestants_of(lab: Lab, the_plan: plan.Plan) -> dict[str, Contestant]:
    """Return the contestants of a plan, built.

    Raises:
        LabError: One of them is not here, or does not build any more.
    """
    names = list(dict.fromkeys(name for part in the_plan.parts for name in part.contestants()))
    chosen = contestants.choose(lab.found(), names)
    if missing := build_all(lab, chosen):
        raise LabError(f"cannot go on without {', '.join(missing)}")
    return {contestant.name: contestant for contestant in chosen}


def _refuse_bench(lab: Lab, folder: Path, the_plan: plan.Plan) -> None:
    if the_plan.name not in (*lab.experiments(), experiments.ALL):
        raise LabError(
            f"{folder} holds a {the_plan.name} of applications that only its command line knew; "
            "give that command line again"
        )


def default_folder(name: str) -> Path:
    """Return a new result folder's path: ``lab/results`` at the top of a checkout, else ``citius-lab``."""
    folder = time.strftime(f"{name}-%Y%m%d-%H%M%S")
    root = Path("lab", "results") if Path("lab", "citius_lab").is_dir() else Path("citius-lab")
    return root / folder


def _chosen(
    found: Mapping[str, Contestant],
    asked: Sequence[experiments.Experiment],
    wanted: Sequence[str],
) -> list[Contestant]:
    if wanted:
        return contestants.choose(dict(found), wanted)
    names = dict.fromkeys(name for one in asked for name in one.contestants if name in found)
    return [found[name] for name in names]


def _left_out_without_building(chosen: Sequence[Contestant]) -> dict[str, str]:
    reasons = {contestant.name: contestant.missing() for contestant in chosen}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _warn_of_foreign_load(lab: Lab) -> None:
    share = environment.foreign_share()
    if share > FOREIGN_MAX:
        lab.console.print(
            f"other programs keep {share:.1f} CPUs busy right now; figures will be suspect"
        )
