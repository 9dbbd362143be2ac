"""The service by grpc.aio: server.py PORT WORKERS, a process for each worker."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import uvloop
from google.protobuf.wrappers_pb2 import StringValue


async def unary(request: StringValue, context: grpc.aio.ServicerContext) -> StringValue:
    """One message."""
    return StringValue(value=request.value)


async def stream(request: StringValue, context: grpc.aio.ServicerContext) -> AsyncIterator[StringValue]:
    """A hundred messages."""
    for _ in range(100):
        yield StringValue(value=request.value)


async def serve(port: int) -> None:
    """Until it is killed."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 1)])
    codec = {
        "request_deserializer": StringValue.FromString,
        "response_serializer": StringValue.SerializeToString,
    }
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary, **codec),
        "Stream": grpc.unary_stream_rpc_method_handler(stream, **codec),
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("lab.Echo", handlers)])
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


for _ in range(int(sys.argv[2]) - 1):
    if os.fork() == 0:
        break
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
asyncio.run(serve(int(sys.argv[1])))
