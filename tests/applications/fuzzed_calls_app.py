"""Procedures by Connect, MCP, runs, uploads, events and middleware that read what a client sends.

`scripts/fuzz_requests.py` sends to it.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from citius import (
    App,
    Depends,
    Header,
    Request,
    Response,
    Upload,
    file_response,
    last_event_id,
)
from citius.web.middleware import CORS, CSRF, RateLimit, Sessions
from citius.web.security import JWT, APIKey, Basic, Bearer, Principal, Signer
from fuzzed_app import BODIES, TEXTS, Item, Model

KEY = "a key of more than 32 characters, for tests"
app = App()
app.middleware(CORS(origins=["https://a.example"], methods=["*"], credentials=True))
app.middleware(Sessions(KEY))
app.middleware(CSRF())
app.middleware(RateLimit(1_000_000_000, 1))
signer = Signer(KEY, "cursor")


def _procedure(name: str, annotation: Any) -> None:
    def call(v: Any, a: Any = None) -> Any:
        return {"value": repr(v)[:200]}

    call.__annotations__ = {"v": annotation}
    app.rpc(name)(call)


mcp = app.mcp("/mcp", origins=["*"])


def _functions(name: str, annotation: Any) -> None:
    def call(v: Any) -> Any:
        return repr(v)[:200]

    call.__annotations__ = {"v": annotation}
    mcp.tool(name)(call)
    if name in TEXTS and name not in ("ints", "dates"):
        mcp.prompt(name)(call)
        mcp.resource(f"values://{name}/{{v}}")(call)


for name, kind in {**TEXTS, **BODIES}.items():
    _procedure(name.replace("-", "_"), kind)
    if name != "optional":
        _functions(name, kind)


@app.rpc("lines")
async def lines(v: int = 1, name: Literal["a", "b"] = "a") -> AsyncIterator[Item]:
    """A stream."""
    yield Item(name)


app.connect()


@app.run("/runs")
async def run(limit: int = 1, v: dt.datetime | None = None) -> AsyncIterator[Item]:
    """A run."""
    yield Item("a")


@app.uploads("/uploads", directory=tempfile.mkdtemp(prefix="fuzzed-"), size_max=2000)
async def upload(upload: Upload, v: Annotated[int, Header()] = 1) -> Any:
    """What was said of an upload."""
    return repr(upload)[:100]


@app.get("/events")
def listen(request: Request) -> Any:
    """Events after one."""
    return repr(last_event_id(request))[:100]


@app.get("/cursor")
def cursor(v: str = "") -> Any:
    """A signed cursor."""
    return repr(signer.verify(v))[:100]


@app.get("/session")
def session(request: Request) -> Any:
    """The session of a cookie."""
    return repr(dict(request.state.session))[:100]


@app.get("/file")
def file() -> Response:
    """Ranges of a file."""
    return file_response(__file__)


def _guarded(path: str, scheme: Any) -> None:
    @app.get(path)
    def handler(who: Principal = Depends(scheme)) -> Any:
        return who.id


def principal(*given: str) -> Principal | None:
    """The one that is known."""
    return Principal("a") if given[0] == "a" else None


_guarded("/guarded/jwt", JWT(KEY, algorithms=["HS256"]))
_guarded("/guarded/basic", Basic(principal))
_guarded("/guarded/bearer", Bearer(principal))
_guarded("/guarded/key", APIKey({"k" * 20: Principal("a")}))


@app.post("/form", response=Model | None)
def form(v: Model) -> Any:
    """A body behind CSRF."""
    return v
