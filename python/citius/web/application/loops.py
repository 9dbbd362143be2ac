"""What of an application needs an event loop, and what may use one.

In: an application whose declarations are complete. Out: the first reason; empty if there is none. With
``--loop auto`` a worker has a loop from the start if there is a reason here. Otherwise one is made when
something asks for it after all (``serving/hosts/late.py``). Tests: ``tests/gateway/test_uses_loop.py``.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from citius.serial import plain
from citius.web.application.gateway import endpoints_of
from citius.web.binding.signature import kind_of
from citius.web.declarations import checks
from citius.web.declarations.type_kinds import deciding

if TYPE_CHECKING:
    from citius.web.application.app import App


def serial_of(app: App) -> str:
    """A handler with ``serial=True`` that a greenlet carries; empty if there is none."""
    for member in app.walk():
        for one in (*member.app.declared_routes, *member.app.declared_sockets):
            if plain(one.handler) is not None:
                return checks.describe(one.handler)
    for procedure in app.procedures:
        if plain(procedure.handler) is not None:
            return checks.describe(procedure.handler)
    return ""


def needs_loop(app: App) -> str:
    """Why an application cannot be served without an event loop; empty if it can."""
    if app.cluster is not None and app.cluster.has_messages:
        return "the application has a cluster"
    for member in app.walk():
        if member.app.hooks.lifespan is not None:
            return "the application has a lifespan"
        routes, sockets = member.app.declared_routes, member.app.declared_sockets
        functions: list[Any] = [route.handler for route in routes if route.compiled is None]
        functions += [socket.handler for socket in sockets]
        around = [one for declared in (*routes, *sockets) for one in declared.middleware]
        functions += map(checks.step_of, (*member.middleware, *around))
        of_routers = [handlers for route in routes for handlers in route.errors]
        functions += [one for handlers in (*of_routers, *member.errors) for one in handlers.all()]
        for function in functions:
            if plain(function) is not None:
                continue  # under gevent its own greenlets carry it
            is_generator = inspect.isasyncgenfunction(deciding(function))
            if is_generator or kind_of(function, blocking=False) == "async":
                return f"{checks.describe(function)} is `async def`"
    for endpoint in endpoints_of(app):
        for one in endpoint.dependencies:
            if one.is_async:
                return f"the dependency {checks.describe(one.call)} is `async def`"
        is_procedure = endpoint.protocol == "rpc"
        if is_procedure and endpoint.kind == "async" and plain(endpoint.handler) is None:
            return f"{endpoint.where} is `async def`"
    return ""


def uses_loop(app: App) -> str:
    """What of an application may use an event loop; empty if nothing does that is declared."""
    if reason := needs_loop(app):
        return reason
    if handler := serial_of(app):
        return f"{handler} has serial=True"
    if app.cluster is not None:
        return "the application has a cluster"
    if app.readiness_checks:
        return "the application has readiness checks"
    if app.app_dependencies.by_call:
        return "the application has dependencies of its own"
    for member in app.walk():
        inner = member.app
        for what, parts in inner.live_parts.items():
            if parts:
                return f"the application has {what}"
        for route in inner.declared_routes:
            if any(hasattr(route.handler, mark) for mark in _MARKS):
                return f"{checks.describe(route.handler)} is carried on by tasks"
    return ""


# How the handlers are marked that work goes on for beside their requests.
_MARKS = ("_citius_executor", "citius_forward", "citius_runs", "citius_uploads")
