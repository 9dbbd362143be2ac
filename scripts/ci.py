"""The checks of a change, and of a night: verbs of make, two at a time, and what can wait beside them.

    python3 scripts/ci.py [change|nightly]

``.ci/run`` prepares the machine and calls this; only the standard library is needed. A check starts when
those it stands after have ended and fewer than two are running, in the order of the list. A check that
only compiles or searches runs beside those two, at the lowest priority: tests wait for half of their time.
The output of each is kept in ``target/ci/<name>.log`` and printed when it ends. No check is tried again.

After a failure of a check of the gate (it is formatted, typed, compiled, and cargo's tests pass) no other
check starts. The failure of another stops nothing: what all of them found is listed at the end. A check that
prints a line ``missing: …`` and fails is missing, not failed: it needs something that no script of the
project installs. A line ``without: …`` names a part left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

ROOT = Path(__file__).parent.parent
LOGS = ROOT / "target/ci"
LANES = 2
# Processes of pytest in each lane.
JOBS = "2"

printing = threading.Lock()
Outcome = Literal["passed", "missing", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("passed", "missing", "failed")


@dataclass(frozen=True, slots=True)
class Check:
    """One command, most often a verb of make.

    Args:
        name: Of its log, and in the summary.
        command: What is run, in the root of the repository.
        after: Names of the checks that must have ended; those of the gate have passed then.
        is_gate: After its failure no other check starts.
        needs: A command that must be in PATH; without it the check is missing.
        is_idle: It waits for the network or timers, not for a processor, and runs beside ``LANES`` others.
        is_patient: No clock judges it. It has the lowest priority and runs beside ``LANES`` others, one such
            check at a time, and more of them in lanes that nothing else can use.
    """

    name: str
    command: str
    after: tuple[str, ...] = ()
    is_gate: bool = False
    needs: str = ""
    is_idle: bool = False
    is_patient: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """How a check ended.

    Args:
        took_s: From its begin to its end.
        cpu_s: CPU time of its processes: what it costs a machine that has other work.
        lines: For the summary: what is missing, or was left out.
    """

    outcome: Outcome
    took_s: float = 0.0
    cpu_s: float = 0.0
    lines: tuple[str, ...] = ()


class Stopped(Exception):
    """A check of the gate has failed."""


def gate(name: str, command: str, *after: str, is_idle: bool = False) -> Check:
    """Return a check of the gate."""
    return Check(name, command, after, is_gate=True, is_idle=is_idle)


# What cargo checks needs no environment. The link of the extension leaves a processor idle for minutes, in
# which the environments of the judges are made. A judge that needs what could not be installed fails itself,
# with the reason.
BUILD = (
    gate("tools", ".ci/tools", is_idle=True),
    gate("setup", "make setup"),
    gate("check-rust", "make check-rust"),
    Check("environments", "make environments PYTHONS=3.14", ("setup", "tools"), is_idle=True),
    gate("build", "make .venv/made/lab", "setup"),
    gate("test-rust", "make test-rust", "check-rust"),
    gate("check-python", "make check-python", "build"),
)
# What tests and judges need; the checks of sources run beside them.
BUILT = tuple(one.name for one in BUILD if one.name != "check-python")
# Tests wait for more than half of their time: three processes use one processor. The lab has one process:
# some of its tests measure for tenths of a second, and so need a processor. Judges stand behind the same
# checks, so that no lane is empty.
TESTS = (
    Check("test-python", "make test-python JOBS=3", BUILT),
    Check("test-lab", "make test-lab LAB_JOBS=1", BUILT),
)


def judge(
    name: str, command: str, needs: str = "", *, is_idle: bool = False, is_patient: bool = False
) -> Check:
    """Return a judge; it begins when the build has passed, beside the tests."""
    return Check(
        name, f"make {command}", BUILT, needs=needs, is_idle=is_idle, is_patient=is_patient
    )


# The longest first, so that no lane is left with a long one at the end.
JUDGES = (
    judge("newest-python", "test-matrix PYTHONS=3.14 CASES=inside"),
    judge("frameworks", "test-frameworks"),
    judge("fuzz", "fuzz SECONDS=4", is_patient=True),
    judge("connect-conformance", "connect-conformance CASES=fast", "go"),
    judge("instructions", "check-instructions"),
    judge("mcp-conformance", "mcp-conformance"),
    judge("wheel", "check-wheel", is_patient=True),
    judge("test-portable", "test-portable CASES=fast"),
    judge("autobahn", "autobahn CASES=fast"),
    judge("fuzz-requests", "fuzz-requests"),
    judge("h2spec", "h2spec", "go"),
    judge("h3spec", "h3spec", "mvn"),
    judge("grpc-interop", "grpc-interop", "go"),
    judge("acme", "acme", "go", is_idle=True),
    judge("tus", "tus", "npm"),
    judge("site", "site", is_patient=True),
)
NIGHT = (gate("tools", ".ci/tools"), gate("nightly", "make test-nightly", "tools"))
LISTS = {"change": (*BUILD, *TESTS, *JUDGES), "nightly": NIGHT}


def main(arguments: Sequence[str]) -> int:
    """Run a list of checks, and return the exit code."""
    name = arguments[0] if arguments else "change"
    if name not in LISTS or len(arguments) > 1:
        print(f"usage: ci.py [{'|'.join(LISTS)}]", file=sys.stderr)
        return 2
    os.chdir(ROOT)
    LOGS.mkdir(parents=True, exist_ok=True)
    try:
        results = run(LISTS[name], execute)
    except Stopped as error:
        say(f"failed: {error}")
        return 1
    print("\n".join(summary(results)), flush=True)
    failed = [name for name, result in results.items() if result.outcome == "failed"]
    say(f"failed: {', '.join(failed)}" if failed else "done")
    return 1 if failed else 0


def run(checks: Iterable[Check], start: Callable[[Check], Result]) -> dict[str, Result]:
    """Run checks, ``LANES`` at a time, each after those it depends on.

    Args:
        checks: In the order in which they start if nothing keeps them.
        start: Runs one check and returns how it ended; called in a thread for each.

    Raises:
        Stopped: A check of the gate has failed, or is missing; those that were running have ended.
    """
    waiting = list(checks)
    gates = {check.name for check in waiting if check.is_gate}
    running: dict[str, Check] = {}
    results: dict[str, Result] = {}
    ended: SimpleQueue[tuple[str, Result]] = SimpleQueue()
    failed = ""
    began_at = time.monotonic()
    while waiting or running:
        for check in startable(waiting, running, results):
            waiting.remove(check)
            running[check.name] = check
            threading.Thread(target=report, args=(check, start, ended)).start()
        name, results[name] = ended.get()
        if running.pop(name).is_gate and results[name].outcome != "passed":
            failed = failed or name
            waiting.clear()
        elif name in gates and not failed and results.keys() >= gates:
            say(f"the gate: passed, {time.monotonic() - began_at:.0f} s")
    if failed:
        raise Stopped(failed)
    return results


def report(
    check: Check, start: Callable[[Check], Result], ended: SimpleQueue[tuple[str, Result]]
) -> None:
    """Run a check in this thread; an exception is a failure of it, and does not keep the others waiting."""
    try:
        result = start(check)
    except Exception as error:
        result = Result("failed", lines=(repr(error),))
    ended.put((check.name, result))


def startable(
    waiting: Iterable[Check], running: Mapping[str, Check], results: Mapping[str, Result]
) -> list[Check]:
    """Return which checks start now."""
    ready = [one for one in waiting if results.keys() >= set(one.after)]
    idle = [one for one in ready if one.is_idle]
    patient = [one for one in ready if one.is_patient]
    n_patient = sum(one.is_patient for one in running.values())
    n_free = LANES - sum(not (one.is_idle or one.is_patient) for one in running.values())
    busy = [one for one in ready if not (one.is_idle or one.is_patient)][:n_free]
    n_beside = max(1, n_free - len(busy))
    return [*idle, *busy, *patient[: max(0, n_beside - n_patient)]]


def execute(check: Check) -> Result:
    """Run a check; its output goes to a log, which is printed when it ends."""
    if check.needs and shutil.which(check.needs) is None:
        return Result("missing", lines=(f"{check.needs} is not in PATH",))
    say(check.name)
    began_at = time.monotonic()
    log = LOGS / f"{check.name}.log"
    with log.open("wb") as output:
        # Signals that this program's parent ignores have their default again, for tests of signals.
        priority = ["nice", "-n", "19"] if check.is_patient else []
        process = subprocess.Popen(
            ["env", "--default-signal", *priority, *check.command.split()],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={"JOBS": JOBS, **os.environ},
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # it is not waited for again
    text = log.read_text(errors="replace")
    took_s, cpu_s = time.monotonic() - began_at, used.ru_utime + used.ru_stime
    result = judged(process.returncode, text, took_s, cpu_s)
    with printing:
        print(text, end="" if text.endswith("\n") else "\n")
        say(f"{check.name}: {result.outcome}, {times(result)}")
    return result


def times(result: Result) -> str:
    """Return how long a check took."""
    return f"{result.took_s:.0f} s (CPU {result.cpu_s:.0f} s)"


def judged(code: int, log: str, took_s: float, cpu_s: float) -> Result:
    """Return what an exit code and a log mean."""
    missing = tuple(re.findall(r"^missing: (.*)", log, re.MULTILINE))
    if code and missing:
        return Result("missing", took_s, cpu_s, missing)
    without = tuple(f"without {one}" for one in re.findall(r"^without: (.*)", log, re.MULTILINE))
    return Result("failed" if code else "passed", took_s, cpu_s, without)


def summary(results: Mapping[str, Result]) -> list[str]:
    """Return one line for each check, those that failed last, where a reader looks first."""
    lines: list[str] = []
    for outcome in OUTCOMES:
        for name, result in results.items():
            if result.outcome == outcome:
                took = f" {times(result)}" if result.took_s else ""
                lines.append(f"ci:   {outcome:8} {name}{took}{'; '.join(('', *result.lines))}")
    return lines


def say(what: str) -> None:
    """Print a line of this program's own, with the time (UTC)."""
    print(f"ci: {time.strftime('%T', time.gmtime())} {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
