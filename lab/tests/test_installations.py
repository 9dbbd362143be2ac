from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from test_end_to_end import invoke

from citius_lab import paths
from citius_lab.bench import installations, servers
from citius_lab.bench.installations import AppPython, Installation
from citius_lab.errors import BuildError, DefinitionError, LoadError
from citius_lab.measure import drive

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": kind + ".complete"})
            if kind == "lifespan.shutdown":
                return
    body = (await receive())["body"] or b"empty"
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
async def rsgi(scope, protocol): ...
"""


@pytest.fixture
def here() -> AppPython:
    return AppPython.of(sys.executable)


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(ASGI)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return tmp_path


def test_every_server_is_pinned() -> None:
    for way in servers.WAYS.values():
        lock = paths.lab_root() / "servers" / way.package / "requirements.txt"
        lines = lock.read_text().split()
        assert all("==" in line for line in lines), way.package
        assert sum(line.startswith(f"{way.package}==") for line in lines) == 1


def test_what_is_no_interpreter_is_named() -> None:
    with pytest.raises(DefinitionError, match="/bin/true is not the Python of an application"):
        AppPython.of("/bin/true")


def test_an_asgi_application_is_not_given_to_a_wsgi_server(app: Path) -> None:
    done = invoke("bench", "mine:app", "--against", "gunicorn-sync")
    assert done.exit_code == 1
    assert "mine:app is ASGI, which gunicorn-sync cannot serve: it serves WSGI" in done.output


def test_an_rsgi_application_is_told_and_not_given_to_citius(app: Path) -> None:
    done = invoke("bench", "mine:rsgi")
    assert done.exit_code == 1
    assert "mine:rsgi is RSGI, which citius cannot serve" in done.output


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: AppPython) -> Installation:
    """A server of no packages, and an application's packages in ``tmp_path/site``."""
    (tmp_path / "servers" / "probe").mkdir(parents=True)
    (tmp_path / "servers" / "probe" / "requirements.txt").write_text("")
    (tmp_path / "site").mkdir()
    monkeypatch.setattr(paths, "lab_root", lambda: tmp_path)
    return Installation("probe", replace(here, sites=(str(tmp_path / "site"),)))


def test_the_applications_packages_come_behind_the_servers(
    tmp_path: Path, probe: Installation
) -> None:
    probe.make()
    assert probe.built()
    (own,) = Path(probe.folder).glob("venv/lib/*/site-packages")
    (own / "both.py").write_text("whose = 'server'")
    for name in ("both", "only"):
        (tmp_path / "site" / f"{name}.py").write_text("whose = 'application'")
    done = subprocess.run(
        [probe.command, "-c", "import both, only; print(both.whose, only.whose)"],
        env=os.environ | probe.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["server", "application"]
    probe.make()
    assert (own / "both.py").exists(), "it was installed again though nothing changed"
    probe.lock.write_text("# another")
    assert not probe.built()


def test_no_network_is_said_with_what_to_do(
    tmp_path: Path, probe: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe.lock.write_text("probe==1.0")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "site"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(
        BuildError, match=r"probe 1\.0 cannot be installed .*no package index could"
    ):
        probe.make()
    assert not probe.built()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("all_cpus")
def test_servers_are_installed_and_answer_alike(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # a noisy figure is wider, and a version would be wrapped
    try:
        drive.load_command()
    except LoadError as error:
        pytest.skip(str(error))
    (app / "f.json").write_text('{"n": 1}')
    words = ["--path", "/x", "--method", "POST", "--body", "f.json", "--budget", "8"]
    against = "uvicorn,granian,gunicorn,hypercorn"
    done = invoke("bench", "mine:app", "--against", against, *words, "--out", str(app / "out"))
    if installations.NO_INDEX in done.output:
        pytest.skip("no package index")
    assert done.exit_code == 0, done.output
    for name in against.split(","):
        version = Installation(name, AppPython.of(sys.executable)).version()
        assert f"{name} {version}" in done.output
