"""Runs the conformance suite of the Model Context Protocol, an outside judge, against `citius serve`.

mcp_conformance.py TOOLS: the directory that `scripts/setup-mcp` has made. Every scenario of a revision has to
pass, with one worker and with two, also those that the suite runs without counting them; a warning is a
failure. What does not apply is in `NOT_OFFERED`, with the reason; an entry that passes, or that no revision
has, fails the judge, and so does a scenario without a check.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from judged import served

APPLICATION = Path(__file__).parents[1] / "tests/applications/mcp_everything.py"

REVISIONS = {
    "2026-07-28": ["--requirements", "2026-07-28"],
    "2025-11-25": ["--requirements", "2025-11-25"],
    # The suite has no set of requirements for it: all scenarios that it has.
    "2025-06-18": ["--suite", "all", "--spec-version", "2025-06-18"],
}
WORKERS = (1, 2)

_TASKS = "the extension io.modelcontextprotocol/tasks is optional and not declared"
NOT_OFFERED = {
    f"tasks-{name}": _TASKS
    for name in (
        "capability-negotiation", "dispatch-and-envelope", "lifecycle", "mrtr-composition", "mrtr-input",
        "request-headers", "request-state-removal", "required-task-error", "status-notifications",
        "wire-fields",
    )
}  # fmt: skip
"""Scenarios of what Citius does not offer: each runs, and fails or checks nothing."""


def scenarios(output: str) -> dict[str, tuple[int, int]]:
    """How many checks of each scenario have passed and failed, by the suite's summary."""
    _, _, summary = output.partition("=== SUMMARY ===")
    found = re.findall(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", summary, re.M)
    return {name: (int(passed), int(failed)) for name, passed, failed in found}


def mistakes(revision: str, found: dict[str, tuple[int, int]], code: int) -> list[str]:
    """What is not as it should be."""
    wrong = [] if found else [f"{revision}: no scenario has run"]
    if code:
        wrong.append(f"{revision}: the suite ended with exit code {code}")
    for name, (passed, failed) in found.items():
        is_good = passed > 0 and failed == 0
        if name in NOT_OFFERED and is_good:
            wrong.append(f"{revision}: {name} passes; take it out of NOT_OFFERED")
        elif name not in NOT_OFFERED and not is_good:
            wrong.append(f"{revision}: {name}: {passed} checks passed, {failed} failed")
    return wrong


def warnings(revision: str, directory: Path) -> list[str]:
    """What the suite would have otherwise, of what applies."""
    wrong: list[str] = []
    for file in directory.glob("*/checks.json"):
        is_offered = not any(name in file.parent.name for name in NOT_OFFERED)
        for check in json.loads(file.read_text()):
            if is_offered and check["status"] == "WARNING":
                wrong.append(f"{revision}: {check['id']}: {check.get('errorMessage')}")
    return wrong


def judge(tools: Path, port: str, revision: str, directory: str) -> tuple[set[str], list[str]]:
    """The scenarios of a revision that have run, and what is wrong."""
    suite = tools / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    node = tools / "node_modules/.bin/node"
    done = subprocess.run(
        [
            str(node), str(suite), "server", "--url", f"http://localhost:{port}/mcp",
            "--output-dir", directory, *REVISIONS[revision],
        ],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, cwd=directory,
    )  # fmt: skip
    found = scenarios(done.stdout)
    wrong = mistakes(revision, found, done.returncode) + warnings(revision, Path(directory))
    checks = sum(passed for passed, _ in found.values())
    left_out = [name for name in found if name in NOT_OFFERED]
    print(
        f"{revision}: {len(found) - len(left_out)} scenarios with {checks} checks that pass, "
        f"{len(left_out)} that do not apply, {len(wrong)} mistakes"
    )
    if wrong:
        print("\n".join(wrong))
        print("\n".join(re.findall(r"^.*(?:FAILURE|✗).*$", done.stdout, re.M)))
        if not found:
            print(done.stdout[-2000:])
    return set(found), wrong


def main() -> int:
    """Exit code 0: all of it passes."""
    tools = Path(sys.argv[1]).absolute()
    wrong: list[str] = []
    seen: set[str] = set()
    for workers in WORKERS:
        with (
            tempfile.TemporaryDirectory() as directory,
            served(APPLICATION, directory, "--workers", str(workers)) as port,
        ):
            print(f"{workers} worker{'s' * (workers > 1)}:")
            for revision in REVISIONS:
                results = Path(directory) / revision
                results.mkdir()
                found, more = judge(tools, port, revision, str(results))
                seen |= found
                wrong += more
    stale = NOT_OFFERED.keys() - seen
    if stale:
        wrong.append(f"the suite has no scenarios {', '.join(sorted(stale))}")
        print(wrong[-1])
    for reason in sorted(set(NOT_OFFERED.values())):
        names = sorted(name for name, why in NOT_OFFERED.items() if why == reason)
        print(f"does not apply ({reason}): {', '.join(names)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    raise SystemExit(main())
