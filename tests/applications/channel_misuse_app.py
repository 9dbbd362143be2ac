"""Waits for a channel on the server's own thread, and in another one."""

# pyright: basic

from citius import App
from citius.go import ChannelMisuse, chan, go

app = App()


@app.get("/")
def wait():
    try:
        chan().recv()
    except ChannelMisuse as error:
        return str(error)


@app.get("/blocking", blocking=True)
def blocking():
    channel = chan()
    go(channel.send, "in a thread")
    return channel.recv()[0]


def application(environ, start_response):
    start_response("200 OK", [])
    return [str(wait()).encode()]
