"""Django projects as ``django-admin startproject`` makes them, served without a flag."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from citius.errors import AppImportError
from citius.serving.interfaces import django
from rig import Server, application

Serve = Callable[..., Server]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A fresh project called shop."""
    pytest.importorskip("django", reason="Django is not installed")
    make = [sys.executable, "-m", "django", "startproject", "shop"]
    subprocess.run(make, cwd=tmp_path, check=True, timeout=60)
    return tmp_path / "shop"


@pytest.fixture
def start() -> Iterator[Serve]:
    """Serve in a directory: ``start(directory, "--option", …)``."""
    servers: list[Server] = []

    def run(directory: Path, *arguments: str) -> Server:
        server = Server([*arguments, "--port", "0"], {}, directory)
        servers.append(server)
        return server

    yield run
    for server in servers:
        server.kill()


@pytest.mark.parametrize("target", [None, "shop", ".", "manage.py"])
def test_a_project_in_sight_is_found(project: Path, start: Serve, target: str | None) -> None:
    server = start(project, *([] if target is None else [target])).wait_ready()
    assert "found the Django project shop: settings shop.settings, WSGI application" in server.err
    assert b"The install worked successfully" in server.get("/", host="localhost").body
    reply = server.get("/admin/", host="localhost")
    assert (reply.status, reply.headers["location"]) == (302, "/admin/login/?next=/admin/")
    assert b"csrfmiddlewaretoken" in server.get("/admin/login/", host="localhost").body


VIEWS = application("django_urls").read_text()


def test_views_of_a_project_run_at_once(project: Path, start: Serve) -> None:
    (project / "shop/urls.py").write_text(VIEWS)
    server = start(project).wait_ready()
    assert "its views run in 8 threads (--threads)" in server.err
    with server.connect() as waits:
        waits.send(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert server.get("/allow", host="localhost").body.startswith(b"citius-wsgi-")
        assert waits.reply().body == b"True"


def test_the_number_of_threads_of_a_project_can_be_said(project: Path, start: Serve) -> None:
    (project / "shop/urls.py").write_text(VIEWS.replace("entered.wait(20)", "pass"))
    server = start(project, "--threads", "0").wait_ready()
    assert "threads" not in server.err
    assert server.get("/allow", host="localhost").body == b"MainThread"


@pytest.mark.parametrize("options", [(), ("--reload",), ("--interface", "asgi")], ids=str)
def test_static_files_are_there_as_with_runserver(
    project: Path, start: Serve, options: tuple[str, ...]
) -> None:
    server = start(project, *options).wait_ready()
    reply = server.get("/static/admin/css/base.css", host="localhost")
    assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (200, "text/css")
    assert server.get("/static/admin/css/none.css", host="localhost").status == 404
    assert server.get("/admin/", host="localhost").status == 302
    server.signal(signal.SIGTERM)  # ends the child of a reloader too
    assert server.wait() == 0


def test_static_files_are_not_served_without_debug(project: Path, start: Serve) -> None:
    with (project / "shop/settings.py").open("a") as settings:
        settings.write('\nDEBUG = False\nALLOWED_HOSTS = ["localhost"]\n')
    server = start(project).wait_ready()
    assert server.get("/static/admin/css/base.css", host="localhost").status == 404
    assert server.get("/admin/", host="localhost").status == 302


def test_a_project_is_found_from_outside(project: Path, start: Serve) -> None:
    server = start(project.parent, "shop/").wait_ready()
    assert server.get("/", host="localhost").status == 200


def test_asgi_is_served_where_the_settings_or_the_option_say_so(
    project: Path, start: Serve
) -> None:
    server = start(project, "--interface", "asgi").wait_ready()
    assert "ASGI application of Django itself" in server.err
    assert server.get("/", host="localhost").status == 200
    with (project / "shop/settings.py").open("a") as settings:
        settings.write('\nASGI_APPLICATION = "shop.asgi.application"\n')
    server = start(project).wait_ready()
    assert "ASGI application shop.asgi.application" in server.err
    assert server.get("/", host="localhost").status == 200
    server = start(project, "--interface", "wsgi").wait_ready()
    assert "WSGI application shop.wsgi.application" in server.err


def test_what_proxies_say_reaches_django(project: Path, start: Serve) -> None:
    (project / "shop/urls.py").write_text(
        "from django.http import JsonResponse\n"
        "from django.urls import path\n"
        "def show(request):\n"
        "    said = [request.META['REMOTE_ADDR'], request.build_absolute_uri('/a')]\n"
        "    return JsonResponse(said, safe=False)\n"
        "urlpatterns = [path('', show)]\n"
    )
    server = start(project).wait_ready()
    headers = {"x_forwarded_for": "192.0.2.7", "x_forwarded_proto": "https"}
    said = server.get("/", host="localhost", **headers).body
    assert said == b'["192.0.2.7", "https://localhost/a"]'


def test_a_broken_project_says_what_is_wrong(project: Path, start: Serve) -> None:
    (project / "shop/settings.py").write_text("import nowhere_to_be_found\n")
    server = start(project)
    assert server.wait() == 3
    assert "No module named 'nowhere_to_be_found'" in server.err


def test_what_is_no_project_is_said_to_be_none(tmp_path: Path, start: Serve) -> None:
    server = start(tmp_path)
    assert server.wait() == 2
    assert "no target: say what to serve" in server.err
    (tmp_path / "manage.py").write_text("print('a task runner')\n")
    assert django.find(None, str(tmp_path)) is None
    with pytest.raises(AppImportError, match="names no settings"):
        django.find("manage.py", str(tmp_path))


def test_settings_come_from_the_environment_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import os, django\nos.environ['DJANGO_SETTINGS_MODULE'] = 'shop.settings.local'\n"
    (tmp_path / "manage.py").write_text(text)
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
    found = django.find(None, str(tmp_path))
    assert found is not None
    assert (found.name, found.settings) == ("shop", "shop.settings.local")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "bakery.settings")
    assert django.find("bakery", str(tmp_path)) is not None
    assert django.find("shop", str(tmp_path)) is None
