"""Whatever an application can break comes back by itself (issue 32, F3; hostile 3).

Each thing is used, broken, and used again until it works, in a server that is not restarted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pg_rig import Server as Postgres
from pg_rig import find_binaries
from redis_rig import SERVER
from redis_rig import Server as Redis
from rig import PLAIN, Server, application, wait_for

BREAKABLE = [
    "processes", "stuck", "forker", "threads", "standard", "postgres", "redis", "sqlite", "template",
    "deferred", "cache", "room", "log", "worker",
]  # fmt: skip


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., Server]
) -> Iterator[Server]:
    binaries = find_binaries()
    if binaries is None or SERVER is None:
        pytest.skip("PostgreSQL or redis-server is not installed")
    here = tmp_path_factory.mktemp("breakable")
    (here / "templates").mkdir()
    (here / "templates/page").write_text("page")
    database, store = Postgres(binaries), Redis(listens=True)
    try:
        database.start()
        store.start()
        environment = {"DSN": database.dsn, "REDIS": store.url, "HERE": str(here)}
        yield serve_module(
            application("breakable_app"), "--workers", "2", env={**PLAIN, **environment}
        )
    finally:
        database.remove()
        store.remove()


def works(server: Server, name: str) -> bool:
    with suppress(OSError, EOFError):
        return server.get(f"/use/{name}").status == 200
    return False


@pytest.mark.parametrize("name", BREAKABLE)
def test_what_is_broken_comes_back(served: Server, name: str, tmp_path: Path) -> None:
    wait_for(lambda: works(served, name), f"{name} works")
    for _ in range(3):
        with suppress(OSError, EOFError):
            reply = served.get(f"/break/{name}?how=exit&path={tmp_path / 'begun'}")
            assert reply.status not in (404, 422)
        wait_for(lambda: works(served, name), f"{name} works again")
    # And it does so for others than the first, on both workers.
    wait_for(lambda: all(works(served, name) for _ in range(6)), f"{name} works everywhere")


def test_the_list_is_that_of_the_application() -> None:
    source = Path(application("breakable_app")).read_text()
    named = {
        line.split('"')[1] for line in source.splitlines() if line.startswith('@app.get("/break/')
    }
    assert {one.removeprefix("/break/") for one in named} <= set(BREAKABLE)
