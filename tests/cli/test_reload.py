"""--reload: new code is served, broken code is survived, the port stays."""

from __future__ import annotations

import shutil
import signal
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
