# ruff: noqa: E402
"""Services of connectrpc in a native application; the messages are those of the conformance suite."""

# pyright: basic, reportMissingImports=false

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / ".tools/connect"), str(ROOT / "scripts/connect")]

from citius import App, Depends, Request, Unauthorized
from gen.connectrpc.conformance.v1 import service_pb as pb
from gen.connectrpc.conformance.v1.service_connect import (
    ConformanceService,
    ConformanceServiceASGIApplication,
)


def caller(request: Request) -> None:
    if request.header("authorization") != "Bearer right":
        raise Unauthorized("who are you?")


class Service(ConformanceService):
    async def unary(self, request, ctx):
        return pb.UnaryResponse(payload=pb.ConformancePayload(data=b"hello"))


app = App()
depends = [Depends(caller)] if "GUARDED" in os.environ else []
app.mount_rpc(ConformanceServiceASGIApplication(Service()), dependencies=depends, reflection=True)


@app.get("/")
async def index():
    return "native"
