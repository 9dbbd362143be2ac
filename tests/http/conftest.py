"""What tests of the client share: coroutines are tests, and a transport answers as a test declares it."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from citius.testing.http import MockTransport


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine on a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.function):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    call = pyfuncitem.function(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(call, 60))
    return True


@pytest.fixture
def mock() -> MockTransport:
    return MockTransport()
