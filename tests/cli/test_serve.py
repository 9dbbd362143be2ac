"""`citius serve`: what it accepts, what it says when it cannot start, and how it ends."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from citius import __version__
from citius.settings.config import OPTIONS
from rig import Server, citius, wait_for

APP = """
@app.get("/")
def hello():
    return "Hello"
"""


def test_version() -> None:
    done = citius("--version")
    assert (done.returncode, done.stdout) == (0, f"citius {__version__}\n")


def test_help_lists_the_commands_and_every_option() -> None:
    commands = ["serve", "dev", "new", "routes", "openapi", "proto", "mcp", "load", "lab"]
    assert re.findall(r"^  (\w+) ", citius("--help").stdout, re.M) == commands
    text = citius("serve", "--help").stdout
    for option in OPTIONS.values():
        assert option.flags[0] in text, option.name
    assert "docs/" not in text  # newcomer C: a wheel has no guides
    assert citius("dev", "--help").stdout.startswith("Usage: citius dev [OPTIONS] [TARGET]\n")
    assert "Try 'citius dev --help' for help." in citius("dev", "--nope").stderr


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_serves_until_a_signal(serve, sig: signal.Signals) -> None:
    server: Server = serve(APP)
    assert server.get("/").body == b"Hello"
    server.signal(sig)
    assert server.wait() == 0
    assert re.search(
        r'^\S+ \S+ INFO  127\.0\.0\.1:\d+ - "GET / HTTP/1\.1" 200 5B \d+\.\dms$', server.out, re.M
    )


WSGI = """
def app(*arguments):
    arguments[-1]("200 OK", [])
    return [b"Hello"]
app.__wrapped__ = lambda request: None
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_start_names_the_interface_once(serve, workers: str) -> None:
    server: Server = serve(WSGI, "--workers", workers)
    assert server.get("/").body == b"Hello"
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    notice = r"main.py:app is a WSGI application: guessed, for it takes any arguments"
    assert len(re.findall(notice, server.err)) == 1


def test_a_variable_that_stands_for_nothing_is_named(serve) -> None:
    server: Server = serve(APP, env={"CITIUS_WORKER": "4"})
    server.wait_for_log(
        "WARN  CITIUS_WORKER in the environment stands for no option; did you mean CITIUS_WORKERS"
    )


def test_access_log_off_and_quiet(serve) -> None:
    server: Server = serve(APP, "--no-access-log")
    server.get("/")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert server.out == ""


