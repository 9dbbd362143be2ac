"""Calling procedures of other services: MessagePack-RPC over one connection, many calls in flight.

    from citius.rpc import Client

    with Client("127.0.0.1:9000") as client:
        client.call("sum", 1, 2)                      # 3
        client.call("user", 7, type=User)             # a User, checked
        for total in client.map("sum", [(1, 2), (3, 4)]):
            ...                                       # in order, sent ahead of the answers

``AsyncClient`` is the same with ``await``. A client connects when it is first used and again when the
connection has gone, with growing pauses, for as long as the deadlines of its calls allow. What becomes of a
call whose connection breaks, ``calls.py`` says.
"""

from citius.errors import ConnectionLost, RpcError, RpcTimeout
from citius.rpc.asynchronous import AsyncClient
from citius.rpc.synchronous import Call, Client

__all__ = ["AsyncClient", "Call", "Client", "ConnectionLost", "RpcError", "RpcTimeout"]
