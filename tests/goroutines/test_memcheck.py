"""memcheck of valgrind finds nothing in compiled handlers that wait, on the reactor and on the threads."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind here"),
    pytest.mark.timeout(900),
]

PROGRAM = Path(__file__).with_name("memcheck_program.py")
# A goroutine's stack begins where another one's ends: a larger step of the stack pointer than a frame of this
# program is a switch.
OPTIONS = [
    "--tool=memcheck",
    "--leak-check=no",
    "--max-stackframe=65536",
    "--error-limit=no",
    "--num-callers=30",
]


def test_memcheck_finds_nothing(library_path: Path) -> None:
    done = subprocess.run(
        ["valgrind", *OPTIONS, sys.executable, PROGRAM, library_path],
        capture_output=True, text=True, env=os.environ | {"PYTHONMALLOC": "malloc"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "served\n"), done.stderr
    # What the interpreter itself is told of is its own.
    errors = [
        block
        for block in re.split(r"==\d+== \n", done.stderr)
        if re.search(r"_core\.|goroutines\.so|citius", block) and "at 0x" in block
    ]
    assert not errors, "\n\n".join(errors)
