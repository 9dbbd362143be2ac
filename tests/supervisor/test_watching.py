"""What the supervisor watches for, and what a new generation may not break."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from rig import TIMEOUT_S, Server, application, children, pids, wait_for

APP = application("processes_app").read_text()
BLOCK = APP + "\n@app.get('/block')\ndef block_the_loop():\n    time.sleep(60)\n"


@pytest.mark.parametrize("loop", ["uvloop", "none"])
def test_a_hung_loop_prints_its_stacks_and_is_replaced(serve, loop: str) -> None:
    source = (
        BLOCK if loop == "uvloop" else re.sub(r'@app.get\("/slow.*?\n\n', "", BLOCK, flags=re.S)
    )
    server: Server = serve(source, "--timeout", "0.5", "--loop", loop)
    before = children(server)
    assert len(before) == 1  # the option brings a supervisor
    with server.connect() as peer:
        peer.send(b"GET /block HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log(r"has not turned its loop for \d\.\d s; these are its stacks")
        server.wait_for_log(r'File ".*main\.py", line \d+ in block_the_loop')
        wait_for(lambda: len(children(server)) == 1 and children(server) != before, "a new worker")
        assert server.get("/").status == 200


def test_a_busy_worker_is_not_hung(serve) -> None:
    server: Server = serve(APP, "--timeout", "0.5", "-w", "1")
    before = children(server)
    assert server.get("/slow/2500").status == 200
    assert children(server) == before
    assert "hung" not in server.err


def test_a_worker_that_does_not_get_ready_is_no_successor(serve, tmp_path: Path) -> None:
    server: Server = serve(
        APP + "\nif os.path.exists('stuck'):\n    time.sleep(60)\n",
        "-w",
        "2",
    )
    before = set(children(server))
    (tmp_path / "stuck").touch()
    # Not for the first workers: on a busy machine they need longer.
    (tmp_path / "pyproject.toml").write_text("[tool.citius]\nworker-start-s = 1\n")
    server.signal(signal.SIGHUP)
    server.wait_for_log("is not ready after 1 s; these are its stacks")
    server.wait_for_log("the restart is given up, and the old workers go on")
    assert pids(server) == before


def test_a_lifetime_ends_in_good_order(serve) -> None:
    server: Server = serve(APP, "--worker-lifetime", "1")
    (first,) = children(server)
    server.wait_for_log(r"is 1 s old; replacing it")
    wait_for(lambda: pids(server, 5).isdisjoint({first}), "another worker")


def test_a_broken_generation_leaves_the_old_one(serve, tmp_path: Path) -> None:
    server: Server = serve(APP, "-w", "2")
    before = set(children(server))
    source = (tmp_path / "main.py").read_text()
    (tmp_path / "main.py").write_text("def")
    server.signal(signal.SIGHUP)
    server.wait_for_log(r"ended with code 3 before it was ready: the restart is given up")
    assert pids(server) == before
    # Of another length: bytecode of the first text is taken for current within the same second.
    (tmp_path / "main.py").write_text(source.replace('"one"', '"other"'))
    server.signal(signal.SIGHUP)
    server.wait_for_log("all workers are new")
    # A worker that was told to end takes what has reached it before it stops listening.
    wait_for(lambda: pids(server).isdisjoint(before), "new workers alone")
    assert server.get("/version").body == b"other"


def test_hup_reads_options_and_environment_files_again(serve, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.citius]\nworkers = 1\nsupervisor = true\n")
    (tmp_path / "env").write_text("GREETING=hello\n")
    server: Server = serve(
        "@app.get('/')\ndef hello(): return os.environ['GREETING']", "--env-file", "env"
    )
    assert server.get("/").body == b"hello"
    (tmp_path / "pyproject.toml").write_text("[tool.citius]\nworkers = 3\nserver-header = false\n")
    (tmp_path / "env").write_text("GREETING='good bye'\n")
    server.signal(signal.SIGHUP)
    server.wait_for_log("one worker more: 3")

    def is_new() -> bool:
        reply = server.get("/")
        return reply.body == b"good bye" and "server" not in reply.headers

    # The worker from before takes what has reached it until it has read that it is to stop.
    wait_for(is_new, "a response of a new worker")
    (tmp_path / "pyproject.toml").write_text("[tool.citius]\nworkers = 'x'\n")
    server.signal(signal.SIGHUP)
    server.wait_for_log("the configuration is not taken over: .*workers: expected a whole number")
    assert server.get("/").status == 200


def test_usr2_that_fails_changes_nothing(serve, tmp_path: Path) -> None:
    server: Server = serve(APP, "-w", "2")
    before = set(children(server))
    (tmp_path / "main.py").write_text("1 // 0")
    server.signal(signal.SIGUSR2)
    server.wait_for_log(r"the new server \d+ ended with code 3; this one goes on")
    assert pids(server) == before
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_usr1_opens_log_files_anew(serve, tmp_path: Path) -> None:
    server: Server = serve(
        APP, "-w", "2", "--access-log-file", "access", "--log-file", "log", ready=False
    )
    log, access = tmp_path / "log", tmp_path / "access"
    wait_for(lambda: log.exists() and "serves on" in log.read_text(), "a server")
    found = re.search(r":(\d+)", log.read_text().partition("http://")[2])
    assert found is not None
    server.port = int(found[1])
    server.get("/version")
    wait_for(lambda: "GET /version" in access.read_text(), "an access line")
    for path in (log, access):
        path.rename(path.with_suffix(".1"))
    server.signal(signal.SIGUSR1)
    wait_for(access.exists, "a new file")

    def is_noted() -> bool:
        server.get("/version")
        return "GET /version" in access.read_text()

    wait_for(is_noted, "a line in it")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert log.exists()


def test_several_addresses(serve, tmp_path: Path) -> None:
    path = tmp_path / "s"
    server: Server = serve(APP, "-w", "2", "--bind", "127.0.0.1:0", "--bind", f"unix:{path}")
    assert server.get("/").status == 200
    server.port, server.uds = 0, str(path)
    assert server.get("/").status == 200
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert not path.exists()


WHICH = """
from citius import worker_info
at_import = worker_info()

