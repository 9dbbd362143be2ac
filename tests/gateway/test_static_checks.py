"""What ends the start beside static mounts, wherever the application is served.

``citius serve`` refused two mounts of one prefix and the test client took them; both took routes and mounted
applications that no request reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from citius import App, Config, ConfigError, WebSocket
from citius.serving.service import Service, WorkerContext
from citius.testing import AsyncClient, Client
from citius.web.middleware import SecurityHeaders


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "file.txt").write_text("of the mount")
    return tmp_path


async def asgi(scope: Any, receive: Any, send: Any) -> None: ...
def wsgi(environ: Any, start_response: Any) -> list[bytes]:
    return []


async def echo(socket: WebSocket) -> None: ...


def route(rest: str) -> str:
    return rest


def named(name: str) -> str:
    return f"of {name}"


def inner(path: str = "/inner") -> App:
    app = App()
    app.get(path)(lambda: "inner")
    return app


def with_files(prefix: str, files: Path) -> App:
    app = App()
    app.static(prefix, files)
    return app


def by_client(app: App) -> None:
    Client(app).close()


def by_server(app: App) -> None:
    Service(app, Config(), WorkerContext(listeners=[], ready=bool))


def by_async_client(app: App) -> None:
    async def run() -> None:
        async with AsyncClient(app):
            pass

    asyncio.run(run())


def twice(app: App, files: Path) -> None:
    app.static("/x", files)
    app.static("/x", files)


def one_is_missing(app: App, files: Path) -> None:
    app.static("/x", files)
    app.static("/x", files / "missing", optional=True)


def twice_at_the_root(app: App, files: Path) -> None:
    app.static("/", files, middleware=False)
    app.static("/", files, middleware=False)


def in_a_mounted_application(app: App, files: Path) -> None:
    app.static("/x/y", files)
    app.mount("/x", with_files("/y", files))


def at_the_root_of_a_mounted_application(app: App, files: Path) -> None:
    app.static("/x", files, middleware=False)
    member = App()
    member.static("/", files, middleware=False)
    app.mount("/x", member)


def one_application_at_one_place_twice(app: App, files: Path) -> None:
    member = with_files("/s", files)
    app.mount("/x", member)
    app.mount("/x", member)


def missing(app: App, files: Path) -> None:
    app.static("/x", files / "missing")


def around_asgi(app: App, files: Path) -> None:
    app.static("/x", files)
    app.mount("/x", asgi)


def around_wsgi(app: App, files: Path) -> None:
    app.mount_wsgi("/x", wsgi)
    app.static("/x", files)


def of_a_route(app: App, files: Path) -> None:
    app.get("/x/{rest:path}")(route)
    app.static("/x", files)


ALWAYS: list[tuple[Callable[[App, Path], None], str]] = [
    (twice, "static /x is mounted twice: .*test_static_checks.py:"),
    (one_is_missing, "static /x is mounted twice: .*test_static_checks.py:"),
    (twice_at_the_root, "static / is mounted twice: .*test_static_checks.py:"),
    (in_a_mounted_application, "static /x/y is mounted twice: .*test_static_checks.py:"),
    (at_the_root_of_a_mounted_application, "static /x is mounted twice: "),
    (one_application_at_one_place_twice, "static /x/s is mounted twice: "),
    (missing, r"static /x \(.*\.py:\d+\): there is no directory"),
    (around_asgi, "requests of /x for mounted .*asgi.* never come there: the files of /x .*.py:"),
    (around_wsgi, "requests of /x for mounted .*wsgi.* never come there: the files of /x .*.py:"),
    (of_a_route, "GET requests of /x/{rest:path} for .*route.* never come there: the files of /x"),
]


@pytest.mark.parametrize("serve", [by_client, by_async_client, by_server])
@pytest.mark.parametrize("with_middleware", [False, True])
@pytest.mark.parametrize(("declare", "said"), ALWAYS, ids=[one.__name__ for one, _ in ALWAYS])
def test_refused(
    declare: Callable[[App, Path], None],
    said: str,
    with_middleware: bool,
    serve: Callable[[App], None],
    files: Path,
) -> None:
    app = App()
    if with_middleware:
        app.middleware(SecurityHeaders())
    declare(app, files)
    with pytest.raises(ConfigError, match=said):
        serve(app)


def below_a_parameter(app: App, files: Path) -> None:
    app.mount("/x/{number}", with_files("/files", files))


@pytest.mark.parametrize("serve", [by_client, by_server])
@pytest.mark.parametrize("with_middleware", [False, True])
def test_files_below_a_parameter(
    with_middleware: bool, serve: Callable[[App], None], files: Path
) -> None:
    """No request got them: the prefix was compared as it is written."""
    app = App()
    if with_middleware:
        app.middleware(SecurityHeaders())
    below_a_parameter(app, files)
    with pytest.raises(ConfigError, match=r"static /x/{number}/files .*without parameters"):
        serve(app)


DESCRIBED: list[tuple[str, dict[str, Any], str]] = [
    ("/x/{name}", {}, "without parameters"),
    ("/x%20y", {}, "escapes"),
    ("/x/../y", {}, "dot segments"),
    ("/x?y", {}, "a query"),
    ("/x/", {}, r"ends without one, got '/x/' \(.*test_static_checks.py:\d+"),
    ("/x", {"index": "../secret"}, "index '../secret' is not the name of a file"),
    ("/x", {"index": ""}, "index '' is not the name of a file"),
    ("/x", {"cache_control": "a\r\nb: c"}, "cache_control= has a control character"),
]


@pytest.mark.parametrize(("prefix", "options", "said"), DESCRIBED)
def test_what_a_mount_is_described_by(
    prefix: str, options: dict[str, Any], said: str, files: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        App().static(prefix, files, **options)


def test_prefixes_that_are_paths(files: Path) -> None:
    app = App()
    for prefix in ("/with space", "/ünder", "/.well-known", "/a..b", "/~me"):
        app.static(prefix, files)
    with Client(app) as client:
        for prefix in ("/with%20space", "/%C3%BCnder", "/.well-known", "/a..b", "/~me"):
            assert client.get(f"{prefix}/file.txt").text == "of the mount"


BELOW: list[tuple[Callable[[App], object], str]] = [
    (lambda app: app.get("/x/route")(lambda: "route"), "GET requests of /x/route for .*lambda"),
    (lambda app: app.post("/x")(lambda: "route"), "POST requests of /x for .*lambda"),
    (lambda app: app.websocket("/x/socket")(echo), r"for echo .*py:\d+\) never come there"),
    (lambda app: app.mount("/x", inner()), "GET requests of /x/inner for .*lambda"),
    (lambda app: app.mount("/x/y", asgi), "requests of /x/y for mounted"),
]


@pytest.mark.parametrize("serve", [by_client, by_server])
@pytest.mark.parametrize(("declare", "said"), BELOW, ids=range(len(BELOW)))
def test_nothing_is_below_files_that_are_served_without_python(
    declare: Callable[[App], object], said: str, serve: Callable[[App], None], files: Path
) -> None:
    """With a middleware the route was found, without one the files hid it."""
    app = App()
    declare(app)
    app.static("/x", files)
    with pytest.raises(ConfigError, match=said):
        serve(app)
    app = App()
    app.middleware(SecurityHeaders())
    declare(app)
    app.static("/x", files)
    serve(app)


def test_what_is_beside_files_is_served(files: Path) -> None:
    app = App()
    app.get("/xy")(lambda: "beside")
    app.get("/{name}/file.txt")(named)
    app.mount("/other", inner("/"))
    app.static("/x", files)
    app.static("/x/nested", files)
    with Client(app) as client:
        found = {path: client.get(path).text for path in ("/xy", "/z/file.txt", "/other")}
        assert found == {"/xy": "beside", "/z/file.txt": "of z", "/other": "inner"}
        for path in ("/x/file.txt", "/x/nested/file.txt"):
            assert client.get(path).text == "of the mount"


def test_routes_are_before_the_files_that_python_serves(files: Path) -> None:
    app = App()
    app.middleware(SecurityHeaders())
    app.static("/x", files)
    app.mount("/x", inner())
    with Client(app) as client:
        assert client.get("/x/inner").text == "inner"
        assert client.get("/x/file.txt").text == "of the mount"


@pytest.mark.parametrize("with_middleware", [False, True])
def test_a_mount_of_the_command_line_has_a_prefix_of_its_own(
    with_middleware: bool, files: Path
) -> None:
    app = App()
    if with_middleware:
        app.middleware(SecurityHeaders())
    app.static("/x", files)
    with pytest.raises(ConfigError, match=r"/x is mounted twice: .* \(--static\)"):
        Service(app, Config(static=(f"/x={files}",)), WorkerContext(listeners=[], ready=bool))
