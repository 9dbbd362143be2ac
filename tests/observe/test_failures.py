"""A handler's exception is counted once and logged with what is known of its request: all interfaces."""

from __future__ import annotations

import re

import pytest
from rig import Server, application, wait_for

NATIVE = application("failing_handlers_app")

CASES = [
    ("/def?a=b", "raising", "/def", "RuntimeError: a defect"),
    ("/request", "raising_with_request", "/request", "RuntimeError: a defect"),
    ("/async/7", "stepped", "/async/{id:int}", "RuntimeError: a defect"),
    ("/late", "late", "/late", "RuntimeError: a defect"),
    ("/blocking", "threaded", "/blocking", "RuntimeError: a defect"),
    ("/stream", "streamed", "/stream", "RuntimeError: a defect"),
    ("/async-stream", "astreamed", "/async-stream", "RuntimeError: a defect"),
    (
        "/unencodable",
        "unencodable",
        "/unencodable",
        "TypeError: the response cannot be encoded: Encoding",
    ),
    ("/unawaited", "unawaited", "/unawaited", "TypeError: the handler returned a coroutine"),
    ("/error-handler", "keyed", "/error-handler", "RuntimeError: a defect"),
]


def exceptions(managed) -> float:
    return managed.metrics()["citius_handler_exceptions_total"]


def ask(server: Server, path: str, **headers: str) -> bytes:
    """All that comes of a request, even if its response is cut off."""
    with server.connect() as peer:
        fields = "".join(
            f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()
        )
        peer.send(f"GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{fields}\r\n".encode())
        return peer.read_to_end()


def entry(server: Server, path: str) -> str:
    """The notice about a path, with the traceback that follows it."""
    start = re.compile(rf"^.*ERROR (?:GET|WebSocket) {re.escape(path)}[ :].*$", re.M)
    wait_for(lambda: start.search(server.err), f"a notice about {path}")
    text = server.err
    found = start.search(text)
    assert found
    return re.split(r"^\d{4}-\d\d-\d\d ", text[found.start() + 5 :], maxsplit=1, flags=re.M)[0]


def test_native_handlers(manage) -> None:
    managed = manage(NATIVE, "--request-id", "x-request-id", "--no-access-log")
    for count, (path, handler, route, message) in enumerate(CASES, start=1):
        ask(managed.server, path)
        wait_for(lambda count=count: exceptions(managed) == count, f"{path} to be counted once")
        text = entry(managed.server, path)
        line = text.splitlines()[0]
        assert re.search(
            rf"route {re.escape(route)}, handler {handler} \(.*failing_handlers_app\.py:\d+\)", line
        )
        assert re.search(r"request id [0-9a-f]{32}\]", line), line
        assert message in text


def test_native_websockets(manage) -> None:
    managed = manage(NATIVE, "--no-access-log")
    open_socket(managed.server, "/ws?a")
    wait_for(lambda: exceptions(managed) == 1, "the exception to be counted")
    line = entry(managed.server, "/ws?a").splitlines()[0]
    assert re.search(
        r"failed \[route /ws, handler ws \(.*failing_handlers_app\.py:\d+\)\]", line
    ), line


def open_socket(server: Server, path: str) -> None:
    with server.connect() as peer:
        peer.send(
            f"GET {path} HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        peer.read_until(b"\r\n\r\n")


ASGI = application("failing_asgi_app")


def test_asgi_applications(manage) -> None:
    managed = manage(ASGI, "--request-id", "x-request-id", "--no-access-log")
    paths = ["/now?a=b", "/late", "/endpoint", "/started", "/complete"]
    for count, path in enumerate(paths, start=1):
        ask(managed.server, path)
        wait_for(lambda count=count: exceptions(managed) == count, f"{path} to be counted once")
        text = entry(managed.server, path)
        called = "handler app" if path == "/endpoint" else "application failing_asgi_app:app"
        told = rf"\[{called} \(.*failing_asgi_app\.py:\d+\), request id [0-9a-f]{{32}}\]"
        assert re.search(told, text.splitlines()[0])
        assert "Traceback" in text
        assert "RuntimeError: a defect" in text
    assert re.search(
        r"handler app \(.*failing_asgi_app\.py:\d+\)", entry(managed.server, "/endpoint")
    )


def test_asgi_websockets(manage) -> None:
    managed = manage(ASGI, "--no-access-log")
    for count, path in enumerate(["/asked", "/accepted"], start=1):
        open_socket(managed.server, path)
        wait_for(lambda count=count: exceptions(managed) == count, f"{path} to be counted once")
        assert "RuntimeError: a defect" in entry(managed.server, path)


WSGI = """
def app(environ, start_response):
    if environ["PATH_INFO"] == "/started":
        def pieces():
            yield b"a"
            raise RuntimeError("a defect")
        start_response("200 OK", [])
        return pieces()
    raise RuntimeError("a defect")
"""


@pytest.mark.parametrize("threads", ["0", "2"])
def test_wsgi_applications(manage, threads: str) -> None:
    managed = manage(WSGI, "--threads", threads, "--request-id", "x-request-id", "--no-access-log")
    for count, path in enumerate(["/now?a=b", "/started"], start=1):
        ask(managed.server, path)
        wait_for(lambda count=count: exceptions(managed) == count, f"{path} to be counted once")
        text = entry(managed.server, path)
        told = r"failed \[application main:app \(.*main\.py:\d+\), request id [0-9a-f]{32}\]"
        assert re.search(told, text.splitlines()[0])
        assert "RuntimeError: a defect" in text


OBJECT = """
class Shop:
    def __call__(self, environ, start_response):
        raise RuntimeError("a defect")
app = Shop()
"""


def test_an_application_that_is_an_object_goes_by_its_class(serve) -> None:
    server = serve(OBJECT, "--interface", "wsgi", "--no-access-log")
    ask(server, "/a")
    server.wait_for_log(r"GET /a failed \[application main:Shop \(.*main\.py:\d+\)\]")


TOO_LONG = application("wsgi_too_long_app")


@pytest.mark.parametrize("threads", ["0", "2"])
def test_a_body_that_is_too_long_names_its_request(serve, threads: str) -> None:
    server = serve(TOO_LONG, "--interface", "wsgi", "--threads", threads, "--no-access-log")
    for path in ("/streamed", "/written"):
        assert server.get(f"{path}?a").body == b"abc"
        server.wait_for_log(
            rf"GET {path}\?a: a body is longer than its content-length; what is more was left out.*"
            r"\[application wsgi_too_long_app:app"
        )