@app.get("/")
def which():
    info = worker_info()
    assert info == at_import
    return f"{info.index}/{info.count}"
"""


def which(server: Server) -> set[str]:
    return {server.get("/").body.decode() for _ in range(40)}


def test_a_worker_knows_its_index_and_how_many_there_are(serve) -> None:
    assert which(serve(WHICH)) == {"0/1"}
    server: Server = serve(WHICH, "--workers", "2")
    assert which(server) == {"0/2", "1/2"}
    server.signal(signal.SIGHUP)
    server.wait_for_log("all workers are new")
    assert which(server) == {"0/2", "1/2"}
    server.signal(signal.SIGTTIN)
    wait_for(lambda: "2/3" in which(server), "a third worker")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_systemd(tmp_path: Path, workers: str) -> None:
    """Sockets come in by LISTEN_FDS, states go out by datagram."""
    (tmp_path / "main.py").write_text(
        f"import os, asyncio\nfrom citius import *\napp = App()\n{APP}"
    )
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(TIMEOUT_S)
        port = listener.getsockname()[1]
        # Descriptor 3 and the process id are what they are only after the fork.
        program = (
            f"import os, sys; os.dup2({listener.fileno()}, 3); "
            "os.environ['LISTEN_PID'] = str(os.getpid()); "
            "os.execv(sys.executable, [sys.executable, '-m', 'citius', 'serve', 'main.py', '-w', "
            f"'{workers}', '--drain-s', '1'])"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=tmp_path, pass_fds=[listener.fileno()],
            env={**os.environ, "LISTEN_FDS": "1", "LISTEN_FDNAMES": "http",
                 "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"},
            stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip

        def until(mark: bytes) -> None:
            while mark not in (said := manager.recv(1000)):
                assert said.startswith((b"READY=1", b"WATCHDOG=1", b"RELOADING=1", b"STOPPING=1"))

        try:
            until(b"READY=1")
            with socket.create_connection(("127.0.0.1", port), 10) as peer:
                peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                assert peer.recv(100).startswith(b"HTTP/1.1 200")
            until(b"WATCHDOG=1")
            if workers == "2":
                process.send_signal(signal.SIGHUP)
                until(b"RELOADING=1\nMONOTONIC_USEC=")
                until(b"READY=1")
            process.send_signal(signal.SIGTERM)
            until(b"STOPPING=1")
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
            process.wait()
        # The socket is systemd's: new clients wait for the next start.
        socket.create_connection(("127.0.0.1", port), 10).close()


WHO = "@app.get('/')\ndef who(): return f'{os.getuid()} {os.getgid()} {os.umask(0o22):03o}'"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change its user")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_workers_are_somebody_else(serve, tmp_path: Path, workers: str) -> None:
    server: Server = serve(WHO, "-w", workers, "--group", "65534", "--umask", "027")
    assert server.get("/").body == b"0 65534 027"
    for directory in [tmp_path, *tmp_path.parents]:
        if directory == Path(tempfile.gettempdir()):
            break
        directory.chmod(0o755)
    server = serve(WHO, "-w", workers, "--user", "65534", "--umask", "027", ready=False)
    try:
        subprocess.run([sys.executable, "-c", "import asyncio"], user=65534, check=True)
    except (PermissionError, subprocess.CalledProcessError):
        assert server.wait() == 3
        assert "65534 cannot read Python's library in /" in server.err
    else:
        assert server.wait_ready().get("/").body.startswith(b"65534 ")


def can_make_pid_namespaces() -> bool:
    try:
        done = subprocess.run(
            ["unshare", "--pid", "--fork", "--kill-child", "true"], capture_output=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def test_pid_1_reaps_and_drains(tmp_path: Path) -> None:
    if not can_make_pid_namespaces():
        pytest.skip("PID namespaces cannot be made here")
    process = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-m", "citius", "serve",
         str(application("processes_app")), "--uds", "s", "--no-access-log"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert "with 1 worker " in process.stderr.readline()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(tmp_path / "s"))
            peer.sendall(b"GET /orphan HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert b"left" in peer.recv(1000)
        of_unshare = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        init = int(of_unshare.read_text().split()[0])
        here = Path(f"/proc/{init}/task/{init}/children")
        wait_for(lambda: len(here.read_text().split()) == 1, "the orphan to be buried")
        os.kill(init, signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def test_the_drain_can_be_delayed(serve) -> None:
    server: Server = serve(APP, "-w", "2", "--drain-delay-s", "0.5")
    server.signal(signal.SIGTERM)
    server.wait_for_log("serving for another 0.5 s first")
    assert server.get("/").status == 200
    assert server.wait() == 0


def test_a_server_that_is_going_to_stop_serves_and_is_not_ready(serve) -> None:
    """Load balancers that ask for readiness send nothing new before it stops accepting."""
    server: Server = serve(APP, "-w", "2", "--drain-delay-s", "60", "--health", "/health")
    assert server.get("/health/ready").status == 200
    server.signal(signal.SIGTERM)
    wait_for(
        lambda: all(server.get("/health/ready").status == 503 for _ in range(20)),
        "both workers not to be ready",
    )
    assert server.get("/").status == 200
    assert server.get("/health/live").status == 200
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_a_signal_for_a_worker_just_forked_is_the_worker_s_own(serve, tmp_path: Path) -> None:
    # Slow to take its first steps, so that the TERM that a second HUP sends the successor comes before.
    slow = "import os, time\nos.register_at_fork(after_in_child=lambda: time.sleep(0.5))\n"
    (tmp_path / "sitecustomize.py").write_text(slow)
    server: Server = serve(APP, "-w", "2", env={"PYTHONPATH": str(tmp_path)})
    server.signal(signal.SIGHUP)
    wait_for(lambda: len(children(server)) == 3, "a successor")
    server.signal(signal.SIGHUP)
    server.wait_for_log("all workers are new")
    assert server.get("/").status == 200
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "did not stop in time" not in server.err


def test_a_supervisor_short_of_descriptors_tries_again(serve) -> None:
    server: Server = serve(APP, "-w", "2")
    supervisor, before = server.process.pid, children(server)
    limits = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (3, limits[1]))
    server.signal(signal.SIGTTIN)
    server.wait_for_log("there cannot be another worker: .*Too many open files")
    os.kill(before[0], signal.SIGKILL)
    server.wait_for_log("a worker cannot be started: .*Too many open files")
    server.signal(signal.SIGHUP)
    resource.prlimit(supervisor, resource.RLIMIT_NOFILE, limits)
    wait_for(lambda: len(children(server)) == 2, "a new worker")
    assert server.process.poll() is None
    assert server.get("/").status == 200


def test_descriptors_beyond_those_of_select(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip(f"at most {hard} descriptors here")
    (tmp_path / "launch.py").write_text(
        """
