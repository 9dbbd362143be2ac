"""--reload: new code is served, broken code is survived, the port stays."""

from __future__ import annotations

import shutil
import signal
import socket
from pathlib import Path

import pytest
from rig import Server, application, children, is_alive, wait_for

APP = """
@app.get("/")
def hello():
    return "{}"
"""


def test_new_code_broken_code_and_an_end(serve, tmp_path: Path) -> None:
    # With bytecode of the first code, of the same second and of the same size.
    env = {"PYTHONDONTWRITEBYTECODE": ""}
    server: Server = serve(APP.format("one"), "--reload", env=env)
    server.wait_for_log("watching")
    assert server.get("/").body == b"one"
    source = (tmp_path / "main.py").read_text()

    def change(text: str, name: str = "main.py") -> None:
        (tmp_path / name).write_text(text)

    change(source.replace("one", "two"))
    wait_for(lambda: server.get("/").body == b"two", "the new code")
    change("def")
    server.wait_for_log("SyntaxError")
    change(source.replace("one", "three"))
    wait_for(lambda: server.get("/").body == b"three", "code after the syntax error")
    server.signal(signal.SIGINT)
    assert server.wait() == 0


def test_options_and_variables_of_files_are_read_anew(serve, tmp_path: Path) -> None:
    options, variables = tmp_path / "pyproject.toml", tmp_path / "local.env"
    options.write_text("[tool.citius]\n")
    variables.write_text("GREETING=one\n")
    server: Server = serve(
        """
        import os
        @app.get("/")
        def hello() -> str:
            return os.environ["GREETING"]
        """,
        "--reload", "--env-file", "local.env",
    )  # fmt: skip
    server.wait_for_log("watching")
    assert server.get("/health/live").status == 404
    options.write_text('[tool.citius]\nhealth = "/health"\n')
    wait_for(lambda: server.get("/health/live").status == 200, "the new option")
    options.write_text("[tool.citius]\nhealht = 1\n")
    server.wait_for_log("could not be started; the next change starts it anew")
    options.write_text("[tool.citius]\n")
    wait_for(lambda: server.get("/").status == 200, "the application, with the old options")
    variables.write_text("GREETING=two\n")
    wait_for(lambda: server.get("/").body == b"two", "the new variable")


def project(directory: Path, module: str, port: int) -> Path:
    """An application in a file of a directory; returns the file with its options."""
    (directory / module).parent.mkdir(exist_ok=True)
    source = "import citius\napp = citius.App()\n" + APP.format("one")
    (directory / module).write_text(source)
    options = directory / "pyproject.toml"
    options.write_text(f"[tool.citius]\nport = {port}\n")
    return options


def responds(port: int, path: str = "/") -> int:
    """The status of a response, 0 without one."""
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as client:
            client.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            return int((client.recv(1000) or b"HTTP/1.1 0").split()[1])
    except ConnectionError:
        return 0


