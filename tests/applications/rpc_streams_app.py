# ruff: noqa: E402
"""A service with a stream that counts its generators, and a middleware that replaces responses."""

# pyright: basic, reportMissingImports=false

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / ".tools/connect"), str(ROOT / "scripts/connect")]

from citius import App, Request, Response
from gen.connectrpc.conformance.v1 import service_pb as pb
from gen.connectrpc.conformance.v1.service_connect import (
    ConformanceService,
    ConformanceServiceASGIApplication,
)

counts = {"begun": 0, "ended": 0}


class Service(ConformanceService):
    async def server_stream(self, request, ctx):
        counts["begun"] += 1
        try:
            yield pb.ServerStreamResponse(payload=pb.ConformancePayload(data=b"hello"))
            await asyncio.sleep(600)
        finally:
            counts["ended"] += 1


app = App()
app.mount_rpc(ConformanceServiceASGIApplication(Service()))


@app.middleware
async def replaced(request: Request, next):
    response = await next(request)
    what = request.header("x-replace")
    if what == "raise":
        raise RuntimeError("after the response")
    return Response("another", 418) if what else response


@app.get("/counts")
async def ended():
    return counts
