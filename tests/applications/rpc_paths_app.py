# ruff: noqa: E402
"""The service of the conformance suite, whose application is known or (``MOUNT=library``) called as ASGI."""

# pyright: basic, reportMissingImports=false

import asyncio
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / ".tools/connect"), str(ROOT / "scripts/connect")]

import service
from citius import App, Request
from connectrpc.errors import ConnectError
from gen.connectrpc.conformance.v1 import service_pb as pb
from gen.connectrpc.conformance.v1.service_connect import ConformanceServiceASGIApplication

_told = service.told


def told_alike(ctx, requests):
    """Without what is left of the deadline."""
    info = _told(ctx, requests)
    info.timeout_ms = None if info.timeout_ms is None else 1
    return info


service.told = told_alike


class Service(service.Service):
    """Fails in ways that no definition can say."""

    async def unary(self, request, ctx):
        if "x-pause" in ctx.request_headers:
            await asyncio.sleep(0)
            ctx.response_trailers["x-paused"] = "1"
            await asyncio.sleep(0)
        self._fail(ctx)
        if "x-busy" in ctx.request_headers:
            time.sleep(0.1)
            await asyncio.sleep(0.02)
        if "x-wait" in ctx.request_headers:
            await self._wait(ctx)
        if "x-wrong" in ctx.request_headers:
            return "no message"
        return await super().unary(request, ctx)

    async def server_stream(self, request, ctx):
        if "x-late" not in ctx.request_headers:
            self._fail(ctx)
        async for answer in super().server_stream(request, ctx):
            yield answer
            self._fail(ctx)
            if "x-wait" in ctx.request_headers:
                await asyncio.sleep(30)

    async def _wait(self, ctx):
        """Until the deadline, which it takes as the client says."""
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            match ctx.request_headers["x-wait"]:
                case "ignored":
                    ctx.response_headers["x-ignored"] = "1"
                case "replaced":
                    raise ConnectError(service.Code.ABORTED, "at the deadline") from None
                case _:
                    await asyncio.sleep(0)
                    raise

    def _fail(self, ctx):
        failure = ctx.request_headers.get("x-fail")
        if failure == "value":
            raise ValueError("wröng")
        if failure == "cancelled":
            raise asyncio.CancelledError
        if failure == "timeout":
            raise TimeoutError("of the service's own")


class Metadata:
    """An interceptor that sees the metadata only."""

    async def on_start(self, ctx):
        ctx.response_headers["x-started"] = ctx.method.name
        if ctx.request_headers.get("x-refused") == "start":
            raise ConnectError(service.Code.PERMISSION_DENIED, "not you")
        return "token"

    async def on_end(self, token, ctx, error):
        ctx.response_trailers["x-ended"] = f"{token} {type(error).__name__}"
        if ctx.request_headers.get("x-refused") == "end":
            raise ConnectError(service.Code.ABORTED, "at the end")


class Messages:
    """One that sees messages."""

    async def intercept_unary(self, call_next, request, ctx):
        ctx.response_headers["x-around"] = "unary"
        return await call_next(request, ctx)

    async def intercept_server_stream(self, call_next, request, ctx):
        ctx.response_headers["x-around"] = "stream"
        async for answer in call_next(request, ctx):
            yield answer


class Changed(ConformanceServiceASGIApplication):
    """Of a class that changes the library's, which is served by it."""

    async def __call__(self, scope, receive, send):
        await super().__call__(scope, receive, send)


def made(cls):
    interceptors = [Metadata(), Messages(), Metadata()] if "INTERCEPTED" in os.environ else []
    app = App()
    options = {**service._OPTIONS, "read_max_bytes": 2000}
    app.mount_rpc(cls(Service(asyncio.sleep), interceptors=interceptors, **options))

    @app.post("/binary/{name}")
    async def binary(request: Request, name: str) -> bytes:
        """A message of the suite in its binary form."""
        return getattr(pb, name).from_json(request.body()).to_binary()

    return app


app = made(Changed if os.environ["MOUNT"] == "library" else ConformanceServiceASGIApplication)
