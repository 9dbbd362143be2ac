"""Children that an application forks, and that come back from its function: `app`, `asgi`, `wsgi`.

With FORK_AT_START, `hook` or `import`, a child is forked before anything is served, and leaves as HOW says.
"""

# pyright: basic

import asyncio
import os
import signal
import sys
import time

from citius import App

app = App()


def fork(how):
    """The exit code of a child that leaves its function; the child comes back from here, too."""
    child = os.fork()
    if child == 0:
        if how == "exit":
            sys.exit(7)
        if how == "raise":
            raise ValueError("in the child")
        return "child"
    return str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


@app.get("/def/{how}")
def plain(how):
    return fork(how)


@app.get("/async/{how}")
async def at_once(how):
    return fork(how)


@app.get("/late/{how}")
async def late(how):
    await asyncio.sleep(0)
    return fork(how)


@app.get("/blocking/{how}", blocking=True)
def blocking(how):
    return fork(how)


@app.get("/terminated")
def terminated():
    """The exit code of a child that is ended by TERM."""
    child = os.fork()
    if child == 0:
        time.sleep(60)
    os.kill(child, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@app.get("/hello")
def hello():
    return "hello"


async def asgi(scope, receive, send):
    _, where, how = scope["path"].split("/")
    if where == "late":
        await asyncio.sleep(0)
    text = "hello" if where == "hello" else fork(how)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text.encode()})


def wsgi(environ, start_response):
    _, where, how = environ["PATH_INFO"].split("/")
    text = "hello" if where == "hello" else fork(how)
    start_response("200 OK", [])
    return [text.encode()]


code = None


def begin():
    global code
    code = fork(os.environ["HOW"])


@app.get("/")
def index():
    return code


if at_start := os.environ.get("FORK_AT_START"):
    app.on_startup(begin) if at_start == "hook" else begin()
