"""WSGI applications mounted in a native one, judged by the validator of the standard library."""

from __future__ import annotations

import threading
from typing import Any
from wsgiref.validate import validator

import pytest
from citius import App
from citius.testing import Client


def mounted(app: Any, prefix: str = "/old", *, judged: bool = True) -> App:
    outer = App()
    outer.mount_wsgi(prefix, validator(app) if judged else app)
    return outer


def show(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    names = ("REQUEST_METHOD", "SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "HTTP_X_A", "HTTP_COOKIE",
             "CONTENT_TYPE", "CONTENT_LENGTH", "SERVER_NAME", "SERVER_PORT", "HTTP_HOST", "SERVER_PROTOCOL",
             "wsgi.url_scheme")  # fmt: skip
    shown = {name: environ.get(name) for name in names}
    text = repr((shown, environ["wsgi.input"].read(10_000_000).__len__()))
    start_response("201 Created", [("Content-Type", "text/plain"), ("X-B", "1"), ("X-B", "2")])
    return [text.encode()]


def test_the_environ() -> None:
    with Client(mounted(show)) as client:
        response = client.post(
            "/old/a%20b/%C3%A4?q=1", content=b"x" * 100_000,
            headers=[("x-a", "1"), ("x_a", "forged"), ("cookie", "a=b"), ("content-type", "text/plain")],
        )  # fmt: skip
        assert response.status_code == 201
        assert response.headers.getlist("x-b") == ["1", "2"]
        assert eval(response.text) == (
            {"REQUEST_METHOD": "POST", "SCRIPT_NAME": "/old", "PATH_INFO": "/a b/\xc3\xa4",
             "QUERY_STRING": "q=1",
             "HTTP_X_A": "1", "HTTP_COOKIE": "a=b", "CONTENT_TYPE": "text/plain", "CONTENT_LENGTH": "100000",
             "SERVER_NAME": "testserver", "SERVER_PORT": "80", "HTTP_HOST": "testserver",
             "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http"}, 100_000,
        )  # fmt: skip


@pytest.mark.parametrize(("path", "info"), [("/old", ""), ("/old/", "/")])
def test_the_prefix_itself(path: str, info: str) -> None:
    with Client(mounted(show)) as client:
        assert f"'PATH_INFO': '{info}'" in client.get(path).text


def test_at_the_root() -> None:
    with Client(mounted(show, "/")) as client:
        assert "'SCRIPT_NAME': '', 'PATH_INFO': '/x'" in client.get("/x").text


def test_streams_are_closed_and_run_in_threads() -> None:
    closed = threading.Event()
    threads: list[str] = []

    class Pieces:
        def __iter__(self) -> Any:
            for number in range(100):
                threads.append(threading.current_thread().name)
                yield b"%d " % number * 1000

        def close(self) -> None:
            closed.set()

    def stream(environ: dict[str, Any], start_response: Any) -> Any:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return Pieces()

    with Client(mounted(stream)) as client:
        assert len(client.get("/old").content) == sum(len(b"%d " % n) * 1000 for n in range(100))
        assert closed.wait(10)
    assert all(name.startswith("citius-blocking") for name in threads)


def test_written_bodies_and_late_starts() -> None:
    def write(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])(b"written ")
        return [b"returned"]

    def late(environ: dict[str, Any], start_response: Any) -> Any:
        start_response("200 OK", [("Content-Type", "text/plain")])
        yield b"late"

    with Client(mounted(write)) as client:
        assert client.get("/old").text == "written returned"
    with Client(mounted(late)) as client:
        assert client.get("/old").text == "late"


def test_errors() -> None:
    def fails(environ: dict[str, Any], start_response: Any) -> Any:
        raise ValueError("a defect")

    def silent(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        return [b""]

    def replaced(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        import sys

        start_response("200 OK", [("Content-Type", "text/plain")])
        try:
            raise ValueError
        except ValueError:
            start_response("503 Busy", [("Content-Type", "text/plain")], sys.exc_info())
        return [b"busy"]

    with Client(mounted(fails)) as client, pytest.raises(ValueError, match="a defect"):
        client.get("/old")
    with (
        Client(mounted(silent, judged=False)) as client,
        pytest.raises(RuntimeError, match="start_response"),
    ):
        client.get("/old")
    with Client(mounted(replaced)) as client:
        assert client.get("/old").status_code == 503


def test_head_and_no_content() -> None:
    def head(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "7")])
        return [b""] if environ["REQUEST_METHOD"] == "HEAD" else [b"1234567"]

    def nothing(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("204 No Content", [])
        return []

    with Client(mounted(head, judged=False)) as client:
        assert client.head("/old").headers["content-length"] == "7"
        assert client.get("/old").headers["content-length"] == "7"
    with Client(mounted(nothing)) as client:
        assert client.get("/old").status_code == 204