import os, runpy, sys
for number in range(3, 1100):
    os.dup2(0, number, inheritable=False)
sys.argv = ["citius", *sys.argv[1:]]
runpy.run_module("citius", run_name="__main__")
"""
    )
    (tmp_path / "main.py").write_text(
        "import os, asyncio\nfrom citius import App\napp = App()\n" + APP
    )
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))
    try:
        server = Server(["main.py", "--port", "0", "-w", "2"], {}, tmp_path, launcher="launch.py")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        server.wait_ready()
        assert len(pids(server)) == 2
        server.signal(signal.SIGHUP)
        server.wait_for_log("all workers are new")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    finally:
        server.kill()


STREAMS = (
    APP
    + """
@app.get("/events/{name}")
async def events(name: str):
    while True:
        yield b"x"
        await asyncio.sleep(0.05)
"""
)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stop_says_which_requests_it_waits_for_and_how_to_force_it(serve, workers: str) -> None:
    server: Server = serve(STREAMS, "-w", workers, "--drain-s", "60")
    peers = [server.connect() for _ in range(3)]
    for peer, path in zip(peers, ("/events/a", "/events/b", "/slow/60000"), strict=True):
        peer.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    for peer in peers[:2]:
        assert peer.read_until(b"x")
    server.signal(signal.SIGINT)
    if workers == "1":
        server.wait_for_log(
            r"stopping waits for 3 open requests \(2 of GET /events/\{name\}, 1 of GET /slow/\{ms:int\}\), "
            "as long as --drain-s says; QUIT, or CTRL\\+C once more, cuts them off"
        )
    else:
        server.wait_for_log(r"stopping waits for \d open requests? \(.*GET /events/\{name\}")
    server.signal(signal.SIGINT)
    assert server.wait() == 0


SLOW_START = """
signal = __import__("signal")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(f"started-{os.getpid()}", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
"""


def test_workers_that_get_ready_during_a_stop_are_not_announced(serve, tmp_path: Path) -> None:
    server: Server = serve(SLOW_START, "-w", "2", "--uds", "s", "--drain-s", "1", ready=False)
    wait_for(lambda: len(list(tmp_path.glob("started-*"))) == 2, "two workers")
    server.signal(signal.SIGTERM)
    wait_for(lambda: not (tmp_path / "s").exists(), "the removal of the socket")
    (tmp_path / "go").touch()
    assert server.wait() == 0
    assert "serves on" not in server.err
    assert "Traceback" not in server.err
