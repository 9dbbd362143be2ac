"""Whatever a request does to its task or its context, by whichever way, the next request gets clean ones.

A handler that does not suspend leaves its task to the next request (``citius-py/src/task/``): here
handlers, and callbacks of the loop between two requests, do what would show if a changed task were reused.
"""

from __future__ import annotations

import json
import sys

import pytest
from citius._core import FAST_PATHS
from rig import Server, wait_for

APP = """
import gc, types, weakref
from citius.serving.tasks import RequestTask

variable = contextvars.ContextVar("variable", default="unset")
kept, tokens = [], []

class Mine(RequestTask):
    made = 0
    def __init__(self, *arguments, **keywords):
        RequestTask.made += 1
        super().__init__(*arguments, **keywords)

class Other(RequestTask):
    pass

RequestTask.made = 0
sys.modules["citius.serving.tasks"].RequestTask = Mine

def uncancelled(task):
    asyncio.Task.cancel(task)
    asyncio.Task.uncancel(task)

TOUCHES = {
    "nothing": lambda task: None,
    "cancel": lambda task: asyncio.Task.cancel(task),
    "cancel-and-uncancel": uncancelled,
    "message": lambda task: setattr(task, "_cancel_message", "mine"),
    "name": lambda task: asyncio.Task.set_name(task, "mine"),
    "attribute": lambda task: object.__setattr__(task, "mine", 1),
    "class": lambda task: setattr(task, "__class__", Other),
    "callback": lambda task: asyncio.Task.add_done_callback(task, lambda task: None),
    "keep": lambda task: kept.append(task),
    "keep-weakly": lambda task: kept.append(weakref.ref(task)),
    "coroutine": lambda task: kept.append(task.get_coro()),
    "coroutine-weakly": lambda task: kept.append(weakref.ref(task.get_coro())),
    "coroutine-sent": lambda task: task.get_coro().send(None),
    "wake-up": lambda task: kept.extend(
        one for one in gc.get_referents(task.get_coro()) if isinstance(one, types.BuiltinMethodType)),
    "context": lambda task: kept.append(context_of(task)),
    "context-weakly": lambda task: kept.append(weakref.ref(context_of(task))),
    "variable": lambda task: context_of(task).run(variable.set, "mine"),
}

def context_of(task):
    return next(one for one in gc.get_referents(task) if isinstance(one, contextvars.Context))

def is_known(*objects):
    known = [one() if isinstance(one, weakref.ref) else one for one in kept]
    return any(one is other for one in known for other in objects)

@app.get("/touch/{how}")
async def touch(how: str):
    if how == "variable":
        variable.set("mine")
    else:
        TOUCHES[how](asyncio.current_task())
    return "touched"

@app.get("/look")
async def look():
    task = asyncio.current_task()
    coroutine = task.get_coro()
    wakeups = [one for one in gc.get_referents(coroutine) if isinstance(one, types.BuiltinMethodType)]
    seen = [task.get_name(), hasattr(task, "mine"), task.cancelling(), type(task) is Mine, variable.get(),
            is_known(task, coroutine, context_of(task), *wakeups)]
    for one in kept:
        if hasattr(one, "close"):
            one.close()
    await asyncio.sleep(0)
    return seen

@app.get("/at-once")
async def at_once():
    return "at once"

@app.get("/made")
def made():
    return str(RequestTask.made)

@app.get("/arrange/{how}")
def arrange(how):
    app.state.is_done = ""
    asyncio.get_running_loop().call_soon(touch_spare, how)
    return "soon"

def touch_spare(how):
    [spare] = [task for task in asyncio.all_tasks() if type(task) is Mine]
    TOUCHES[how](spare)
    app.state.is_done = "yes"

@app.get("/cancel-and-wait")
def cancel_and_wait():
    app.state.is_done = ""
    app.state.waiting = asyncio.ensure_future(cancel_spare())
    return "soon"

async def cancel_spare():
    [spare] = [task for task in asyncio.all_tasks() if type(task) is Mine]
    spare.cancel()
    await asyncio.wait([spare])
    app.state.is_done = "cancelled" if spare.cancelled() else "ended"

@app.get("/is-done")
def is_done():
    return app.state.is_done

variable.set("start")

@app.get("/token")
def token():
    tokens.append(variable.set(variable.get()))
    return "set"

@app.get("/reset")
def reset():
    try:
        variable.reset(tokens[-1])
    except ValueError:
        return "another context's"
    return "reset"
"""

