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


def examples(directory: Path) -> None:
    """Write the Python blocks of the guides, as tests/tidy/test_docs.py runs them, and pyright's settings."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = ""
        blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
        for index, block in enumerate(blocks):
            before = before + block if block.startswith("# …\n") else block
            (directory / f"{page.stem.replace('-', '_').lower()}_{index}.py").write_text(before)
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT / "python")],
        "reportMissingModuleSource": "none",
    }
    (directory / "pyrightconfig.json").write_text(json.dumps(settings))


# What examples import besides citius and msgspec.
_PACKAGES = ("httpx", "pydantic", "jwt")


@pytest.mark.timeout(300)
def test_the_examples_of_the_guides_have_no_error(tmp_path: Path) -> None:
    for name in _PACKAGES:
        pytest.importorskip(name, reason="an example needs it")
    examples(tmp_path)
    files = sorted(map(str, tmp_path.glob("*.py")))
    assert len(files) > 60
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--level", "error",
         "--pythonpath", sys.executable, "--project", str(tmp_path / "pyrightconfig.json")],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", *files],
        capture_output=True, text=True, cwd=tmp_path,
        env={"MYPYPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(120)
def test_the_stub_is_the_module() -> None:
    allowlist = HERE / "stubtest-allowlist.txt"
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--allowlist", str(allowlist), "citius._core"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_stub_of_serial_commands_is_made_from_the_others() -> None:
    """`scripts/redis_sync_stub.py` and `ruff format` write it."""
    script = ROOT / "scripts/redis_sync_stub.py"
    assert subprocess.run([sys.executable, str(script), "--check"]).returncode == 0
