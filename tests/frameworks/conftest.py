"""Servers for every framework; `make test-frameworks` runs this folder where all of them are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

IS_HERE = all(find_spec(name) for name in ("httpx", "uvicorn", "gunicorn", "litestar"))
collect_ignore_glob = [] if IS_HERE else ["test_*.py"]


def pytest_report_header() -> str | None:
    if not IS_HERE:
        return "tests/frameworks is left out: its frameworks are not here; make test-frameworks"
    return None


if IS_HERE:
    import servers
    from servers import APPS, Pair, Running


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the applications find their files."""
    made = tmp_path_factory.mktemp("course")
    (made / "course.bin").write_bytes(bytes(range(256)) * 1000)
    return made


@pytest.fixture(scope="session")
def django_database(folder: Path) -> None:
    """A database with the tables of the project and a superuser."""
    env = {
        **os.environ, "PYTHONPATH": str(APPS), "COURSE_DIR": str(folder),
        "DJANGO_SETTINGS_MODULE": "shop.settings", "DJANGO_SUPERUSER_PASSWORD": "secret",
    }  # fmt: skip
    for words in (
        ["migrate", "--verbosity", "0"],
        ["createsuperuser", "--noinput", "--username", "admin", "--email", "admin@shop.test"],
        ["collectstatic", "--noinput", "--verbosity", "0"],
    ):
        command = [sys.executable, "-m", "django", *words]
        subprocess.run(command, cwd=folder, env=env, check=True, timeout=60)


@pytest.fixture(scope="session")
def reference(folder: Path) -> Iterator[Callable[..., Running]]:
    """`reference("uvicorn", target)`: one for each application, however many ask."""
    made: dict[tuple[str, str], Running] = {}

    def start(kind: str, target: str, **env: str) -> Running:
        key = (kind, target)
        if key not in made:
            made[key] = getattr(servers, kind)(target, folder, **env)
        return made[key]

    yield start
    for server in made.values():
        server.kill()


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, reference, folder: Path) -> Iterator[Pair]:
    """Citius and the reference with the application that the module or the test names.

    The parameter: interface, target, options of Citius, environment of both.
    """
    interface, target, options, env = request.param
    theirs = reference({"asgi": "uvicorn", "wsgi": "gunicorn"}[interface], target, **env)
    ours = servers.citius(target, folder, *options, **env)
    yield Pair(ours, theirs)
    ours.kill()
