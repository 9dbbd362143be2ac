"""`citius new` and `citius dev`: the project runs, its tests pass, and strict type checkers find nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import Server

BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new")
    ended = run(folder, sys.executable, "-m", "citius", "new", "my-shop")
    assert ended.returncode == 0, ended.stderr
    assert "README.md says how to go on" in ended.stdout
    return folder / "my-shop"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    # Not the options of the run that this is part of.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=110, env=environment
    )


def test_its_tests_pass(project: Path) -> None:
    # Installed, citius is found as a plugin without being named; this tree may not be what is installed.
    plugin = ["-p", "no:citius", "-p", "citius.testing.plugin"]
    ended = run(project, sys.executable, "-m", "pytest", "-q", *plugin)
    assert ended.returncode == 0, ended.stdout
    assert "4 passed" in ended.stdout


CHECKERS = {
    "basedpyright": ("basedpyright", "--pythonpath", sys.executable),
    "mypy": ("mypy",),
    "ruff check": ("ruff", "check"),
    "ruff format": ("ruff", "format", "--check"),
}


@pytest.mark.parametrize("command", CHECKERS.values(), ids=CHECKERS)
def test_it_is_typed_and_formatted(project: Path, command: tuple[str, ...]) -> None:
    if not (BIN / command[0]).exists():
        pytest.skip(f"{command[0]} is not here")
    ended = run(project, str(BIN / command[0]), *command[1:])
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture
def dev(project: Path) -> Iterator[Server]:
    module = project / "my_shop" / "broken.py"
    module.write_text(
        "import time\n\n"
        "from my_shop.app import app\n\n\n"
        '@app.get("/broken/{name}")\n'
        "def broken(name: str) -> None:\n"
        "    raise ValueError(name)\n\n\n"
        '@app.get("/keeps")\n'
        "async def keeps() -> str:\n"
        '    return time.sleep(0.3) or "kept"\n'
    )
    server = Server(
        ["my_shop.broken:app", "--port", "0"], {"PYTHONDEVMODE": ""}, project, command="dev"
    )
    yield server.wait_ready()
    server.kill()
    module.unlink()


def test_it_runs_under_dev(dev: Server) -> None:
    assert dev.get("/").status == 200
    assert dev.get("/docs").status == 200
    assert b'"/items/{id}"' in dev.get("/openapi.json").body
    page = dev.get("/broken/%3Cscript%3E", accept="text/html").body.decode()
    assert "ValueError: &lt;script&gt;" in page
    assert "broken.py:8" in page
    assert "<script>" not in page
    assert "Traceback (most recent call last)" in dev.get("/broken/x").body.decode()
    assert dev.get("/keeps").body == b"kept"
    dev.wait_for_log(r"keeps.* kept the event loop's thread for \d+ ms")


def test_what_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for name, why in {
        "full": "not empty",
        "1st": "expected a name",
        "class": "expected a name",
    }.items():
        ended = run(tmp_path, sys.executable, "-m", "citius", "new", name)
        assert ended.returncode == 2
        assert why in ended.stderr
