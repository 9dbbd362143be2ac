"""Applications as they are, under `--sandbox`: what each needs is in the guide, and works."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
import trustme
from pg_rig import Server as Postgres
from pg_rig import find_binaries
from pki import Pki
from redis_rig import SERVER as REDIS
from redis_rig import Server as Redis
from rig import PLAIN, Server, application

pytestmark = pytest.mark.skipif(
    ctypes.CDLL(None).syscall(444, None, 0, 1) < 6, reason="Linux 6.12 has all that is tested"
)

Serve = Callable[..., Server]
UPLOAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n%b\r\n--b--\r\n'


@pytest.fixture
def serve(tmp_path: Path) -> Generator[Serve]:
    servers: list[Server] = []

    def start(*words: str, target: str = "", **env: str) -> Server:
        home = tmp_path / "srv"
        home.mkdir(exist_ok=True)
        target = target or str(application("sandboxed_app"))
        arguments = [target, "--port", "0", "--no-access-log", "--sandbox", *words]
        servers.append(Server(arguments, {**PLAIN, **env}, home))
        return servers[-1].wait_ready()

    yield start
    for server in servers:
        server.kill()


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    if (binaries := find_binaries()) is None:
        pytest.skip("PostgreSQL is not installed")
    made = Postgres(binaries)
    made.listen()
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    if REDIS is None:
        pytest.skip("no redis-server")
    made = Redis(listens=True)
    try:
        made.start()
        yield made
    finally:
        made.remove()


def test_postgresql_by_tcp(serve: Serve, postgres: Postgres) -> None:
    dsn = postgres.dsn.replace(str(postgres.directory), "127.0.0.1")
    postgres.trust("host all all 127.0.0.1/32 trust")
    server = serve("--sandbox-connect", str(postgres.port), "--workers", "2", DSN=dsn)
    for _ in range(3):
        assert server.get("/pg").body == b"42"
    # Without the port the pool cannot open another session: the request fails, the worker does not.
    server = serve(DSN=dsn)
    assert server.get("/pg").status in (500, 503)
    assert server.get("/library").body == b"Europe/Berlin a"


def test_postgresql_by_a_unix_socket(serve: Serve, postgres: Postgres) -> None:
    server = serve("--sandbox-connect", "unix", DSN=postgres.dsn)
    for _ in range(3):
        assert server.get("/pg").body == b"42"


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_redis(serve: Serve, redis: Redis, kind: str) -> None:
    word, url = (str(redis.port), redis.url) if kind == "tcp" else ("unix", f"unix://{redis.path}")
    server = serve("--sandbox-connect", word, REDIS=url)
    assert server.get("/redis").body == b"b"
    redis.say("CLIENT", "KILL", "TYPE", "normal")
    assert server.get("/redis").body == b"b"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_sqlite(serve: Serve, tmp_path: Path, workers: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    words = ["--sandbox-write", str(data), "--workers", workers]
    server = serve(*words, DATABASE=str(data / "visits.db"))
    assert [server.get("/sqlite").body for _ in range(3)] == [b"1", b"2", b"3"]
    assert server.stop() == 0


def test_files_processes_uploads_and_libraries(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "page").write_text("its own")
    (spool := tmp_path / "spool").mkdir()
    server = serve(
        "--static", f"/s={tmp_path}/public", "--sandbox-read", str(tmp_path / "public"),
        "--sandbox-write", str(spool), FILES=str(tmp_path / "public"), TMPDIR=str(spool),
    )  # fmt: skip
    assert server.get("/s/page").body == server.get("/files/page").body == b"its own"
    assert server.get("/process").body == b"42"
    assert server.get("/library").body == b"Europe/Berlin a"
    for size in (10, 3_000_000):
        with server.connect() as peer:
            body = UPLOAD % (b"x" * size)
            kind = "multipart/form-data; boundary=b"
            reply = peer.request("POST", "/upload", body, content_type=kind)
            assert reply.body == str(size).encode(), server.err


def test_tls(serve: Serve, tmp_path: Path) -> None:
    """Certificates that are renewed are read again, by name."""
    import httpx

    certificate, key = Pki(trustme.CA(), tmp_path).issue("localhost")
    server = serve("--ssl-certfile", certificate, "--ssl-keyfile", key)
    with httpx.Client(verify=False, http2=True) as client:
        assert client.get(f"https://127.0.0.1:{server.port}/library").text == "Europe/Berlin a"


def test_a_django_project(serve: Serve, tmp_path: Path) -> None:
    home = tmp_path / "srv"
    home.mkdir()
    (home / "shop.py").write_text(
        "from django.conf import settings\n"
        "settings.configure(ROOT_URLCONF='shop', SECRET_KEY='a', ALLOWED_HOSTS=['*'], USE_TZ=True,\n"
        "    INSTALLED_APPS=['django.contrib.contenttypes', 'django.contrib.auth'],\n"
        "    DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': 'data/db'}})\n"
        "import django; django.setup()\n"
        "from django.core.wsgi import get_wsgi_application\n"
        "from django.core.management import call_command\n"
        "from django.contrib.auth.models import User\n"
        "from django.http import HttpResponse\n"
        "from django.urls import path\n"
        "call_command('migrate', verbosity=0)\n"
        "def add(request):\n"
        "    User.objects.create(username=str(User.objects.count()))\n"
        "    return HttpResponse(str(User.objects.count()))\n"
        "urlpatterns = [path('add', add)]\n"
        "application = get_wsgi_application()\n"
    )
    (home / "data").mkdir()
    server = serve(
        "--sandbox-write",
        "data",
        "--threads",
        "2",
        "--interface",
        "wsgi",
        target="shop:application",
    )
    assert [server.get("/add").body for _ in range(3)] == [b"1", b"2", b"3"]