class TestCannotStart:
    """An exit code, and a message that says what was expected, what came, and what to do."""

    def check(self, server: Server, *patterns: str, code: int = 3) -> None:
        assert server.wait() == code
        for pattern in patterns:
            assert re.search(pattern, server.err), f"{pattern!r} is not in\n{server.err}"

    def test_port_taken(self, serve) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = str(other.getsockname()[1])
            for workers in ("1", "2"):
                server = serve(APP, "--port", port, "--workers", workers, ready=False)
                self.check(
                    server,
                    f"cannot listen on 127.0.0.1:{port}: address already in use",
                    "choose another port with --port",
                )
                assert "Traceback" not in server.err

    def test_port_taken_by_another_citius(self, serve) -> None:
        for workers in ("1", "2"):
            first: Server = serve(APP, "--workers", workers)
            second = serve(APP, "--port", str(first.port), "--workers", workers, ready=False)
            self.check(second, "address already in use")
            first.kill()

    def test_foreign_address(self, serve) -> None:
        self.check(
            serve(APP, "--host", "192.0.2.1", ready=False),
            "cannot listen on 192.0.2.1:0: cannot assign",
            "--host, or HOST of --bind HOST:PORT, is a name or an address of this machine",
        )

    def test_syntax_error(self, serve) -> None:
        self.check(serve("def", ready=False), "importing main.py failed", "SyntaxError")

    def test_exception_in_the_module(self, serve) -> None:
        self.check(serve("1 // 0", ready=False), "ZeroDivisionError", r"main\.py")

    @pytest.mark.parametrize("workers", ["1", "2"])
    def test_no_application(self, serve, workers: str) -> None:
        self.check(
            serve("del app", "--workers", workers, ready=False),
            "main has no app, application, api, create_app, make_app; there is no application in it",
        )

    @pytest.mark.parametrize("workers", ["1", "2"])
    def test_failing_hook(self, serve, workers: str) -> None:
        source = "@app.on_startup\ndef hook(): raise RuntimeError('no database')"
        self.check(
            serve(source, "--workers", workers, ready=False),
            "the application did not start", "RuntimeError: no database", code=4,
        )  # fmt: skip

    def test_routes_that_contradict(self, serve) -> None:
        source = 'app.get("/{a}")(lambda a: a)\napp.get("/{b}")(lambda b: b)'
        self.check(serve(source, ready=False), r"GET /\{b\} for .*main\.py:\d+.* cannot be added")

    def test_loop_none_with_async_handlers(self, serve) -> None:
        source = '@app.get("/")\nasync def hello(): ...'
        self.check(
            serve(source, "--loop", "none", ready=False),
            r"--loop none has no event loop, and hello \(.*main\.py:\d+\) is `async def`",
        )

    def test_bad_fd(self, serve) -> None:
        self.check(serve(APP, "--fd", "99", ready=False), "cannot listen on descriptor 99")

    def test_uds_that_somebody_serves(self, serve, tmp_path: Path) -> None:
        path = str(tmp_path / "s")
        serve(APP, "--uds", path)
        self.check(serve(APP, "--uds", path, ready=False), "address already in use")


class TestUsage:
    """Exit code 2: the command line itself is wrong."""

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "no target: say what to serve"),
            (
                ["x:app", "--port", "eighty"],
                "expected a whole number from 0 to 65535, got 'eighty'",
            ),
            (
                ["x:app", "--loop", "trio"],
                "expected one of auto, uvloop, asyncio, gevent, none, got 'trio'",
            ),
            (["x:app", "--reload", "-w", "2"], "reload and workers contradict each other"),
            (["x:app", "--head-bytes-max", "-1"], "expected a whole number of bytes, at least 1"),
            (["x:app", "-b", "h:port"], "--bind: expected a whole number"),
            (["x:app", "--prot", "1"], "No such option"),
        ],
    )
    def test_message(self, arguments: list[str], message: str) -> None:
        done = citius("serve", *arguments)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())


