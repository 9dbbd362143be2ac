from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from citius_lab.bench import servers
from citius_lab.definitions import contestants
from citius_lab.errors import LaunchError
from citius_lab.processes import launch

HERE = Path(__file__).parent
FAMILY = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
open(sys.argv[1], "w").close()
time.sleep(60)
"""


def wait_for(condition: object, seconds: float = 20.0) -> bool:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def members(marker: str) -> list[int]:
    """Return the processes whose command line names ``marker``, the guard among them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if marker in words and int(path.parent.name) != os.getpid():
            found.append(int(path.parent.name))
    return found


@pytest.fixture
def definitions() -> dict[str, contestants.Contestant]:
    return contestants.load([HERE / "contestants"])


def server(contestant: contestants.Contestant, tmp_path: Path) -> launch.Server:
    return launch.Server(contestant, workers=1, cpus=(), log_path=tmp_path / "log")


def test_a_server_accepts_and_is_gone_afterwards(
    definitions: dict[str, contestants.Contestant], tmp_path: Path
) -> None:
    with server(definitions["fake"], tmp_path) as running:
        pid = running.pid
        assert launch.port_in_use(running.port)
        assert launch.pss_kib([pid]) > 1000
        assert launch.cpu_clocks_s([pid])[pid] > 0
    assert not alive(pid)
    assert not launch.port_in_use(running.port)


def test_says_what_a_server_said_that_does_not_start(
    definitions: dict[str, contestants.Contestant], tmp_path: Path
) -> None:
    with pytest.raises(
        LaunchError, match=r"never-listens ended with code 1(.|\n)*no licence found"
    ):
        server(definitions["never-listens"], tmp_path)


def test_says_that_a_command_is_missing(tmp_path: Path) -> None:
    process = launch.Guarded(["no-such-command"], stderr=subprocess.PIPE)
    said = process.stderr.read()
    assert process.wait(5) == 127
    assert b"no-such-command: No such file" in said


def test_a_process_sees_only_its_cpus() -> None:
    cpu = max(os.sched_getaffinity(0))
    read = "import os; print(os.sched_getaffinity(0))"
    process = launch.Guarded(
        [sys.executable, "-c", read], cpus=[cpu], stderr=subprocess.PIPE, stdout=2
    )
    process.stop()
    assert process.ended() is not None


def test_stopping_reaches_what_ignores_sigterm_and_what_left_the_group(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    process = launch.Guarded([sys.executable, "-c", FAMILY, str(mark)], grace_s=0.2)
    assert wait_for(mark.exists)
    assert wait_for(lambda: len(members(str(mark))) >= 3)
    process.stop()
    assert members(str(mark)) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_lab_that_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    mark = tmp_path / "started"
    script = (
        "import sys, time; from citius_lab.processes import launch\n"
        f"launch.Guarded([sys.executable, '-c', {FAMILY!r}, {str(mark)!r}], grace_s=0.2)\n"
        "time.sleep(60)"
    )
    victim = subprocess.Popen([sys.executable, "-c", script])
    assert wait_for(mark.exists)
    victim.send_signal(number)
    victim.wait()
    assert wait_for(lambda: members(str(mark)) == [])


def test_a_server_knows_nothing_of_the_persons_settings(
    definitions: dict[str, contestants.Contestant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", "9")
    monkeypatch.setenv("UVICORN_PORT", "9")
    environment = definitions["fake"].environment()
    assert environment.pop("CITIUS_REACTOR_THREADS") == "1"
    assert set(environment) <= {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH"}


def talker(tmp_path: Path, text: str) -> contestants.Contestant:
    script = tmp_path / "talker.py"
    script.write_text(f"import sys\n{text}\nsys.exit(1)\n")
    return servers.own("talker", (sys.executable, str(script), "{port}"), tmp_path)


def test_a_log_has_a_bounded_size_and_its_end_is_told(tmp_path: Path) -> None:
    text = "for _ in range(400): print('x' * 9999)\nprint('the last words', flush=True)"
    with pytest.raises(LaunchError, match="the last words"):
        server(talker(tmp_path, text), tmp_path)
    log = (tmp_path / "log").read_bytes()
    assert launch.LOG_BYTES_MAX < len(log) < launch.LOG_BYTES_MAX + 500
    assert log.endswith(b"[the log is full: what follows is not kept]\n")


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    with pytest.raises(LaunchError) as told:
        server(talker(tmp_path, r"print('\x1b[2Jgone \x9b31m \tä', flush=True)"), tmp_path)
    assert r"\x1b[2Jgone \x9b31m" in str(told.value)
    assert "ä" in str(told.value)
    assert "\x1b" not in str(told.value)


def test_nohup_is_heeded() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with launch.signals_as_interrupts():
            signal.raise_signal(signal.SIGHUP)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
