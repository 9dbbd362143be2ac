"""An application that cannot be imported or started: exit codes, tracebacks; what `citius dev` says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from rig import TIMEOUT_S, Server, wait_for

NESTED = "import importlib\nimportlib.import_module('nested')\n"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_import_error_begins_with_the_line_of_the_application(
    serve, tmp_path: Path, workers: str
) -> None:
    """Newcomer B6."""
    (tmp_path / "nested.py").write_text("import missing_module_x\n")
    server: Server = serve(NESTED, "--workers", workers, ready=False)
    assert server.wait() == 3
    assert server.err.count("Traceback") == 1
    frames = re.findall(r'File "(.*)", line', server.err)
    assert frames[0].endswith("main.py")
    assert frames[-1].endswith("nested.py")
    assert not [file for file in frames if "importlib" in file or "/citius/serving/" in file]
    assert "ModuleNotFoundError: No module named 'missing_module_x'" in server.err


SLOW_TO_TELL = """
import os
import time
from pathlib import Path

class Wrong(Exception):
    def __str__(self):
        # The first that is told of waits until the other worker has ended.
        own, others = Path(f"told-{os.getpid()}"), [*Path().glob("told-*")]
        own.touch()
        deadline = time.monotonic() + 3
        while not others and time.monotonic() < deadline:
            time.sleep(0.01)
            others = [one for one in Path().glob("told-*") if one != own and is_gone(one.name[5:])]
        return "wrong"

def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True

