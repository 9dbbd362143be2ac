"""The server and the lab are two distributions of one version; neither holds the other's files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def table(path: str) -> dict:
    return tomllib.loads((ROOT / path).read_text())


def test_the_lab_has_the_version_of_the_server() -> None:
    version = table("Cargo.toml")["workspace"]["package"]["version"]
    assert table("lab/pyproject.toml")["project"]["version"] == version
    assert table("lab/load/Cargo.toml")["package"]["version"] == version
    major, minor, _ = version.split(".")
    wanted = f"citius-lab>={major}.{minor},<{major}.{int(minor) + 1}"
    assert table("pyproject.toml")["project"]["optional-dependencies"]["lab"] == [wanted]


def test_every_folder_of_definitions_is_in_the_labs_wheel() -> None:
    settings = table("lab/pyproject.toml")["tool"]["setuptools"]
    folders = {"contestants", "experiments", "servers", "workloads"}
    assert {settings["package-dir"][f"citius_lab.data.{name}"] for name in folders} == folders
    assert {f"citius_lab.data.{name}" for name in folders} <= set(settings["packages"])


def test_the_labs_licence_is_the_servers() -> None:
    assert (ROOT / "lab/LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.skipif(
    not (shutil.which("nm") and shutil.which("readelf")), reason="binutils are not installed"
)
def test_the_clients_of_databases_are_a_small_part_of_the_wheel() -> None:
    command = [sys.executable, ROOT / "lab/costs/clients.py", "--sizes"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
