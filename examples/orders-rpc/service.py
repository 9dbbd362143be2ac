"""Orders by Connect, gRPC and gRPC-Web, beside a native page and a procedure: ``citius serve service.py``.

    pip install citius connectrpc
    citius serve service.py --port 8000
    curl -H 'content-type: application/json' -H 'authorization: Bearer ann' \
         -d '{"key": "1", "lines": [{"article": "pen", "count": 2}]}' http://127.0.0.1:8000/orders.v1.OrdersService/Place
    grpcurl -plaintext -H 'authorization: Bearer ann' 127.0.0.1:8000 list

After a change of proto/: ``pip install buf-bin protoc-gen-py protoc-gen-connectrpc``, then ``buf generate``.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from citius import App, Depends, Request, Unauthorized
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext
from gen.orders.v1.orders_connect import OrdersService, OrdersServiceASGIApplication
from gen.orders.v1.orders_pb import GetRequest, Order, PlaceRequest, State

STEP_S = 0.05
"""How long each step of a delivery takes."""

caller: contextvars.ContextVar[str] = contextvars.ContextVar("caller")


def authenticated(request: Request) -> str:
    """Who calls; the token is the name here, in place of a real check.

    Raises:
        Unauthorized: It is not said.
    """
    kind, _, name = (request.header("authorization") or "").partition(" ")
    if kind != "Bearer" or not name:
        raise Unauthorized("expected a token", {"www-authenticate": "Bearer"})
    caller.set(name)
    return name


class Orders(OrdersService):
    """The orders of all callers, in memory."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._orders: dict[tuple[str, str], Order] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._changed = asyncio.Condition()
        self.deliveries: set[asyncio.Task[None]] = set()

    async def place(
        self, request: PlaceRequest, ctx: RequestContext[PlaceRequest, Order], /
    ) -> Order:
        """Place an order."""
        if not request.lines:
            raise ConnectError(Code.INVALID_ARGUMENT, "an order has lines")
        who = caller.get()
        known = self._keys.get((who, request.key)) if request.key else None
        if known is not None:
            return self._orders[who, known]
        order = Order(id=str(next(self._numbers)), lines=request.lines, state=State.PLACED)
        self._orders[who, order.id] = order
        if request.key:
            self._keys[who, request.key] = order.id
        task = asyncio.create_task(self._deliver(order))
        self.deliveries.add(task)
        task.add_done_callback(self.deliveries.discard)
        return order

    async def get(self, request: GetRequest, ctx: RequestContext[GetRequest, Order], /) -> Order:
        """An order."""
        order = self._orders.get((caller.get(), request.id))
        if order is None:
            raise ConnectError(Code.NOT_FOUND, f"there is no order {request.id}")
        return order

    async def watch(
        self, request: GetRequest, ctx: RequestContext[GetRequest, Order], /
    ) -> AsyncIterator[Order]:
        """An order as it changes."""
        order = await self.get(request, ctx)
        while True:
            said = order.state
            yield order
            if said == State.DELIVERED:
                return
            async with self._changed:
                await self._changed.wait_for(lambda: order.state != said)  # noqa: B023

    async def _deliver(self, order: Order) -> None:
        for state in (State.SENT, State.DELIVERED):
            await asyncio.sleep(STEP_S)
            async with self._changed:
                order.state = state
                self._changed.notify_all()


orders = Orders()


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    """Deliveries end with the server."""
    yield
    for task in orders.deliveries:
        task.cancel()


app = App(lifespan=lifespan)
app.mount_rpc(
    OrdersServiceASGIApplication(orders), dependencies=[Depends(authenticated)], reflection=True
)


@app.get("/")
async def index() -> dict[str, int]:
    """Beside the services."""
    return {"deliveries": len(orders.deliveries)}
