"""The server's log, whatever the application does with logging (servers D4, D11)."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from rig import Server, application, children, wait_for

APP = application("dict_config_app")


def _replace(server: Server, by: str) -> None:
    before = set(children(server))
    if by == "HUP":
        server.signal(signal.SIGHUP)
    else:
        for pid in before:
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not before & set(children(server)), "other workers")
    wait_for(lambda: server.get("/").status == 200, "a worker that serves")


@pytest.mark.parametrize("by", ["HUP", "KILL"])
def test_tracebacks_of_replaced_workers(serve, by: str) -> None:
    """Servers D4: the logger that is inherited is disabled by `dictConfig`."""
    server: Server = serve(APP, "--workers", "2", "--no-access-log")
    assert server.get("/fail").status == 500
    server.wait_for_log("RuntimeError: failed on purpose")
    _replace(server, by)
    assert server.get("/fail").status == 500
    server.wait_for_log("RuntimeError: failed on purpose", 2)


def test_a_notice_before_the_import_changes_nothing(serve) -> None:
    server: Server = serve(APP, env={"CITIUS_BOGUS": "1"})
    server.get("/fail")
    server.wait_for_log("RuntimeError: failed on purpose")


def test_a_handler_of_the_application_gets_each_record_once(serve) -> None:
    """Servers D4, second face."""
    server: Server = serve(APP, "--workers", "1", "--supervisor", env={"OWN_HANDLER": "1"})
    server.get("/fail")
    server.wait_for_log("OWN (.|\n)*?RuntimeError: failed on purpose")
    _replace(server, "HUP")
    server.get("/fail")
    server.wait_for_log("RuntimeError: failed on purpose", 2)
    server.stop()
    assert server.err.count("RuntimeError: failed on purpose") == 2


JSON = {
    "version": 1,
    "formatters": {"line": {"format": "FILE %(name)s %(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
INI = """\
[loggers]
keys=root
[handlers]
keys=stderr
[formatters]
keys=line
[logger_root]
handlers=stderr
level=INFO
[handler_stderr]
class=StreamHandler
formatter=line
args=(sys.stderr,)
[formatter_line]
format=FILE %(name)s %(levelname)s %(message)s
"""
FAILING = """
@app.get("/fail")
def fail(request: Request) -> str:
    raise RuntimeError("failed on purpose")
"""


@pytest.mark.parametrize("kind", ["json", "ini"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_file_with_a_root_logger_governs(serve, tmp_path: Path, kind: str, workers: str) -> None:
    """Servers D11: every record of the server goes through the handler of the root logger, once."""
    file = tmp_path / f"log.{kind}"
    file.write_text(json.dumps(JSON) if kind == "json" else INI)
    server: Server = serve(FAILING, "--log-config", str(file), "--workers", workers)
    server.get("/fail")
    server.wait_for_log(r"FILE citius ERROR (.|\n)*RuntimeError: failed on purpose")
    server.stop()
    assert "FILE citius INFO Citius" in server.err
    assert server.err.count("RuntimeError: failed on purpose") == 1
    assert server.err.count("serves on") == 1


@pytest.mark.parametrize(("section", "count"), [({}, 1), ({"propagate": True}, 2)])
def test_a_file_with_handlers_for_citius(
    serve, tmp_path: Path, section: dict[str, object], count: int
) -> None:
    """The root logger's handlers get the records as well only if the file says so."""
    table = {**JSON, "loggers": {"citius": {"handlers": ["stderr"], **section}}}
    file = tmp_path / "log.json"
    file.write_text(json.dumps(table))
    server: Server = serve(FAILING, "--log-config", str(file))
    server.stop()
    assert server.err.count("serves on") == count


def test_a_closed_standard_error(serve) -> None:
    """The application closes the stream; the descriptor is there."""
    server: Server = serve(
        """
        sys.stderr.close()
        @app.get("/fail")
        def fail(request: Request) -> str:
            raise RuntimeError("failed on purpose")
        """
    )
    server.get("/fail")
    server.wait_for_log("RuntimeError: failed on purpose")


HARM = {
    "disable": "__import__('logging').disable(50)",
    "stream": "sys.stderr = sys.stdout = __import__('io').StringIO()",
    "record": "__import__('logging').setLogRecordFactory(lambda *a, **k: 1 // 0)",
    "filter": "__import__('logging').getLogger('citius').addFilter(lambda record: 1 // 0)",
    "handler": "__import__('logging').getLogger('citius').addHandler(object())",
}


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=["alone", "workers"])
def test_what_is_done_to_logging_as_a_whole(serve, harm: str, workers: list[str]) -> None:
    """Servers D4: in the first worker as in one that was forked after the server had logged."""
    server: Server = serve(
        f"""
        {HARM[harm]}
        @app.get("/")
        def root(request: Request) -> str:
            return "here"
        @app.get("/fail")
        def fail(request: Request) -> str:
            raise RuntimeError("failed on purpose")
        """,
        *workers,
    )
    server.get("/fail")
    server.wait_for_log("RuntimeError: failed on purpose")
    if workers:
        _replace(server, "KILL")
        server.get("/fail")
        server.wait_for_log("RuntimeError: failed on purpose", 2)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_the_level_of_the_application_holds_in_every_worker(serve) -> None:
    server: Server = serve(
        """
        __import__("logging").getLogger("citius").setLevel(50)
        @app.get("/fail")
        def fail(request: Request) -> str:
            raise RuntimeError("failed on purpose")
        @app.get("/")
        def root(request: Request) -> str:
            return "here"
        """,
        "--workers",
        "2",
    )
    server.get("/fail")
    _replace(server, "HUP")
    server.get("/fail")
    server.stop()
    assert "failed on purpose" not in server.err
