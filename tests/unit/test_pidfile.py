"""The pid file: whose it is, when it is stale, and what is not followed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from citius.errors import ConfigError
from citius.process import pidfile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run/app.pid"


@pytest.fixture(autouse=True)
def directory(path: Path) -> None:
    path.parent.mkdir()


def test_written_whole_and_removed(path: Path) -> None:
    pidfile.write(str(path))
    assert path.read_text() == f"{os.getpid()}\n"
    pidfile.write(str(path))  # it is ours: again is no harm
    assert os.listdir(path.parent) == ["app.pid"]
    pidfile.remove(str(path))
    assert os.listdir(path.parent) == []
    pidfile.remove(str(path))


def test_somebody_elses_is_not_removed(path: Path) -> None:
    path.write_text("1\n")
    pidfile.remove(str(path))
    assert path.read_text() == "1\n"


def test_a_server_that_runs_is_not_replaced(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        path.write_text(f"{other.pid}\n")
        with pytest.raises(ConfigError, match=f"names process {other.pid}, which runs; stop it"):
            pidfile.write(str(path))
        assert path.read_text() == f"{other.pid}\n"
        # The same number, but written before that process had begun: it is another's by now.
        os.utime(path, (0, 1_000_000_000))
        pidfile.write(str(path))
        assert path.read_text() == f"{os.getpid()}\n"


def test_a_server_that_has_ended_is_replaced_before_its_parent_asks_for_it(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as other:
        path.write_text(f"{other.pid}\n")
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        pidfile.write(str(path))
        assert path.read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("text", ["", "4194305\n", "99999999999999999999\n"])
def test_what_names_nobody_is_replaced(path: Path, text: str) -> None:
    path.write_text(text)
    pidfile.write(str(path))
    assert path.read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("text", ["import os\n", "-1\n", "12 34\n", "\u00b2\n"])
def test_what_is_no_pid_file_is_left_alone(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigError, match="does not hold the number of a process"):
        pidfile.write(str(path))
    assert path.read_text() == text


def test_no_link_is_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("1")
    path.symlink_to(target)
    with pytest.raises(ConfigError, match="it is a symbolic link; name a file of its own"):
        pidfile.write(str(path))
    path.unlink()
    # Nor one in the place where the file is written first, whose name is random.
    (path.parent / "app.pid.new").symlink_to(target)
    pidfile.write(str(path))
    assert target.read_text() == "1"


def test_a_fifo_keeps_nobody_waiting(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="is no regular file"):
        pidfile.write(str(path))


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file or directory"):
        pidfile.write(str(tmp_path / "nowhere/app.pid"))
