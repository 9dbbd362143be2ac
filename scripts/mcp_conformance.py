"""Runs the conformance suite of the Model Context Protocol, an outside judge, against `citius serve`.

mcp_conformance.py TOOLS: the directory that `scripts/setup-mcp` has made. All that a revision requires of a
server has to pass, with one worker and with two; there is no list of known failures. The suite runs scenarios
besides that do not count, such as those of extensions.
"""

from __future__ import annotations

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
    "2025-06-18": ["--spec-version", "2025-06-18"],
}
WORKERS = (1, 2)


def judge(tools: Path, port: str, revision: str, directory: str) -> bool:
    """Whether all that a revision requires passes."""
    suite = tools / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    node = tools / "node_modules/.bin/node"
    done = subprocess.run(
        [
            str(node), str(suite), "server", "--url", f"http://localhost:{port}/mcp",
            "--output-dir", directory, *REVISIONS[revision],
        ],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, cwd=directory,
    )  # fmt: skip
    total = re.search(r"^Total: .*$", done.stdout, re.M)
    print(f"{revision}: exit code {done.returncode}, {total[0] if total else done.stdout[-2000:]}")
    if done.returncode or total is None:
        print("\n".join(re.findall(r"^✗.*$", done.stdout, re.M)))
        return False
    return True


def main() -> int:
    """Exit code 0: all of it passes."""
    tools = Path(sys.argv[1]).absolute()
    good = True
    for workers in WORKERS:
        with (
            tempfile.TemporaryDirectory() as directory,
            served(APPLICATION, directory, "--workers", str(workers)) as port,
        ):
            print(f"{workers} worker{'s' * (workers > 1)}:")
            for revision in REVISIONS:
                good = judge(tools, port, revision, directory) and good
    return 0 if good else 1


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    raise SystemExit(main())
