"""`citius new` and `citius dev`: the project runs, its tests pass, and strict type checkers find nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from citius.errors import ConfigError
from citius.process.processors import processors
from citius.scaffold import make
from citius.settings.loading import load
from citius.testing.postgres import database, find_binaries
from rig import Server

BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("new"))


@pytest.fixture(scope="module")
def project_with_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("alembic")
    return made(tmp_path_factory.mktemp("new-db"), "--db")


@pytest.fixture(scope="module")
def project_with_rpc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("new-rpc"), "--rpc")


def made(folder: Path, *options: str) -> Path:
    ended = run(folder, sys.executable, "-m", "citius", "new", "my-shop", *options)
    assert ended.returncode == 0, ended.stderr
    assert "README.md says how to go on" in ended.stdout
    return folder / "my-shop"


def run(
    folder: Path, *command: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    # Not the options of the run that this is part of.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
    environment |= env or {}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=110, env=environment
    )


def test_its_tests_pass(project: Path) -> None:
    # Installed, citius is found as a plugin without being named; this tree may not be what is installed.
    plugin = ["-p", "no:citius", "-p", "citius.testing.plugin"]
    ended = run(project, sys.executable, "-m", "pytest", "-q", *plugin)
    assert ended.returncode == 0, ended.stdout
    assert "4 passed" in ended.stdout


def test_the_tests_of_one_with_a_database_pass(project_with_database: Path) -> None:
    if find_binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    plugin = ["-p", "no:citius", "-p", "citius.testing.plugin"]
    ended = run(project_with_database, sys.executable, "-m", "pytest", "-q", *plugin)
    assert ended.returncode == 0, ended.stdout
    assert "7 passed" in ended.stdout


CONNECT = Path(__file__).parents[2] / ".tools/connect/environment/bin"
needs_connect = pytest.mark.skipif(
    not CONNECT.exists(), reason="`make .tools/connect/ready` installs connectrpc"
)


@needs_connect
def test_the_tests_of_one_with_rpc_pass(project_with_rpc: Path) -> None:
    # The tests' own pytest, with connectrpc of the other environment.
    packages = next((CONNECT.parent / "lib").glob("python*/site-packages"))
    plugin = ["-p", "no:citius", "-p", "citius.testing.plugin"]
    ended = run(
        project_with_rpc, sys.executable, "-m", "pytest", "-q", *plugin,
        env={"PYTHONPATH": str(packages)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout
    assert "3 passed" in ended.stdout


@needs_connect
def test_the_code_of_one_with_rpc_is_that_of_its_proto(project_with_rpc: Path) -> None:
    files = sorted((project_with_rpc / "my_shop/gen").rglob("*.py"))
    before = [one.read_bytes() for one in files]
    ended = run(
        project_with_rpc, str(CONNECT / "buf"), "generate",
        env={"PATH": f"{CONNECT}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert [one.read_bytes() for one in files] == before


def test_one_with_both_cannot_be_made(tmp_path: Path) -> None:
    ended = run(tmp_path, sys.executable, "-m", "citius", "new", "my-shop", "--rpc", "--db")
    assert ended.returncode == 2
    assert "expected --db or --rpc" in ended.stderr


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("json", "'json' names a module that the project or Python itself imports"),
        ("asyncio", "expected another name, such as my-asyncio"),
        ("msgspec", "expected another name"),
        ("Migrations", "expected another name"),
        ("Über", "of ASCII letters, digits and hyphens, got 'Über'"),
        ("shop-", "of ASCII letters, digits and hyphens, got 'shop-'"),
        ("_shop", "of ASCII letters, digits and hyphens, got '_shop'"),
        (
            "class",
            "'class' is a keyword of Python, which cannot be imported; expected another name, such as my-",
        ),
        ("click", "'click' names a package that is installed here"),
        ("Watchfiles", "expected another name, such as my-Watchfiles"),
        ("file/shop", "cannot be made: "),
        ("full", "full exists and is not empty: there is x"),
        ("begun", "begun exists and is not empty: there is .gitignore"),
        ("one", "one cannot be made: "),
    ],
)
def test_a_project_that_would_not_run_is_not_made(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "one").touch()
    (tmp_path / "full/x").mkdir(parents=True)
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun/.gitignore").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match=re.escape(told)):
        make(tmp_path / name)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_folder_of_the_shell_can_be_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hidden in (".git", ".venv"):
        (tmp_path / "my-shop" / hidden).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "my-shop")
    files = make(Path())
    assert Path("my_shop/app.py") in files
    assert 'name = "my-shop"' in Path("pyproject.toml").read_text()


def test_migrations_of_its_readme(project_with_database: Path) -> None:
    alembic = sys.executable, "-m", "alembic"
    with database() as url:
        environment = {"DATABASE_URL": url}
        # Containers that start at once migrate one after the other.
        upgrade = partial(run, project_with_database, *alembic, "upgrade", "head", env=environment)
        with ThreadPoolExecutor(3) as pool:
            for ended in [pool.submit(upgrade) for _ in range(3)]:
                assert ended.result().returncode == 0, ended.result().stderr
        for command, told in (
            (("upgrade", "head"), ""),
            (("current",), "0001 (head)"),
            (("revision", "-m", "more"), "more.py"),
            (("upgrade", "head", "--sql"), "CREATE TABLE item"),
            (("downgrade", "base"), ""),
        ):
            ended = run(project_with_database, *alembic, *command, env=environment)
            assert ended.returncode == 0, ended.stderr
            assert told in ended.stdout
    for file in (project_with_database / "migrations/versions").glob("*_more.py"):
        file.unlink()


@pytest.mark.parametrize("kind", ["project", "project_with_database", "project_with_rpc"])
def test_its_guide_says_how_a_worker_serves_each_processor(
    request: pytest.FixtureRequest, kind: str
) -> None:
    """Newcomer B5."""
    project: Path = request.getfixturevalue(kind)
    text = (project / "README.md").read_text()
    assert re.search(r"^docker run .*-e CITIUS_WORKERS=auto.*-p 8000:8000", text, re.M)
    assert (project / "Dockerfile").exists()
    assert load({}, {"CITIUS_WORKERS": "auto"}).workers == processors()


CHECKERS = {
    "basedpyright": ("basedpyright", "--pythonpath", sys.executable),
    "mypy": ("mypy",),
    "ruff check": ("ruff", "check"),
    "ruff format": ("ruff", "format", "--check"),
}


@pytest.mark.parametrize("kind", ["project", "project_with_database"])
@pytest.mark.parametrize("command", CHECKERS.values(), ids=CHECKERS)
def test_it_is_typed_and_formatted(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    command: tuple[str, ...],
) -> None:
    if not (BIN / command[0]).exists():
        pytest.skip(f"{command[0]} is not here")
    project: Path = request.getfixturevalue(kind)
    if command[0] == "mypy":  # what both projects import is looked at once
        command = (*command, "--cache-dir", str(tmp_path_factory.getbasetemp() / "mypy"))
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
    assert dev.get("/items?offset=99999999999999999999").status == 422  # newcomer C
    routes = dev.get("/brokn/x", accept="text/html")
    assert routes.status == 404
    assert b"Did you mean <code>/broken/" in routes.body
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
        "class": "is a keyword",
    }.items():
        ended = run(tmp_path, sys.executable, "-m", "citius", "new", name)
        assert ended.returncode == 2
        assert why in ended.stderr
