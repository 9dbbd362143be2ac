"""The same test in every place where one can wait: threads, greenlets, coroutines."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import uvloop

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def run_async(main: Callable[[], Coroutine[Any, Any, Any]], loop: str = "asyncio") -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(main(), 10)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(bounded())


def program(name: str) -> Path:
    """A program of the folder `alone`."""
    return Path(__file__).parent / "alone" / f"{name}.py"


def run_alone(
    source: str | Path, *words: str, options: Sequence[str] = ()
) -> CompletedProcess[str]:
    """Run a program in an interpreter of its own: deadlocks and gevent concern whole processes."""
    what = [str(source)] if isinstance(source, Path) else ["-c", textwrap.dedent(source)]
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", *options, *what, *words],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def check_alone(source: str | Path, *words: str) -> str:
    done = run_alone(source, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout
