"""Paths that root opens, replaces or removes after the workers' user could have changed what is there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import trustme
from citius.errors import ConfigError
from citius.observability import logging
from citius.process import pidfile
from citius.process.paths import changeable
from citius.process.privileges import Identity
from citius.serving.bind import bind, bind_beside
from citius.serving.supervisor.upgrade import programs_changeable
from citius.settings.config import Config
from citius.settings.sources import Sources
from pki import Pki
from rig import USER, Server, is_alive, wait_for

NOBODY = Identity(USER, USER, None)
SPLIT = {"user": str(USER), "group": str(USER)}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a server for a user")

APP = "@app.get('/')\ndef hello(): return 'hello'"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.mkdir()
    for name in ("app.pid", "s"):
        (path / name).write_text("precious\n")
    return path


# --- log files --------------------------------------------------------------------------------------------


def test_a_fifo_in_the_place_of_a_log_file_does_not_stop_the_supervisor(
    serve, own: Path, tmp_path: Path
) -> None:
    server: Server = serve(
        APP, "-w", "1", "--supervisor", "--group", str(USER), "--access-log-file", str(own / "log")
    )
    (own / "log").unlink()
    os.mkfifo(own / "log")
    server.signal(signal.SIGUSR1)
    server.wait_for_log("access_log_file: cannot write to .*: it is a FIFO that no process reads")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


@pytest.mark.parametrize("split", [True, False])
def test_a_fifo_without_a_reader_ends_the_start_with_a_sentence(
    serve, own: Path, split: bool
) -> None:
    os.mkfifo(own / "log")
    options = ["--group", str(USER)] if split else []
    server: Server = serve(APP, "--log-file", str(own / "log"), *options, ready=False)
    assert server.wait() == 3
    assert "it is a FIFO that no process reads" in server.err


OPEN = """
import sys
from citius.settings.config import Config
from citius.errors import ConfigError
from citius.process.logfiles import open_files
try:
    open_files(Config(log_file=sys.argv[1], user="65534", group="65534"))
except ConfigError as error:
    print(error)
"""


def open_log(path: Path) -> str:
    command = [sys.executable, "-c", OPEN, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_fifo_with_a_reader_is_no_log_file_where_others_made_it(own: Path) -> None:
    os.mkfifo(own / "log")
    reader = os.open(own / "log", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert "it is no regular file, in a directory that others can change" in open_log(
            own / "log"
        )
    finally:
        os.close(reader)


def test_a_file_of_roots_that_was_moved_into_the_place_is_not_given_away(own: Path) -> None:
    (own / "secret").write_text("secret\n")
    (own / "secret").rename(own / "log")  # which the owner of the directory can do
    assert "it belongs to uid 0, in a directory that others can change" in open_log(own / "log")
    assert (own / "log").stat().st_uid == 0
    assert (own / "log").read_text() == "secret\n"


# --- pid file ---------------------------------------------------------------------------------------------


def test_a_pid_file_is_not_written_beyond_a_link_of_the_users(own: Path, precious: Path) -> None:
    (own / "run").symlink_to(precious)
    with pytest.raises(ConfigError, match="run is a link in a directory that others than root"):
        pidfile.write(str(own / "run/app.pid"), guarded=True)
    assert (precious / "app.pid").read_text() == "precious\n"


def test_a_pid_file_is_not_removed_beyond_a_link_of_the_users(own: Path, precious: Path) -> None:
    (own / "run").mkdir()
    pidfile.write(str(own / "run/app.pid"), guarded=True)
    (own / "run").rename(own / "gone")
    (own / "run").symlink_to(precious)
    (precious / "app.pid").write_text(f"{os.getpid()}\n")
    pidfile.remove(str(own / "run/app.pid"), guarded=True)
    assert (precious / "app.pid").exists()


# --- Unix sockets -----------------------------------------------------------------------------------------


def test_a_socket_is_given_to_the_user_and_removed(own: Path) -> None:
    listeners = bind(Config(uds=str(own / "s"), **SPLIT), 1)
    assert (own / "s").stat().st_uid == USER
    listeners.close()
    assert not (own / "s").exists()


def test_what_was_put_in_the_place_of_a_socket_is_not_removed(own: Path, precious: Path) -> None:
    (own / "run").mkdir()
    listeners = bind(Config(uds=str(own / "run/s"), **SPLIT), 1)
    (own / "run").rename(own / "gone")
    (own / "run").symlink_to(precious)
    listeners.close()
    assert (precious / "s").read_text() == "precious\n"


def test_no_socket_is_made_beyond_a_link_of_the_users(own: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (own / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="run is a link in a directory that others than root"):
        bind(Config(uds=str(own / "run/s"), **SPLIT), 1)
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_server_that_takes_over_removes_sockets_only(own: Path) -> None:
    (own / "s").write_text("no socket")
    with pytest.raises(ConfigError, match="cannot listen on"):
        bind_beside(f"unix:{own}/s", Config(**SPLIT), takes_over=True)
    assert (own / "s").read_text() == "no socket"


def test_a_socket_with_a_full_queue_is_taken_and_does_not_stop_the_start(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waiting:
        listener.bind(str(tmp_path / "s"))
        listener.listen(0)
        waiting.connect(str(tmp_path / "s"))
        outcome: list[str] = []

        def start() -> None:
            with pytest.raises(ConfigError) as found:
                bind(Config(uds=str(tmp_path / "s")), 1)
            outcome.append(str(found.value))

        thread = threading.Thread(target=start, daemon=True)
        thread.start()
        thread.join(30)
        assert ["address already in use" in text for text in outcome] == [True]


# --- certificates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_hup_reads_no_key_that_the_user_has_exchanged(
    serve, own: Path, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "pki").mkdir()
    certificate, key = Pki(trustme.CA(), tmp_path / "pki").issue("localhost")
    for name, source in (("c.pem", certificate), ("k.pem", key)):
        (own / name).write_bytes(Path(source).read_bytes())
    server: Server = serve(
        APP, "-w", "1", "--supervisor", "--group", str(USER), "--ssl-certfile", str(own / "c.pem"),
        "--ssl-keyfile", str(own / "k.pem"),
    )  # fmt: skip
    (own / "k.pem").unlink()
    if kind == "link":
        (own / "k.pem").symlink_to(key)
        why = "k.pem is a link in a directory that others than root, or confined workers, can write to"
    else:
        os.mkfifo(own / "k.pem")
        why = "it is no regular file"
    server.signal(signal.SIGHUP)
    server.wait_for_log(f"the configuration is not taken over: TLS: cannot read .*k.pem: .*{why}")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


# --- options and programs ---------------------------------------------------------------------------------


def test_root_does_not_read_options_again_that_the_user_can_change(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    # Standard error may not be captured: tests of other files have configured logging in this process.
    monkeypatch.setattr(logging, "warning", told.append)
    monkeypatch.chdir(own)
    sources = Sources({**SPLIT, "workers": 2})
    before = sources.read()
    Path("pyproject.toml").write_text("[tool.citius]\nlog_file = '/root/.profile'\n")
    assert sources.read() is before
    assert any("the options stay as they are" in line for line in told)


def test_root_reads_its_own_options_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sources = Sources(SPLIT)
    sources.read()
    Path("pyproject.toml").write_text("[tool.citius]\nworkers = 3\n")
    assert sources.read().workers == 3


def test_usr2_does_not_start_what_the_user_can_change(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert programs_changeable(NOBODY) is None
    (own / "library").mkdir()
    monkeypatch.syspath_prepend(str(own / "library"))
    assert programs_changeable(NOBODY) == (str(own / "library"), str(own))


def test_usr2_goes_on_where_the_user_can_change_nothing(serve) -> None:
    server: Server = serve(APP, "-w", "1", "--supervisor", "--group", str(USER))
    server.signal(signal.SIGUSR2)
    successor = int(server.wait_for_log(r"process (\d+) serves from now on")[1])
    os.kill(successor, signal.SIGTERM)
    wait_for(lambda: not is_alive(successor), "its end")


def test_what_a_user_can_change(own: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert changeable(str(tmp_path / "file"), NOBODY) is None
    assert changeable(str(own / "file"), NOBODY) == str(own)
    (tmp_path / "link").symlink_to("own/file")
    assert changeable(str(tmp_path / "link"), NOBODY) == str(own)
    (tmp_path / "file").chmod(0o666)
    assert changeable(str(tmp_path / "file"), NOBODY) == str(tmp_path / "file")
    (tmp_path / "all").mkdir()
    (tmp_path / "all").chmod(0o1777)
    (tmp_path / "all/file").touch()
    assert changeable(str(tmp_path / "all/file"), NOBODY) is None
    assert changeable(str(tmp_path / "all/none"), NOBODY) == str(tmp_path / "all")
    assert changeable("/etc/passwd", Identity(0, 0, "root")) is None
