"""Fixtures for pytest, found by its entry point ``pytest11``.

A suite says which application it tests, and gets clients:

    @pytest.fixture
    def citius_app():
        from service import app

        return app

    def test_hello(citius_client):
        assert citius_client.get("/").text == "Hello"

``citius_postgres`` is the URL of a database for the test session; ``citius.testing.postgres`` says more.
``citius_redis`` is that of a Redis (``citius.testing.redis``).

Nothing of citius is imported before a fixture is used. Tests: ``tests/interop/test_plugin.py``,
``tests/pg/test_testing.py``, ``tests/redis/test_testing.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

    from citius import App
    from citius.testing import Client, Transport


@pytest.fixture
def citius_app() -> App:
    """The application under test; a suite has a fixture of this name that returns it."""
    raise pytest.UsageError(
        "the fixtures of citius need the application: define a fixture `citius_app` that returns it"
    )


@pytest.fixture
def citius_client(citius_app: App) -> Iterator[Client]:
    """A client of the application, between its start-up and shutdown hooks."""
    from citius.testing import Client

    with Client(citius_app) as client:
        yield client


@pytest.fixture
def citius_transport(citius_app: App) -> Transport:
    """A transport for ``httpx.Client`` and ``httpx.AsyncClient``."""
    from citius.testing import Transport

    return Transport(citius_app)


@pytest.fixture
def citius_async_client(citius_transport: Transport) -> httpx.AsyncClient:
    """An asynchronous client of httpx, to be entered: ``async with citius_async_client as client``."""
    import httpx

    return httpx.AsyncClient(transport=citius_transport, base_url="http://testserver")


@pytest.fixture
def citius_overrides(citius_app: App) -> Iterator[dict[Callable[..., Any], Callable[..., Any]]]:
    """The overrides of dependencies, restored after the test; a client is made after they are set."""
    before = dict(citius_app.dependency_overrides)
    yield citius_app.dependency_overrides
    citius_app.dependency_overrides.clear()
    citius_app.dependency_overrides.update(before)


@pytest.fixture(scope="session")
def citius_postgres() -> Iterator[str]:
    """The URL of an empty database of this test session (of each process of pytest-xdist).

    It is made in the server that the variable ``CITIUS_TEST_POSTGRES`` names; without it a server is started
    for the session, if PostgreSQL is installed.
    """
    from citius.testing.postgres import NoPostgres, database

    try:
        opened = database()
        dsn = opened.__enter__()
    except NoPostgres as error:
        raise pytest.UsageError(str(error)) from None
    try:
        yield dsn
    finally:
        opened.__exit__(None, None, None)


@pytest.fixture(scope="session")
def citius_redis() -> Iterator[str]:
    """The URL of a Redis of this test session (of each process of pytest-xdist).

    It is the one that the variable ``CITIUS_TEST_REDIS`` names; without it a server is started for the
    session, if Redis is installed.
    """
    from citius.testing.redis import NoRedis, database

    try:
        opened = database()
        url = opened.__enter__()
    except NoRedis as error:
        raise pytest.UsageError(str(error)) from None
    try:
        yield url
    finally:
        opened.__exit__(None, None, None)