TOUCHES = [
    "cancel", "cancel-and-uncancel", "message", "name", "attribute", "class", "callback", "keep",
    "keep-weakly", "coroutine", "coroutine-weakly", "coroutine-sent", "wake-up", "context", "context-weakly",
    "variable",
]  # fmt: skip
needs_reuse = pytest.mark.skipif(not FAST_PATHS, reason="no task waits for the next request")
CLEAN = ["citius-request", False, 0, True, "start", False]


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    directory = tmp_path_factory.mktemp("isolation")
    header = "import asyncio, contextvars, sys\nfrom citius import *\napp = App()\n"
    (directory / "main.py").write_text(header + APP)
    server = Server(
        ["main.py", "--port", "0", "--loop", request.param, "--no-access-log"], {}, directory
    )
    yield server.wait_ready()
    server.kill()


@pytest.mark.parametrize("how", TOUCHES)
def test_what_a_handler_does_to_its_task_no_other_request_sees(server: Server, how: str) -> None:
    with server.connect() as peer:
        for _ in range(2):
            assert peer.request("GET", f"/touch/{how}").body == b"touched"
            assert json.loads(peer.request("GET", "/look").body) == CLEAN, server.err
        paths = [f"/touch/{how}", "/look"] * 5
        peer.send("".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths).encode())
        bodies = [peer.reply().body for _ in paths]
    # What does not suspend is answered first; an answer waits for those before it.
    assert [json.loads(body) for body in bodies[1::2]] == [CLEAN] * 5


@needs_reuse
@pytest.mark.parametrize("how", TOUCHES)
def test_what_is_done_to_a_task_between_requests_no_request_sees(server: Server, how: str) -> None:
    with server.connect() as peer:
        assert peer.request("GET", "/at-once").body == b"at once"
        assert peer.request("GET", f"/arrange/{how}").body == b"soon"
        wait_for(lambda: peer.request("GET", "/is-done").body == b"yes", f"{how}\n{server.err}")
        assert json.loads(peer.request("GET", "/look").body) == CLEAN, server.err


@needs_reuse
def test_a_task_to_which_nothing_is_done_is_reused(server: Server) -> None:
    with server.connect() as peer:
        peer.request("GET", "/at-once")
        made = peer.request("GET", "/made").body
        for _ in range(5):
            assert peer.request("GET", "/at-once").body == b"at once"
            peer.send(b"GET /at-once HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
            assert [peer.reply().body for _ in range(5)] == [b"at once"] * 5
            peer.request("GET", "/arrange/nothing")
            wait_for(lambda: peer.request("GET", "/is-done").body == b"yes", "the callback")
        assert peer.request("GET", "/made").body == made


@needs_reuse
def test_a_task_that_is_cancelled_between_requests_ends(server: Server) -> None:
    with server.connect() as peer:
        assert peer.request("GET", "/at-once").body == b"at once"
        assert peer.request("GET", "/cancel-and-wait").body == b"soon"
        ended = lambda: peer.request("GET", "/is-done").body == b"cancelled"  # noqa: E731
        wait_for(ended, "the task to end without another request")
        assert json.loads(peer.request("GET", "/look").body) == CLEAN


def test_a_token_of_an_earlier_request_resets_nothing(server: Server) -> None:
    with server.connect() as peer:
        for _ in range(3):
            assert peer.request("GET", "/token").body == b"set"
            assert peer.request("GET", "/reset").body == b"another context's"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks tell their context from 3.12 on")
def test_a_context_is_handed_out_by_its_task(serve) -> None:
    server = serve("""
    import weakref
    variable = contextvars.ContextVar("variable", default="unset")
    known = []

    @app.get("/")
    async def index():
        mine = asyncio.current_task().get_context()
        seen = [one() is mine for one in known]
        known.append(weakref.ref(mine))
        return seen
    """)
    with server.connect() as peer:
        for number in range(3):
            assert json.loads(peer.request("GET", "/").body) == [False] * number