class TestSources:
    def test_environment_and_file(self, serve, tmp_path: Path) -> None:
        (tmp_path / "pyproject.toml").write_text("[tool.citius]\nserver-header = false\n")
        server: Server = serve(APP, env={"CITIUS_DATE_HEADER": "off"})
        headers = server.get("/").headers
        assert not {"server", "date"} & headers.keys()

    def test_gunicorns_bind(self, serve) -> None:
        server: Server = serve(APP, "-b", "127.0.0.1:0")
        assert server.get("/").status == 200

    @pytest.mark.epoll("it is about several workers")
    def test_print_config_says_whence(self, tmp_path: Path) -> None:
        (tmp_path / "pyproject.toml").write_text("[tool.citius]\nserver-header = false\n")
        done = citius(
            "serve", "--print-config", "-w", "3", "--bind", ":1",
            cwd=tmp_path, env={**os.environ, "CITIUS_DRAIN_S": "7"},
        )  # fmt: skip
        assert done.returncode == 0
        assert re.search(r"^workers = 3 +# --workers$", done.stdout, re.M)
        assert re.search(r"^drain_s = 7.0 +# CITIUS_DRAIN_S$", done.stdout, re.M)
        assert re.search(r"^server_header = false +# pyproject.toml$", done.stdout, re.M)
        assert re.search(r"^# uds is not set$", done.stdout, re.M)
        # It is a file that says the same.
        (tmp_path / "other.toml").write_text(done.stdout)
        again = citius("serve", "--print-config", "-c", "other.toml", cwd=tmp_path)
        values = [line.partition("#")[0] for line in done.stdout.splitlines()]
        assert [line.partition("#")[0] for line in again.stdout.splitlines()] == values

    def test_check_config(self, tmp_path: Path) -> None:
        (tmp_path / "main.py").write_text("from citius import App\napp = App()\n")
        done = citius("serve", "--check-config", "main:app", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "main:app can be served" in done.stdout
        (tmp_path / "main.py").write_text("1 // 0")
        done = citius("serve", "--check-config", "main:app", cwd=tmp_path)
        assert done.returncode == 3
        assert "ZeroDivisionError" in done.stderr

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--log-config", "none.json"], "none.json"),
            (["--user", "nobody-has-this-name"], "there is no user"),
            (
                ["--log-file", "none/log"],
                "log_file: cannot write to none/log: no such file or directory",
            ),
            (["--pid", "none/pid"], "pidfile: cannot write none/pid"),
            (["--sandbox", "--sandbox-write", "none"], "sandbox_write: there is no none"),
        ],
        ids=["log config", "user", "log file", "pid file", "sandbox"],
    )
    def test_check_config_refuses_what_the_start_does(
        self, tmp_path: Path, options: list[str], said: str
    ) -> None:
        (tmp_path / "main.py").write_text("from citius import App\napp = App()\n")
        for words in (["--check-config"], ["--port", "0"]):
            done = citius("serve", "main:app", *options, *words, cwd=tmp_path)
            assert done.returncode == 3
            assert said in done.stderr
        assert sorted(one.name for one in tmp_path.iterdir() if one.name != "__pycache__") == [
            "main.py"
        ]

    def test_environment_file_and_directory(self, serve, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub/env").write_text("GREETING=hello\nCITIUS_SERVER_HEADER=off\n")
        (tmp_path / "sub/other.py").write_text(
            "import os\nfrom citius import App\napp = App()\n"
            "app.get('/')(lambda: os.environ['GREETING'] + os.environ['NAME'])\n"
        )
        server = Server(
            ["other:app", "--port", "0", "--chdir", "sub", "--env-file", "env", "-e", "NAME=you"],
            {}, tmp_path,
        )  # fmt: skip
        try:
            reply = server.wait_ready().get("/")
            assert reply.body == b"helloyou"
            assert "server" not in reply.headers
        finally:
            server.kill()

    def test_pidfile(self, serve, tmp_path: Path) -> None:
        path = tmp_path / "pid"
        server: Server = serve(APP, "--pidfile", str(path))
        assert path.read_text() == f"{server.process.pid}\n"
        other: Server = serve(APP, "--pidfile", str(path), ready=False)
        assert other.wait() == 3
        assert f"names process {server.process.pid}, which runs" in other.err
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert not path.exists()

    def test_log_config(self, serve, tmp_path: Path) -> None:
        (tmp_path / "log.json").write_text(
            '{"version": 1, "handlers": {"f": {"class": "logging.FileHandler", "filename": "out"}},'
            ' "loggers": {"citius": {"handlers": ["f"], "level": "INFO"}}}'
        )
        server: Server = serve(APP, "--log-config", "log.json", ready=False)
        wait_for((tmp_path / "out").exists, "the file")
        wait_for(lambda: "serves on" in (tmp_path / "out").read_text(), "a notice in it")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0

    def test_signals_that_need_a_supervisor(self, serve) -> None:
        server: Server = serve(APP)
        server.signal(signal.SIGUSR2)
        server.wait_for_log("SIGUSR2 means nothing without a supervisor; see --supervisor")
        assert server.get("/").status == 200

    def test_inherited_socket(self, tmp_path: Path) -> None:
        (tmp_path / "main.py").write_text(f"from citius import App\napp = App(){APP}")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            process = subprocess.Popen(
                [sys.executable, "-m", "citius", "serve", "main:app", "--fd", str(listener.fileno())],
                cwd=tmp_path, pass_fds=[listener.fileno()], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            try:
                with socket.create_connection(listener.getsockname(), 10) as peer:
                    peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    assert peer.recv(100).startswith(b"HTTP/1.1 200")
            finally:
                process.terminate()
                assert process.wait(10) == 0

    def test_uvicorns_keep_alive_in_seconds(self, serve) -> None:
        server: Server = serve(APP, "--timeout-keep-alive", "0.1")
        with server.connect() as peer:
            assert peer.request("GET", "/").status == 200
            assert peer.is_closed()

    def test_the_fixtures_own_port_is_not_used(self, serve, tmp_path: Path) -> None:
        """A stale Unix socket is replaced."""
        path = tmp_path / "s"
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(path))
        server: Server = serve(APP, "--uds", str(path))
        assert server.get("/").status == 200


def test_load_is_the_labs_binary() -> None:
    binary = Path(__file__).parents[2] / "lab/citius_lab/bin/citius-load"
    done = citius("load", "--help")
    if importlib.util.find_spec("citius_lab") is None:
        assert done.returncode == 1
        assert "pip install 'citius[lab]'" in done.stderr
    elif binary.exists():
        assert done.returncode == 0
        assert "citius" in done.stdout.lower()
    else:
        assert done.returncode == 1
        assert "make build" in done.stderr


def test_lab_says_how_to_get_it() -> None:
    program = (
        "import sys; sys.modules['citius_lab'] = None\n"
        "from citius.__main__ import main; main(['lab', '--help'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "pip install 'citius[lab]'" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_the_very_end_is_no_failure(serve, number: signal.Signals) -> None:
    source = APP + (
        "import atexit\natexit.register(lambda: (print('leaving', flush=True), time.sleep(60)))\n"
    )
    server = serve(source, "--no-access-log")
    server.signal(signal.SIGTERM)
    wait_for(lambda: "leaving" in server.out, "the application's last word")
    server.signal(number)
    assert server.wait() == 0


def test_run_from_code(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        f"from citius import App, Config\napp = App(){APP}\napp.serve(Config(port=0, access_log=False))"
    )
    process = subprocess.Popen(
        [sys.executable, "main.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        assert "serves on http://127.0.0.1:" in process.stderr.readline()
    finally:
        process.terminate()
        assert process.wait(10) == 0
        process.stderr.close()


def test_run_from_code_that_new_processes_import(tmp_path: Path) -> None:
    """An executor's processes import the main module: `app.serve` without a condition is refused there."""
    (tmp_path / "main.py").write_text(
        "from citius import App, Config\napp = App()\napp.executor('e', processes=1)\n"
        "@app.get('/', executor='e')\ndef f() -> int: return 1\n"
        "app.serve(Config(port=0, access_log=False))"
    )
    process = subprocess.Popen(
        [sys.executable, "main.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        told = next(line for line in lines if line.startswith("citius: "))
        assert 'write `if __name__ == "__main__":` above app.serve' in told
    finally:
        process.terminate()
        process.communicate(timeout=10)
        assert process.returncode == 0


@pytest.mark.parametrize(("arguments", "coloured"), [([], True), (["--no-use-colors"], False)])
def test_colours_on_a_terminal(tmp_path: Path, arguments: list[str], coloured: bool) -> None:
    (tmp_path / "main.py").write_text("from citius import App\napp = App()\n")
    ours, its = os.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [sys.executable, "-m", "citius", "serve", "main:app", "--port", "0", *arguments],
        cwd=tmp_path, stderr=its, env=environment,
    )  # fmt: skip
    try:
        line = os.read(ours, 1000)
        assert b"serves on" in line
        assert (b"\x1b[32mINFO" in line) is coloured
    finally:
        process.terminate()
        assert process.wait(10) == 0
        os.close(ours)
        os.close(its)
