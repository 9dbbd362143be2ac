"""Keeps a result in the checkout: what its figures are made of, without what only this machine knows.

``citius lab keep FOLDER`` writes ``lab/published/NAME``, a result folder like any other: `citius lab report`
draws it, and its figures are those of the whole one. What no figure is made of is left out: the steps
within windows, the logs, and absolute paths.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from citius_lab import record
from citius_lab.commands import options
from citius_lab.commands.base import Lab, lab
from citius_lab.definitions import experiments
from citius_lab.errors import LabError
from citius_lab.paths import in_checkout, lab_root
from citius_lab.processes.environment import LOCAL_CHANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from citius_lab.definitions.experiments import Experiment


@lab.command("keep")
@options.folder
@click.option("--into", type=click.Path(path_type=Path), help="lab/published without it.")
@click.option(
    "--local-changes",
    is_flag=True,
    help="Keep it even if the measured tree had changes that no commit holds.",
)
@click.pass_obj
def keep_(lab: Lab, folder: Path, into: Path | None, local_changes: bool) -> None:
    """Keep the result FOLDER of one experiment in lab/published, under the experiment's name."""
    if into is None:
        expect_a_checkout("lab/published is", "name a folder with --into")
    if not local_changes:
        expect_a_commit_of(folder)
    if into is None:
        _expect_own_workers(folder, lab.experiments())
    kept = keep(folder, into or lab_root() / PUBLISHED)
    lab.console.print(f"kept: {kept}", soft_wrap=True, markup=False)
    if absent := absent_from(folder, lab.experiments()):
        said = f"the page names contestants that it has no figure of: {', '.join(absent)}"
        lab.console.print(said, soft_wrap=True, markup=False)


def absent_from(folder: Path, found: Mapping[str, Experiment]) -> list[str]:
    """Return the contestants that the page names and a result has no measurement of."""
    results = record.load(folder)
    measured = {one["contestant"] for one in results.of_kind("measurement")}
    asked = (found.get(one["name"]) for one in results.run["experiments"])
    named = (one.answer.names() for one in asked if one is not None and one.answer is not None)
    return [name for names in named for name in names if name not in measured]


def _expect_own_workers(folder: Path, found: Mapping[str, Experiment]) -> None:
    """Refuse a run with other numbers of workers than its experiment has: the page would not say it.

    Raises:
        LabError: It was one with ``--workers``.
    """
    if (workers := experiments.workers_of(record.load(folder).run, found)) is not None:
        raise LabError(
            f"{folder} was measured with --workers {workers}, and would take the place of the result "
            "with the experiment's own numbers; keep it elsewhere with --into"
        )


def expect_a_checkout(what: str, advice: str) -> None:
    """Refuse what only a checkout has; ``what`` begins the message, ``advice`` ends it.

    Raises:
        LabError: The lab was installed from a wheel.
    """
    if not in_checkout():
        raise LabError(
            f"{what} that of a checkout of Citius; this lab is an installed one: {advice}"
        )


def expect_a_commit_of(folder: Path) -> None:
    """Refuse a result that cannot be measured again, because no commit holds what was measured.

    Raises:
        LabError: The measured tree had local changes.
    """
    commit = record.load(folder).run["environment"].get("commit", "")
    expect_a_commit(f"{folder} was measured on", commit)


def expect_a_commit(what: str, commit: str) -> None:
    """Refuse a commit that does not hold all of the code; ``what`` begins the message.

    Raises:
        LabError: The tree has local changes.
    """
    if commit.endswith(LOCAL_CHANGES):
        raise LabError(
            f"{what} {commit}: a commit that holds all of the code was expected, so that "
            "others can measure it again; commit the changes and measure again, or let "
            "`citius lab keep --local-changes` keep the result"
        )


def keep(folder: Path, into: Path) -> Path:
    """Write the part of a result that figures are made of; return its folder.

    Raises:
        LabError: The run did not come to its end, or is one of several experiments.
    """
    results = record.load(folder)
    record.expect_whole(folder, results)
    names = [one["name"] for one in results.run["experiments"]]
    if len(names) != 1:
        raise LabError(
            f"{folder} holds {len(names)} experiments; one can be kept, in a folder of its name"
        )
    own = into / names[0]
    own.mkdir(parents=True, exist_ok=True)
    entries = [_without_details(entry) for entry in results.records]
    run: dict[str, Any] = {**results.run, "kept_records": len(entries)}
    run["environment"] = {
        name: value for name, value in run["environment"].items() if name not in LEFT_OUT_OF_MACHINE
    }
    run["plan"] = {
        **run["plan"],
        "parts": [{**part, "blocks": []} for part in run["plan"]["parts"]],
    }
    paths = _paths(folder, results.of_kind("start"))
    (own / record.RUN).write_text(_relative(json.dumps(run, indent=1) + "\n", paths))
    lines = (json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)
    (own / record.RECORDS).write_text(_relative("".join(lines), paths))
    (own / record.COUNTS).unlink(missing_ok=True)  # those of the result that was kept before
    if results.counts:
        counts = (record.line_of(entry) + "\n" for entry in results.counts)
        (own / record.COUNTS).write_text(_relative("".join(counts), paths))
    return own


def _without_details(entry: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in entry.items() if name != "counts"}
    if "load" in found:
        load = {
            name: value for name, value in found["load"].items() if name not in LEFT_OUT_OF_LOAD
        }
        if not load.get("schedule_lag_us"):
            load.pop("service_histogram", None)  # in a closed loop it is the latency's
        load["options"] = {
            name: value for name, value in load.get("options", {}).items() if name != "mix"
        }
        found["load"] = load
    return found


def _paths(folder: Path, starts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return what stands for this machine's folders, the longest first.

    Args:
        folder: The result's, which its command may name (``--out``).
        starts: The records of servers that were started; their commands name the environment of
            CITIUS_LAB_PYTHON, if that was another one than the lab's.
    """
    root = lab_root().parent
    whole = folder.resolve()
    found = {str(folder.absolute()): whole.name, str(whole): whole.name}
    found[str(root / "python" / "citius" / "__main__.py")] = "citius"
    for path in (Path(sys.prefix), Path(sys.prefix).resolve()):
        found[str(path)] = ".venv"
    for program in {Path(one["command"][0]) for one in starts}:
        if program.is_absolute() and program.parts[-2:] == ("bin", "citius"):
            found.setdefault(str(program.parent.parent), ".venv-contestants")
    found |= {str(root): ".", str(Path.home()): "~"}
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def _relative(text: str, paths: Mapping[str, str]) -> str:
    for path, name in paths.items():
        text = text.replace(path, name)
    return text


PUBLISHED = "published"
LEFT_OUT_OF_MACHINE = ("cgroup",)
LEFT_OUT_OF_LOAD = (
    "intervals",
    "connect_histogram",
    "schedule_lag_histogram",
    "threads",
    "network",
    "statuses",
)
