"""A Dask cluster for tests: a scheduler and two workers, as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rig import wait_for


@contextmanager
def dask_cluster(directory: Path, modules: Path) -> Iterator[str]:
    """Its address; workers can import what is in ``modules``."""
    file = directory / "scheduler.json"
    env = {**os.environ, "PYTHONPATH": str(modules)}
    run = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
    ]

    def start(command: list[str]) -> subprocess.Popen[bytes]:
        with open(directory / "dask.log", "ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=directory)

    programs = [start([*run, "--no-dashboard", "--scheduler-file", str(file)])]
    try:
        # It is made before it is written.
        wait_for(lambda: file.exists() and file.read_text().strip().endswith("}"), "a scheduler")
        address = json.loads(file.read_text())["address"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "2"]
        worker += ["--no-dashboard", "--no-nanny", "--local-directory", str(directory)]
        programs += [start(worker) for _ in range(2)]
        yield address
    finally:
        for program in programs:
            program.kill()
            program.wait()
