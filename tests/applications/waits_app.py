"""Waits in each place where a server calls an application's code.

``never`` is received from where a wait is a mistake: the comment behind it names the place for the test. The
other functions wait where that is possible, and return or send ``waited``.
"""

# pyright: basic

from citius import (
    App,
    Depends,
    HTTPError,
    Request,
    Response,
    Router,
    SerialWebSocket,
    WebSocket,
    defer,
)
from citius.go import after, chan, go, sleep

app = App()
never = chan()
seen: list[str] = []


def wait() -> str:
    """Wait for a goroutine, for a timer and for an end."""
    values = chan()

    def produce() -> None:
        sleep(0.001)
        with values:
            values.send("waited")
            sleep(0.001)

    go(produce)
    (value,) = values
    after(0.001).recv()
    return value


# --- mistakes ---


@app.get("/def")
def in_def() -> None:
    _value, _ok = never.recv()  # in: def


@app.get("/async")
async def in_async() -> None:
    _value, _ok = never.recv()  # in: async def


@app.get("/join")
async def in_join() -> None:
    go(never.recv).join()  # in: join


@app.get("/for")
def in_for() -> None:
    for _ in never:  # in: for
        pass


@app.get("/generator")
def in_generator():
    yield "begun"
    _value, _ok = never.recv()  # in: generator


@app.get("/async-generator")
async def in_async_generator():
    yield "begun"
    _value, _ok = never.recv()  # in: async generator


def dependency() -> None:
    _value, _ok = never.recv()  # in: dependency


async def async_dependency() -> None:
    _value, _ok = never.recv()  # in: async dependency


@app.get("/dependency", dependencies=[Depends(dependency)])
def with_dependency() -> None: ...


@app.get("/dependency/serial", serial=True, dependencies=[Depends(dependency)])
def with_dependency_in_serial() -> None: ...


@app.get("/dependency/async", dependencies=[Depends(async_dependency)])
async def with_async_dependency() -> None: ...


@app.exception_handler(418)
def teapot(request: Request, error: HTTPError) -> str:
    _value, _ok = never.recv()  # in: error handler
    return ""


@app.get("/error-handler")
def fails() -> None:
    raise HTTPError(418)


below, below_async = Router(prefix="/middleware"), Router(prefix="/async-middleware")


@below.middleware
def around(request, next):
    _value, _ok = never.recv()  # in: middleware
    return next(request)


@below_async.middleware
async def around_async(request, next):
    _value, _ok = never.recv()  # in: async middleware
    return await next(request)


@below.get("/def")
@below.get("/serial", serial=True)
@below_async.get("/def")
def surrounded() -> None: ...


connected = Router(prefix="/connections")


@connected.connection_middleware
async def around_connection(connection, next):
    _value, _ok = never.recv()  # in: connection middleware
    return await next(connection)


@connected.websocket("/socket")
async def surrounded_socket(ws: WebSocket) -> None: ...


app.include(below)
app.include(below_async)
app.include(connected)


@app.get("/deferred")
async def defers(request: Request) -> str:
    async def later() -> None:
        _value, _ok = never.recv()  # in: deferred

    defer(request, later)
    return "deferred"


@app.websocket("/socket")
async def in_socket(ws: WebSocket) -> None:
    await ws.accept()
    _value, _ok = never.recv()  # in: websocket


@app.rpc
def in_procedure() -> None:
    _value, _ok = never.recv()  # in: procedure


@app.rpc
async def in_async_procedure() -> None:
    _value, _ok = never.recv()  # in: async procedure


# --- mistakes that nothing looks at ---


@app.get("/dropped/send")
def drops_send() -> str:
    never.send(1)  # in: dropped send
    return "not sent"


@app.get("/dropped/async-send")
async def drops_async_send() -> str:
    never.send(1)  # in: dropped async send
    return "not sent"


@app.get("/dropped/sleep")
def drops_sleep() -> str:
    sleep(3600)  # in: dropped sleep
    return "not slept"


@app.get("/dropped/async-sleep")
async def drops_async_sleep() -> str:
    sleep(3600)  # in: dropped async sleep
    return "not slept"


# --- places to wait ---


@app.get("/waits/serial", serial=True)
def serial() -> str:
    return wait()


@app.get("/waits/blocking", blocking=True)
def blocking() -> str:
    return wait()


@app.get("/waits/executor", executor="threads")
def on_executor() -> str:
    return wait()


app.executor("threads", threads=1)


@app.get("/waits/serial-generator", serial=True)
def serial_generator():
    yield wait()[:3]
    yield wait()[3:]


@app.get("/waits/serial-response", serial=True)
def serial_response() -> Response:
    return Response(serial_generator(), content_type="text/plain")


@app.get("/waits/blocking-generator", blocking=True)
def blocking_generator():
    yield wait()


@app.post("/waits/serial-body", serial=True, stream=True)
def serial_body(request: Request) -> int:
    return sum(map(len, request.stream()))


@app.get("/waits/deferred")
def defers_def(request: Request) -> None:
    defer(request, lambda: seen.append(wait()))


@app.get("/seen")
def get_seen() -> list[str]:
    return seen


@app.get("/endless", serial=True)
def endless():
    try:
        yield "begun"
        never.recv()
    finally:
        seen.append("the stream has ended")


@app.rpc(serial=True)
def serial_procedure(text: str) -> str:
    return wait() + text


@app.rpc(blocking=True)
def blocking_procedure(text: str) -> str:
    return wait() + text


@app.rpc(serial=True, deadline_s=0.05)
def late_procedure() -> None:
    try:
        never.recv()
    finally:
        seen.append("the procedure has ended")


@app.websocket("/waits/{number}", serial=True)
def serial_socket(ws: SerialWebSocket, number: int) -> None:
    """A goroutine receives, this one sends."""
    messages = chan()

    def receive() -> None:
        with messages:
            for message in ws:
                messages.send(message)

    go(receive)
    for message in messages:
        ws.send(wait() + message * number)
    seen.append("the socket has ended")


@app.websocket("/blocking", dependencies=[])
def blocking_socket(ws: SerialWebSocket) -> None:
    for message in ws:
        ws.send(wait() + str(message))


@app.websocket("/parks", serial=True)
def parking_socket(ws: SerialWebSocket) -> None:
    ws.send("parks")
    try:
        never.recv()
    finally:
        seen.append("its wait has ended")


@app.websocket("/floods", serial=True)
def flooding_socket(ws: SerialWebSocket) -> None:
    """Sends more than is read, and so waits for room."""
    for number in range(200):
        ws.send_json({"number": number, "filling": "x" * 100_000})
    ws.send("all of it")
