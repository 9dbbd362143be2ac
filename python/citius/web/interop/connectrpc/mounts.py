"""Services of connectrpc in a native application: Connect, gRPC and gRPC-Web (``App.mount_rpc``).

Each method is a route of its own, so that metrics and the access log tell them apart, with the dependencies
of the application and of the mount. Deadlines (``Connect-Timeout-Ms``, ``grpc-timeout``), compression and
limits of messages are connectrpc's. ``health`` and ``reflection`` are services of their own
(standard_services.py). Tests: ``tests/rpc/test_mount_rpc.py``, ``make connect-conformance``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from citius._core import LIMITS
from citius.errors import ConfigError
from citius.web.declarations.checks import as_dependencies, describe_application
from citius.web.interop.connectrpc.library import is_known, is_known_release
from citius.web.interop.connectrpc.status import WithStatus
from citius.web.interop.mounts import ASGIMount, named
from citius.web.routing.declared_routes import Operation, Route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.web.application.lifecycle import Hooks
    from citius.web.declarations.parameters.sources import Depends


class _Stub:
    """In place of a service, to learn the names of its methods."""

    def __getattr__(self, name: str) -> object:
        return len  # any function


def endpoints_of(service: Any) -> dict[str, Any]:
    """The endpoints of a service by their paths.

    Raises:
        ConfigError: It is no application of connectrpc.
    """
    make = getattr(service, "_endpoints", None)
    if not callable(make) or not isinstance(getattr(service, "path", None), str):
        raise ConfigError(
            f"app.mount_rpc: expected an ASGI application that protoc-gen-connectrpc has made, got "
            f"{describe_application(service)}; others are mounted by app.mount"
        )
    made: Any = make(_Stub())
    return dict(made)


def _native(service: Any, path: str, endpoint: Any) -> Route:
    """The route of a method without its options."""
    from citius.web.interop.connectrpc.native_handlers import handler_of

    handler, is_early = handler_of(service, path, endpoint)
    most: int | None = service._read_max_bytes
    # A longer message has a response of its protocol, unless it is longer than bodies may be.
    limit = None if most is None or most < LIMITS["body_bytes_max"] else most + 5
    return Route("*", path, named(handler, service), "async", stream=is_early, body_bytes_max=limit)


def rpc_routes(
    services: Sequence[Any], dependencies: Sequence[Depends]
) -> tuple[list[Route], list[Hooks], dict[str, dict[str, Any]]]:
    """Routes, lifespans, and the endpoints of services by their names.

    Raises:
        ConfigError: Something is no service, or there are two of one name.
    """
    routes: list[Route] = []
    hooks: list[Hooks] = []
    found: dict[str, dict[str, Any]] = {}
    depends = as_dependencies("app.mount_rpc", dependencies)
    for service in services:
        endpoints = endpoints_of(service)
        name = service.path.strip("/")
        if name in found:
            raise ConfigError(f"app.mount_rpc: there are two services {name}")
        found[name] = endpoints
        mount = ASGIMount("", service, around=WithStatus(service))
        called = mount.routes()[0]
        if is_known_release():
            from citius.web.interop.connectrpc.bounded_gzip import make_linear
            from citius.web.interop.connectrpc.bounded_json import make_bounded

            make_linear(service)
            make_bounded(service)
        is_native = is_known(service)
        for path, endpoint in endpoints.items():
            operation = Operation(
                name=f"{name}/{endpoint.method.name}", include_in_schema=False, is_procedure=True
            )
            if is_native:
                called = _native(service, path, endpoint)
            routes.append(replace(called, pattern=path, dependencies=depends, operation=operation))
        # Methods that the service does not have get its own response.
        other = replace(mount.routes()[1], pattern=f"/{name}/{{_path:path}}", dependencies=depends)
        routes.append(other)
        hooks.append(mount.hooks())
    return routes, hooks, found
