"""--reload: new code is served, broken code is survived, the port stays."""

from __future__ import annotations

import signal
from pathlib import Path

from rig import Server, wait_for

APP = """
@app.get("/")
def hello():
    return "{}"
"""


def test_new_code_broken_code_and_an_end(serve, tmp_path: Path) -> None:
    server: Server = serve(APP.format("one"), "--reload")
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


def test_a_directory_that_is_not_there(serve) -> None:
    server: Server = serve(APP, "--reload", "--reload-dir", "nowhere", ready=False)
    assert server.wait() == 3
    assert "--reload-dir: there is no directory nowhere" in server.err
