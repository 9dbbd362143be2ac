"""Serial handlers of every kind under gevent."""

# pyright: basic

from citius import App, SerialWebSocket
from citius.go import chan, go, sleep

app = App()


def wait() -> str:
    """Wait for a goroutine and for a timer."""
    values = chan()

    def produce() -> None:
        sleep(0.001)
        values.send("waited")

    go(produce)
    return values.recv()[0]


@app.rpc(serial=True)
def procedure() -> str:
    return wait()


@app.websocket("/{number}", serial=True)
def socket(ws: SerialWebSocket, number: int) -> None:
    for message in ws:
        ws.send(wait() + number * str(message))


@app.get("/stream", serial=True)
def stream():
    yield wait()