def test_an_address_that_changes_in_a_file_is_listened_at(tmp_path: Path) -> None:
    """The port from before had clients in the queue of a socket that nothing accepted from."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        first, second = one.getsockname()[1], two.getsockname()[1]
    options = project(tmp_path, "app.py", first)
    server = Server(["app.py", "--reload"], {}, tmp_path)
    try:
        server.wait_ready().wait_for_log("watching")
        assert responds(first) == 200
        options.write_text(f"[tool.citius]\nport = {second}\n")
        server.wait_for_log(
            f"the options name other addresses: listening at http://127.0.0.1:{second}"
        )
        assert responds(second) == 200
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", first), 60)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            options.write_text(f"[tool.citius]\nport = {taken.getsockname()[1]}\n")
            server.wait_for_log("still listening at the addresses from before")
            # The child cannot have the address either, and clients are told so.
            wait_for(lambda: responds(second) == 500, "the reason, at the port from before")
        options.write_text(f"[tool.citius]\nport = {first}\n")
        wait_for(lambda: responds(first) == 200, "the first port again")
    finally:
        server.kill()


def test_options_above_the_watched_directory_are_watched(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    options = project(tmp_path, "src/app.py", port)
    server = Server(["src/app.py", "--reload", "--port", str(port)], {}, tmp_path)
    try:
        server.wait_ready().wait_for_log("watching .*src")
        assert responds(port, "/health/live") == 404
        options.write_text('[tool.citius]\nhealth = "/health"\n')
        server.wait_for_log("pyproject.toml changed; starting anew")
        wait_for(lambda: responds(port, "/health/live") == 200, "the new option")
        options.unlink()
        wait_for(lambda: responds(port, "/health/live") == 404, "the options without the file")
    finally:
        server.kill()


def test_a_directory_that_is_not_there(serve) -> None:
    server: Server = serve(APP, "--reload", "--reload-dir", "nowhere", ready=False)
    assert server.wait() == 3
    assert "--reload-dir: there is no directory nowhere" in server.err


ENDS = application("reload_ends_app").read_text()


@pytest.mark.parametrize(
    "sig", [signal.SIGKILL, signal.SIGHUP, signal.SIGQUIT], ids=lambda sig: sig.name
)
def test_no_child_outlives_the_reloader(serve, sig: signal.Signals) -> None:
    server: Server = serve(ENDS, "--reload")
    server.wait_for_log("watching")
    (child,) = children(server)
    server.signal(sig)
    assert server.wait() == (-9 if sig == signal.SIGKILL else 0)
    wait_for(lambda: not is_alive(child), "the end of the child")
    with pytest.raises(ConnectionRefusedError):
        server.connect()


def test_a_server_that_ends_by_itself_is_started_anew(serve) -> None:
    server: Server = serve(ENDS, "--reload")
    before = server.get("/").body
    with pytest.raises((EOFError, ConnectionError)):
        server.get("/end")
    server.wait_for_log(r"the server was ended by SIGKILL; starting it anew")
    assert server.get("/").body != before


def test_an_application_that_does_not_start_waits_for_a_change(serve, tmp_path: Path) -> None:
    server: Server = serve("1 // 0", "--reload", ready=False)
    server.wait_for_log("could not be started; the next change starts it anew")
    (tmp_path / "main.py").write_text("from citius import *\napp = App()\n" + APP.format("one"))
    assert server.wait_ready().get("/").body == b"one"


def test_asking_twice_ends_a_stream(serve) -> None:
    server: Server = serve(ENDS, "--reload", "--drain-s", "600")
    with server.connect() as peer:
        peer.send(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.read_until(b"x")
        server.signal(signal.SIGINT)
        server.wait_for_log("stopping waits for 1 open request")
        server.signal(signal.SIGINT)
        assert server.wait() == 0


def test_directories_above_the_project_are_not_excluded(tmp_path: Path) -> None:
    project = tmp_path / "tests/.venv/project"
    (project / "tests").mkdir(parents=True)
    (project / "main.py").write_text("from citius import *\napp = App()\n" + APP.format("one"))
    server = Server(
        ["main.py", "--port", "0", "--reload", "--reload-exclude", "tests"], {}, project
    )
    try:
        server.wait_ready().wait_for_log("watching")
        (project / "tests/test_x.py").write_text("excluded")
        (project / "other.py").write_text("watched")
        server.wait_for_log("other.py changed")
        assert "test_x.py" not in server.err
    finally:
        server.signal(signal.SIGTERM)
        server.kill()


@pytest.mark.parametrize("arguments", [[], ["--reload-dir", "../watched"]])
def test_a_deleted_working_directory_is_no_traceback(tmp_path: Path, arguments: list[str]) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "watched").mkdir()
    (project / "main.py").write_text("from citius import *\napp = App()\n" + APP.format("one"))
    server = Server(["main.py", "--port", "0", "--reload", *arguments], {}, project)
    try:
        server.wait_ready().wait_for_log("watching")
        shutil.rmtree(project)
        if arguments:
            (tmp_path / "watched/new.py").touch()
            server.wait_for_log("the server cannot be started: .*the next change tries again")
            server.signal(signal.SIGTERM)
            assert server.wait() == 0
        else:
            assert server.wait() == 3
            assert "which is watched, does not exist any more; stopping" in server.err
        assert "Traceback" not in server.err
    finally:
        server.kill()


def test_options_of_the_deployment_are_set_aside_for_the_child_too(serve, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.citius]\nsandbox = true\n")
    server: Server = serve(
        """
        import os
        @app.get("/")
        def parent() -> str:
            return str(os.getppid())
        """,
        "--reload",
        env={"WEB_CONCURRENCY": "2"},
    )
    # A worker has a supervisor between itself and the process that was started.
    assert server.get("/").body == str(server.process.pid).encode()
