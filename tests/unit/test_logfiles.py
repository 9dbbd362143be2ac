"""Log files that root opens where another user may write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rig import USER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

OPEN = """
import sys
from citius.settings.config import Config
from citius.errors import ConfigError
from citius.process.logfiles import open_files
try:
    open_files(Config(log_file=sys.argv[1], user="65534", group="65534"))
except ConfigError as error:
    print(error)
print("logged", file=sys.stderr)
"""


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text("precious\n")
    return path


def open_log(path: Path | str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", OPEN, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_a_file_is_made_and_given(own: Path) -> None:
    for _ in range(2):
        assert open_log(own / "log").stdout == ""
    assert (own / "log").read_text() == "logged\nlogged\n"
    assert (own / "log").stat().st_uid == USER


@pytest.mark.parametrize("kind", ["symbolic", "hard", "on the way"])
def test_no_link_of_the_users_is_followed(own: Path, precious: Path, kind: str) -> None:
    path = own / "log"
    if kind == "symbolic":
        path.symlink_to(precious)
    elif kind == "hard":
        path.hardlink_to(precious)
    else:
        (own / "sub").symlink_to(precious.parent)
        path = own / "sub/precious"
    done = open_log(path)
    assert (
        "is a link in a directory that others than root, or confined workers, can write to"
        in done.stdout
    )
    assert precious.read_text() == "precious\n"
    assert precious.stat().st_uid == 0
    assert done.stderr == "logged\n"


def test_a_link_of_roots_is_followed(tmp_path: Path, own: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("own")
    assert open_log(link / "log").stdout == ""
    assert (own / "log").read_text() == "logged\n"


def test_what_is_no_file_is_not_given_away() -> None:
    before = os.stat("/dev/null").st_uid
    assert open_log("/dev/null").stdout == ""
    assert os.stat("/dev/null").st_uid == before


def test_a_descriptor_by_its_path() -> None:
    assert open_log("/dev/stdout").stdout == "logged\n"


def test_a_link_that_leads_to_itself(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    assert "cannot write to" in open_log(tmp_path / "round").stdout
