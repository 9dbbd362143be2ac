"""Environment files and `env` are applied anew by HUP, USR2 and a reload alike (servers D5, scale S8)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from rig import Server, application, is_alive, wait_for

APP = application("environ_app").read_text()
ZONE = "import time\n@app.get('/')\ndef zone() -> str:\n    return time.tzname[0]\n"


def _write(directory: Path, state: int) -> None:
    removed = "C=c1\n" if state == 1 else ""
    (directory / "values").write_text(f"A=a{state}\n{removed}CITIUS_SERVER_HEADER={state == 2}\n")
    listed = '"B=b1", "D=d1", "HOME=/elsewhere"' if state == 1 else '"B=b2"'
    (directory / "pyproject.toml").write_text(
        f'[tool.citius]\nenv-file = ["values"]\nenv = [{listed}]\n'
    )


def _seen(server: Server) -> list[str]:
    return [server.get(f"/{name}").body.decode() for name in ("A", "B", "C", "D", "HOME")]


@pytest.mark.parametrize("by", ["HUP", "USR2", "reload"])
def test_values_change_and_go(serve, tmp_path: Path, by: str) -> None:
    _write(tmp_path, 1)
    arguments = ("--reload", "--reload-include", "values") if by == "reload" else ("--supervisor",)
    server: Server = serve(APP, *arguments, env={"HOME": "/before"})
    assert _seen(server) == ["a1", "b1", "c1", "d1", "/elsewhere"]
    assert "server" not in server.get("/A").headers
    _write(tmp_path, 2)
    successor = 0
    if by == "HUP":
        server.signal(signal.SIGHUP)
    elif by == "USR2":
        server.signal(signal.SIGUSR2)
        successor = int(server.wait_for_log(r"process (\d+) serves from now on")[1])

    def is_new() -> bool:
        try:
            return _seen(server) == ["a2", "b2", "none", "none", "/before"]
        except (OSError, EOFError, AssertionError):
            return False  # of a worker or child that is being replaced

    try:
        wait_for(is_new, "the new values")
        assert server.get("/A").headers["server"] == "citius"
    finally:
        if successor:
            os.kill(successor, signal.SIGTERM)
            wait_for(lambda: not is_alive(successor), "its end")


@pytest.mark.parametrize("options", [(), ("--supervisor",)], ids=["alone", "supervisor"])
def test_the_time_zone_is_that_of_the_file(serve, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Issue 32 F2: the C library reads TZ once, when the process begins."""
    values = tmp_path / "values"
    values.write_text("TZ=ABC-3\n")
    server: Server = serve(ZONE, "--env-file", str(values), *options, env={"TZ": "HERE0"})
    # A variable that is set has priority.
    assert server.get("/").body == b"HERE"
    server.stop()
    server = serve(ZONE, "--env-file", str(values), *options, env={"TZ": ""})
    assert server.get("/").body == b"UTC"
    server.stop()
    environ = {"CITIUS_ENV": "TZ=ABC-3", "TZ": "HERE0"}
    server = serve(ZONE, "--env-file", str(values), *options, env=environ)
    assert server.get("/").body == b"ABC"


def test_the_time_zone_changes_and_goes(serve, tmp_path: Path) -> None:
    """Issue 32 F2: as other variables, by HUP."""
    options = tmp_path / "pyproject.toml"
    options.write_text('[tool.citius]\nenv = ["TZ=ABC-3"]\n')
    server: Server = serve(ZONE, "--supervisor", env={"TZ": "HERE0"})
    assert server.get("/").body == b"ABC"
    for text, zone in (('env = ["TZ=DEF4"]\n', b"DEF"), ("", b"HERE")):
        options.write_text(f"[tool.citius]\n{text}")
        server.signal(signal.SIGHUP)
        wait_for(lambda zone=zone: server.get("/").body == zone, "the new zone")


def test_a_reading_that_fails_changes_nothing(serve, tmp_path: Path) -> None:
    _write(tmp_path, 1)
    server: Server = serve(APP, "--supervisor", env={"HOME": "/before"})
    _write(tmp_path, 2)
    (tmp_path / "pyproject.toml").write_text("[tool.citius]\nenv = 1\n")
    server.signal(signal.SIGHUP)
    server.wait_for_log("the configuration is not taken over")
    assert _seen(server) == ["a1", "b1", "c1", "d1", "/elsewhere"]