raise Wrong
"""


def test_the_traceback_comes_although_another_worker_is_faster(serve) -> None:
    server: Server = serve(SLOW_TO_TELL, "--workers", "2", ready=False)
    assert server.wait() == 3
    assert server.err.count("Traceback") == 1, server.err


@pytest.mark.parametrize("command", ["routes", "openapi", "proto", "mcp"])
def test_other_commands_begin_with_the_line_of_the_application(
    tmp_path: Path, command: str
) -> None:
    """Newcomer B6: these had the frames of the command line above it."""
    (tmp_path / "shop.py").write_text(NESTED)
    (tmp_path / "nested.py").write_text("import missing_module_x\n")
    done = subprocess.run(
        [sys.executable, "-m", "citius", command, "shop:app"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert "importing shop:app failed" in done.stderr
    files = re.findall(r'File ".*?([^/\\"]*)", line', done.stderr)
    assert files == ["shop.py", "nested.py"], done.stderr
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'missing_module_x'\n")


def test_a_syntax_error(serve) -> None:
    server: Server = serve("def f(:\n    pass\n", ready=False)
    assert server.wait() == 3
    assert "SyntaxError" in server.err
    assert re.findall(r'File "(.*)", line', server.err)[0].endswith("main.py")


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    "hook",
    [
        "raise RuntimeError('not there yet')", "raise OSError('not there yet')",
        "await __import__('citius.redis').redis.connect('redis://127.0.0.1:1')",
    ],
)  # fmt: skip
def test_a_start_up_hook_that_fails_may_be_tried_again(serve, hook: str, workers: str) -> None:
    """Newcomer A4: systemd tries again after this exit code."""
    source = f"@app.on_startup\nasync def begin() -> None:\n    {hook}\n"
    server: Server = serve(source, "--workers", workers, ready=False)
    assert server.wait() == 4, server.err


GOOD = "@app.get('/')\ndef root(request: Request) -> str:\n    return 'good'\n"


@pytest.mark.parametrize(
    ("bad", "shown"),
    [
        ("def f(:\n    pass\n", "SyntaxError"), ("import missing_module_x\n", "missing_module_x"),
        ("@app.on_startup\ndef f(): raise RuntimeError('on purpose')\n", "on purpose"),
        ("del app\n", "has no app"), ("sys.exit('ended by itself')\n", "ended by itself"),
        ("app.get('x')(print)\n", "ConfigError: app.get"),
    ],
)  # fmt: skip
def test_in_development_every_request_is_told(serve, tmp_path: Path, bad: str, shown: str) -> None:
    """Newcomer B4."""
    server: Server = serve(GOOD, "--reload", "--reload-delay-s", "0")
    assert server.get("/").body == b"good"
    main = tmp_path / "main.py"
    good = main.read_text()
    main.write_text(good + bad)
    server.wait_for_log("the next change starts it anew")
    for path in ("/", "/other"):
        reply = server.get(path)
        assert reply.status == 500
        assert shown in reply.body.decode()
    assert server.get("/", accept="text/html").headers["content-type"].startswith("text/html")
    main.write_text(good.replace("'good'", "'better'"))
    wait_for(lambda: server.get("/").body == b"better", "the next change")


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("sys.exit()", 3), ("sys.exit(7)", 3), ("raise asyncio.CancelledError", 3),
        ("@app.on_startup\nasync def begin() -> None:\n    sys.exit()", 4),
        ("@app.on_startup\nasync def begin() -> None:\n    raise asyncio.CancelledError", 4),
        ("async def app(scope, receive, send):\n    sys.exit(7)", 4),
        ("async def app(scope, receive, send):\n    raise asyncio.CancelledError", 4),
    ],
)  # fmt: skip
def test_an_end_at_the_start_is_a_failure(serve, source: str, code: int, workers: str) -> None:
    """Servers B2: not a success, and not a worker that is replaced for ever."""
    server: Server = serve(f"import asyncio, sys\n{source}\n", "--workers", workers, ready=False)
    assert server.wait() == code
    assert server.err.count("Traceback") == 1
    assert re.search("SystemExit|CancelledError", server.err)
    assert re.findall(r'File "(.*)", line', server.err)[-1].endswith("main.py")


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("os._exit(0)", 3), ("from os import _exit\n_exit(7)", 3),
        ("os.fork() or os._exit(0)\nos._exit(0)", 3),
        ("@app.on_startup\ndef begin():\n    os._exit(0)", 4),
        ("@app.on_startup\nasync def begin():\n    await asyncio.to_thread(os._exit, 0)", 4),
    ],
)  # fmt: skip
def test_an_end_without_a_word_is_told(serve, source: str, code: int, workers: str) -> None:
    """Issue 32 F3: ``os._exit(0)`` at the import ended a server without a word, and with success."""
    server: Server = serve(f"import asyncio, os\n{source}\n", "--workers", workers, ready=False)
    assert server.wait() == code
    assert re.search(
        r"has ended its process at its start: os\._exit\([07]\) in \S+:\d+", server.err
    )


def test_an_application_that_serves_may_end_its_process(serve) -> None:
    server: Server = serve("import os\n@app.get('/')\ndef end() -> None:\n    os._exit(7)\n")
    with pytest.raises((OSError, EOFError)):
        server.get("/")
    assert server.wait() == 7
    assert "has ended" not in server.err


@pytest.mark.parametrize(
    ("crash", "logged", "told"),
    [
        ("os.abort()", "SIGABRT; starting it anew in 4 s", "the server was ended by SIGABRT"),
        ("os._exit(3)", "the next change starts it anew", "the application could not be started"),
    ],
)
def test_in_development_a_crash_is_told(
    serve, tmp_path: Path, crash: str, logged: str, told: str
) -> None:
    """Newcomer B4: a child that has ended is followed by one that responds."""
    server: Server = serve(GOOD, "--reload", "--reload-delay-s", "0")
    main = tmp_path / "main.py"
    good = main.read_text()
    main.write_text(f"import os\n{crash}\n{good}")
    server.wait_for_log(logged)
    reply = server.get("/")
    assert reply.status == 500
    assert told in reply.body.decode()
    main.write_text(good)
    wait_for(lambda: server.get("/").body == b"good", "the next change")


def test_in_development_a_wrong_option_of_a_file_is_told(serve, tmp_path: Path) -> None:
    """Newcomer B4, servers D5: an environment file that cannot be read as options."""
    file = tmp_path / "settings.env"
    file.write_text("CITIUS_SERVER_HEADER=false\n")
    server: Server = serve(
        GOOD,
        "--reload",
        "--env-file",
        str(file),
        "--reload-include",
        "*.env",
        "--reload-delay-s",
        "0",
    )
    assert server.get("/").body == b"good"
    file.write_text("CITIUS_SERVER_HEADER=maybe\n")
    server.wait_for_log("CITIUS_SERVER_HEADER: expected true or false, got 'maybe'")
    server.wait_for_log("the next change starts it anew")
    assert server.get("/").status == 500
    file.write_text("CITIUS_SERVER_HEADER=true\n")
    wait_for(lambda: server.get("/").headers.get("server") == "citius", "the next change")
