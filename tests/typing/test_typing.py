"""The types are what users see of the package: both checkers accept usage.py and refuse misuse.py."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def basedpyright(name: str) -> set[int]:
    """The lines with errors."""
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error",
         "--pythonpath", sys.executable, "--project", str(HERE / "pyrightconfig.json")],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 2
    return {
        one["range"]["start"]["line"] + 1
        for one in found["generalDiagnostics"]
        if Path(one["file"]).name == name
    }


def mypy(name: str) -> set[int]:
    """The lines with errors."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(HERE / name)],
        capture_output=True, text=True, cwd=ROOT, env={"MYPYPATH": "python", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    errors = re.findall(rf"^.*{name}:(\d+): error", done.stdout, re.M)
    return {int(number) for number in errors}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("check", [basedpyright, mypy])
def test_good_use_is_accepted_and_misuse_is_not(check) -> None:
    assert check("usage.py") == set()
    lines = (HERE / "misuse.py").read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert check("misuse.py") == wrong


@pytest.mark.timeout(120)
def test_the_stub_is_the_module() -> None:
    allowlist = HERE / "stubtest-allowlist.txt"
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--allowlist", str(allowlist), "citius._core"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
