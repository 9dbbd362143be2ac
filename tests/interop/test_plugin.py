"""The fixtures of the pytest plugin, in a suite of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = """
import asyncio

import pytest
from typing import Annotated
from citius import App, Depends


def settings():
    return "real"


@pytest.fixture
def citius_app():
    app = App()
    app.state.started = False

    @app.on_startup
    def start():
        app.state.started = True

    @app.get("/")
    def hello(word: Annotated[str, Depends(settings)]):
        return f"{word} {app.state.started}"

    return app


def test_client(citius_client):
    assert citius_client.get("/").text == "real True"


def test_overrides(citius_overrides, citius_client):
    ...


def test_overridden(citius_app, citius_overrides):
    from citius.testing import Client

    citius_overrides[settings] = lambda: "false"
    assert Client(citius_app).get("/").text == "false False"


def test_async_client(citius_async_client):
    async def main():
        async with citius_async_client as client:
            assert (await client.get("/")).text == "real True"

    asyncio.run(main())
"""
WITHOUT = "def test_client(citius_client): ...\n"
EMPTY = "import sys\n\ndef test_nothing():\n    assert 'citius._core' not in sys.modules\n"


def run(tmp_path: Path, suite: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_suite.py").write_text(suite)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "citius.testing.plugin",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run(
        [*command, "."], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )


def test_fixtures(tmp_path: Path) -> None:
    ended = run(tmp_path, SUITE)
    assert "4 passed" in ended.stdout, ended.stdout


def test_a_suite_without_an_application_is_told_what_to_do(tmp_path: Path) -> None:
    ended = run(tmp_path, WITHOUT)
    assert "define a fixture `citius_app` that returns it" in ended.stdout


def test_a_suite_that_uses_none_imports_no_extension(tmp_path: Path) -> None:
    ended = run(tmp_path, EMPTY)
    assert "1 passed" in ended.stdout, ended.stdout
