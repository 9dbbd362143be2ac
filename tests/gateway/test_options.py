"""Options that do not exist are refused, with the one that is meant: newcomer A2 and C."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from citius import (
    App,
    Broadcast,
    Config,
    ConfigError,
    Depends,
    FormLimits,
    FromPool,
    FromRedis,
    OpenAPI,
    Query,
    Router,
    WebSocket,
    http,
    mcp,
    pg,
    redis,
    rpc,
    sqlite,
)
from citius.cluster import Cluster, MemoryStore, SharedStore
from citius.http.gateway import Checks, HTTPCache, Upstreams
from citius.settings.config import OPTIONS
from citius.testing import AsyncClient, Client
from citius.unknown_options import OF_SERVERS
from citius.web.middleware import (
    CORS,
    RateLimit,
    RedisBuckets,
    RedisStore,
    SecurityHeaders,
    SessionCookie,
    Sessions,
    Timeout,
)
from citius.web.responses.templates import Templates
from citius.web.security import JWT, APIKey, Basic, Bearer, Signer, oauth2_password


def deny() -> None: ...


untyped: Any = App()


loose: Any = App  # type checkers know the options
loose_router: Any = Router
app: Any = App()
cluster: Any = Cluster()


class Pool:
    """As a pool of a database."""

    def transaction(self, *, isolation: str | None = None, readonly: bool = False) -> Any: ...


UNKNOWN: list[tuple[Callable[[], object], str]] = [
    (lambda: app.get("/", dependancies=[Depends(deny)]), "did you mean dependencies=?"),
    (lambda: app.get("/", response_model=int), "it is called response= here"),
    (lambda: app.post("/", status=201), "it is called status_code= here"),
    (lambda: app.route("/", stauts_code=201), "did you mean status_code=?"),
    (lambda: app.get("/", methods=["GET"]), r"write app.route\(path, methods="),
    (lambda: app.put("/", compilde=True), "did you mean compiled=?"),
    (lambda: app.get("/", timeout=3), r"app.middleware\(Timeout\(seconds\)\)"),
    (lambda: app.get("/", response_model_exclude={"x"}), "response= is a type with the fields"),
    (lambda: app.get("/", permissions=[]), "it is called dependencies= here"),
    (lambda: app.get("/", security=[]), "it is called dependencies= here"),
    (lambda: app.websocket("/", dependancies=[]), "did you mean dependencies=?"),
    (lambda: app.static("/x", ".", spa=True), "it is called fallback= here"),
    (lambda: app.rpc("x", dependancies=[]), "did you mean dependencies=?"),
    (lambda: app.static("/x", ".", html=True), "it is called index= here"),
    (lambda: app.mount("/x", App(), dependencies=[]), r"has no option 'dependencies'"),
    (lambda: app.mount_wsgi("/x", print, name="x"), r"has no option 'name'"),
    (lambda: app.include(Router(), tags=["x"]), r"include .*has no option 'tags'"),
    (lambda: app.room("x", hisotry=3), "did you mean history=?"),
    (lambda: app.executor("x", thread=3), "did you mean threads=?"),
    (lambda: loose(dependancies=[]), "App .*did you mean dependencies=?"),
    (lambda: loose(title="Shop"), r"OpenAPI\(title="),
    (lambda: loose(description="Shop"), r"OpenAPI\(description="),
    (lambda: loose(redoc_url=None), r"OpenAPI\(docs="),
    (lambda: loose(max_body_size=1), "--body-bytes-max"),
    (lambda: loose(allowed_hosts=["a"]), "TrustedHosts"),
    (lambda: loose_router(lifespan=print), "a citius.App has a lifespan"),
    (lambda: loose(prefix="/x"), "a citius.Router has a prefix"),
    (lambda: loose_router(dependancy=[]), "Router .*did you mean dependencies=?"),
    (lambda: CORS(["*"], allow_methods=["*"]), "CORS .*it is called methods= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: RateLimit(1, window=60), "it is called per_s= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: RateLimit(1, 1, key_func=print), "it is called key= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: SecurityHeaders(hsts_seconds=1), "it is called hsts_max_age_s= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Sessions(same_site="lax"), r"cookie=SessionCookie\(…\)"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: OpenAPI(openapi_url="/o"), "it is path= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: OpenAPI(contact={}), "it is extra= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: FormLimits(max_files=1), "it is called files_max= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: RateLimit(1, 1, bursts=1), "did you mean burst=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: SecurityHeaders(cps=None), "did you mean csp=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Timeout(1, route={}), "did you mean routes=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Sessions(nothing_like_it=1), "Sessions .*has no option"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Depends(deny, use_cache=False), "Depends .*it is called cached= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: FromPool(Pool(), isolaton="serializable"), "FromPool .*did you mean isolation=?"),
    (lambda: FromPool(Pool(), isolation="serialisable"), "FromPool .*isolation is one of"),
    (lambda: Depends(deny, scope="ap"), "Depends .*scope= is 'request' or 'app'"),  # type: ignore[arg-type]  # pyright: ignore
    (lambda: APIKey({}, filed="x"), "APIKey .*did you mean field=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Bearer(print, scheme_name="x"), "Bearer .*has no option"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Basic(print, raelm="x"), "Basic .*did you mean realm=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: JWT("k" * 40, algorithm=["HS256"]), "JWT .*did you mean algorithms=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: oauth2_password(print, tokenUrl="/t"), "oauth2_password .*has no option"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Signer("k" * 40, "p", salt="x"), "Signer .*has no option"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: SessionCookie(same_sit="lax"), "SessionCookie .*did you mean same_site=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: OpenAPI(titel="x"), "OpenAPI .*did you mean title=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: FormLimits(files_max=1, x=1), "FormLimits .*has no option"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Templates("x", auto_escape=1), "Templates .*has no option"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Broadcast(hisotry=1), "Broadcast .*did you mean history=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: app.forward("/x", "http://x", timeuot=1), "forward .*did you mean timeout=?"),
    (lambda: app.mount_rpc(print, dependancies=[]), "mount_rpc .*did you mean dependencies=?"),
    (lambda: app.connect(dependancies=[]), "connect .*did you mean dependencies=?"),
    (lambda: app.webtransport_rpc("/x", guards=[]), "webtransport_rpc .*called dependencies= here"),
    (lambda: app.webtransport("/x", guards=[]), "webtransport .*called dependencies= here"),
    (lambda: app.mcp("/mcp", orgins=[]), "mcp .*did you mean origins=?"),
    (lambda: app.mcp("/mcp1").tool(titel="x"), "tool .*did you mean title=?"),
    (lambda: app.mcp("/mcp2").resource("x://y", mime="x"), "resource .*has no option"),
    (lambda: app.mcp("/mcp3").prompt(titel="x"), "prompt .*did you mean title=?"),
    (lambda: app.run("/x", ownr=deny), "run .*did you mean owner=?"),
    (lambda: app.uploads("/x", directory="x", max_size=1), "uploads .*called size_max= here"),
    (lambda: app.broadcast("x", hisotry=1), "broadcast .*did you mean history=?"),
    (lambda: app.executor("x", max_workers=3), "it is called threads= here"),
    (lambda: app.forward("/x", "http://x", preserve_host=True), "it is called host= here"),
    (lambda: app.mcp("/mcp5", host="x"), "did you mean hosts=?"),
    (lambda: Upstreams(["http://x"], max_fails=1), "it is called failures= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Upstreams(["http://x"], failure=1), "Upstreams .*did you mean failures=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: app.middleware(print, qqq=1), "middleware .*has no option"),
    (lambda: app.connection_middleware(print, qqq=1), "connection_middleware .*has no option"),
    (lambda: app.exception_handler(404, handler=1), "exception_handler .*has no option"),
    (lambda: app.on_startup(deny, once=1), "on_startup .*has no option"),
    (lambda: app.on_shutdown(deny, once=1), "on_shutdown .*has no option"),
    (lambda: app.readiness(deny, every=1), "readiness .*has no option"),
    (lambda: app.run(), "run .*test_options.py:.* declares a run, .*citius serve module:app"),
    (lambda: app.run("0.0.0.0", 8000), "run .*test_options.py:.* declares a run"),
    (lambda: app.run(reload=True), r"run .*citius serve module:app --reload …`, or app.serve"),
    (lambda: app.run(workers=4), r"--workers …`, or app.serve\(Config\(workers=…\)\)"),
    (lambda: app.serve(port=1), r"serve .*config=Config\(port=…\)"),
    (
        lambda: app.run(port=1),
        r"run .*has no option 'port'; write `citius serve",
    ),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: app.asgi(workers=1), r"asgi .*config=Config\(workers=…\)"),
    (lambda: app.mcp("/mcp4").completion("a", "b", x=1), "completion .*has no option"),
    (lambda: Client(app, raise_server_exceptions=False), "Client .*called raise_errors= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: AsyncClient(app, base_url="x"), "AsyncClient .*paths are those of the application"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Config(worker=2), "Config .*did you mean workers=?"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: cluster.cache("x", ttl=1), "cache .*called ttl_s= here"),
    (lambda: cluster.lock("x", ttl=1), "lock .*called ttl_s= here"),
    (lambda: cluster.presence("x", ttl=1), "presence .*called ttl_s= here"),
    (lambda: cluster.sessions(max_age=1), "sessions .*has no option"),
    (lambda: cluster.buckets(down=1), "buckets .*did you mean when_down=?"),
    (lambda: RedisStore.from_url("redis://a", timeout=1), "from_url .*called timeout_s= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: RedisBuckets.from_url("redis://a", timeout=1), "from_url .*called timeout_s= here"),  # type: ignore[call-arg]  # pyright: ignore
    (lambda: Query(1, regex="x"), "Query .*it is called pattern= here"),  # type: ignore[call-arg]  # pyright: ignore
]


@pytest.mark.parametrize(("make", "meant"), UNKNOWN, ids=[meant for _, meant in UNKNOWN])
def test_unknown_options(make: Callable[[], object], meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"^(?=.*test_options.py:\d+).*{meant}"):
        make()


CLIENTS: list[tuple[Callable[..., object], dict[str, object], str]] = [
    (pg.Pool, {"max_size": 8}, "called size= here"),
    (pg.Pool, {"sise": 8}, "did you mean size=?"),
    (pg.Pool, {"min_size": 8}, "opened when they are needed"),
    (pg.Pool, {"host": "db"}, "write it in the URL"),
    (pg.Pool, {"statement_cache_size": 0}, "called named_statements= here"),
    (sqlite.Pool, {"pool_size": 1}, "called readers= here"),
    (http.Client, {"max_redirects": 3}, "called redirects_max= here"),
    (http.Client, {"follow_redirect": True}, "did you mean follow_redirects=?"),
    (http.Client, {"uds": "/x"}, "called unix_path= here"),
    (http.Timeout, {"conect": 1}, "did you mean connect=?"),
    (http.Limits, {"max_connections": 3}, "called connections_max= here"),
    (http.Retry, {"attempt_max": 3}, "did you mean attempts_max=?"),
    (http.Hedge, {"nothing": 3}, "there are "),
    (http.Retry, {"max_attempts": 3}, "called attempts_max= here"),
    (http.Retry, {"methods": ["GET"]}, "there are "),
    (Cluster, {"prefix": "x"}, "there are "),
    (Cluster, {"redis": "redis://a"}, "called url= here"),
    (http.CircuitBreaker, {"nothing": 3}, "there are "),
    (http.Digest, {"pasword": "x"}, "did you mean password=?"),
    (http.Basic, {"pasword": "x"}, "did you mean password=?"),
    (http.Bearer, {"tokn": "x"}, "did you mean token=?"),
    (mcp.Authorization, {"issuer": "x"}, "called servers= here"),
    (sqlite.Pool, {"timeout": 1}, "called wait_s= here"),
    (redis.Redis, {"socket_timeout": 1}, "called timeout_s= here"),
    (redis.Redis, {"max_connections": 1}, "called size= here"),
    (redis.Redis, {"protocol": 3}, "has no option"),
    (redis.ClientCache, {"ttl": 1}, "has no option"),
    (Cluster, {"engin": 1}, "has no option"),
    (MemoryStore, {"max_age": 1}, "has no option"),
    (SharedStore, {"max_age": 1}, "has no option"),
    (rpc.Client, {"timeout": 1}, "has no option"),
    (rpc.AsyncClient, {"timeout": 1}, "has no option"),
]
"""A misspelt option of a client was a TypeError that did not say what is meant."""


@pytest.mark.parametrize(("cls", "given", "said"), CLIENTS, ids=range(len(CLIENTS)))
def test_unknown_options_of_clients(
    cls: Callable[..., object], given: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError, match=rf"test_options.py:\d+.*{re.escape(said)}"):
        cls(**given)


HERE = r"\(\S*test_options\.py:\d+\)"

CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: untyped.get(), rf'get {HERE}: missing .*\bpattern\b.*@app\.get\("/path"\)'),
    (lambda: untyped.run(), "declares a run"),
    (lambda: untyped.websocket(), r'@app\.websocket\("/path"\)'),
    (lambda: untyped.get("/x", ["GET"]), rf"get {HERE}: there are too many positional arguments"),
    (lambda: untyped.static(), rf"static {HERE}: .*write static\(prefix, directory, …\)"),
    (lambda: untyped.static("/x"), rf"static {HERE}: missing .*'directory'"),
    (lambda: untyped.forward("/x"), rf"forward {HERE}: .*write forward\(pattern, to, …\)"),
    (lambda: untyped.mount("/x"), r"write mount\(prefix, app\)"),
    (lambda: untyped.uploads("/x"), rf"uploads {HERE}: missing .*'directory'"),
    (lambda: untyped.room(), r"write room\(name, …\)"),
    (lambda: untyped.include(), r"write include\(router, …\)"),
    (lambda: untyped.exception_handler(), r"write exception_handler\(what\)"),
    (lambda: untyped.add_middleware(), r"write add_middleware\(middleware, …\)"),
    (lambda: untyped.middleware(deny, deny), "too many positional arguments"),
    (lambda: Basic(), rf"^Basic {HERE}: missing .*write Basic\(check, …\)"),  # type: ignore[call-arg]
    (lambda: Bearer(), rf"^Bearer {HERE}: missing"),  # type: ignore[call-arg]
    (lambda: APIKey(), rf"^APIKey {HERE}: missing"),  # type: ignore[call-arg]
    (lambda: RateLimit(), rf"RateLimit {HERE}: missing"),  # type: ignore[call-arg]
    (lambda: Upstreams(), r"write Upstreams\(servers, …\)"),  # type: ignore[call-arg]
]
"""A call without an argument that it needs was a TypeError that did not say what to write."""


@pytest.mark.parametrize(("call", "said"), CALLS, ids=range(len(CALLS)))
def test_calls_without_what_they_need(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"{HERE}.*") as raised:
        call()
    assert re.search(said, str(raised.value))


def test_a_type_error_inside_of_a_function_stays_one() -> None:
    class Prefix(str):
        def startswith(self, *_: Any) -> bool:
            raise TypeError("own")

    with pytest.raises(TypeError, match="own"):
        Router(prefix=Prefix("/x"))


STATEMENTS: list[tuple[Callable[[App], Any], str]] = [
    (lambda to: to.forward("/x", "http://a"), "forward"),
    (lambda to: to.static("/x", "."), "static"),
    (lambda to: to.mount("/x", App()), "mount"),
    (lambda to: to.include(Router()), "include"),
    (lambda to: to.executor("x", threads=1), "executor"),
]


@pytest.mark.parametrize(("declare", "name"), STATEMENTS, ids=[name for _, name in STATEMENTS])
def test_statements_in_place_of_decorators(declare: Callable[[App], Any], name: str) -> None:
    made = declare(App())
    assert not made
    with pytest.raises(ConfigError, match=rf"{name} {HERE} .*write app\.{name}\(…\) without @"):
        made(deny)


PLACES: list[tuple[Callable[[], object], str]] = [
    (lambda: Upstreams([]), rf"^Upstreams {HERE}: expected at least one server"),
    (lambda: Upstreams(["x"]), rf"^Upstreams {HERE}: expected the URL of a server"),
    (lambda: Upstreams(["http://a"], balance="x"), rf"^Upstreams\(balance=…\) {HERE} is one of"),  # type: ignore[arg-type]
    (lambda: Upstreams(["http://a"], key="x"), rf"^Upstreams {HERE}: balance='hash'"),
    (lambda: Checks("x"), rf"^Checks\(path=…\) {HERE} begins with a slash"),
    (lambda: HTTPCache(name="a b"), rf"^HTTPCache\(name=…\) {HERE} is letters"),
    (lambda: http.Client(allow="privat"), rf"^Client {HERE}: allow= is"),
    (lambda: http.Client(allow=["10.0.0.0/99"]), rf"^Client {HERE}: allow="),
    (lambda: http.Client(proxy="http://a", allow="public"), rf"^Client {HERE}: .*allow="),
    (lambda: http.Retry(attempts_max=-1), HERE),
    (lambda: app.forward("/x", []), rf"^app\.forward\('/x'\) {HERE}: Upstreams: expected"),
    (lambda: Config(workers=-1), HERE),
    (lambda: Router().include(App()), rf"^include {HERE}: include takes|^include {HERE} takes"),
    (lambda: untyped.get("/none")(None), rf"^get {HERE}: a function is decorated, got None"),
    (lambda: untyped.websocket("/none")("x"), rf"^websocket {HERE}: a function is decorated"),
    (lambda: untyped.rpc(5), rf"app\.rpc {HERE}: a name is a text, got 5"),
    (lambda: untyped.mcp("/m1").tool(5), rf"mcp\.tool {HERE}: a name is a text, got 5"),
    (lambda: untyped.mcp("/m2").prompt(5), rf"mcp\.prompt {HERE}: a name is a text, got 5"),
    (
        lambda: untyped.forward("/x", "http://a", headers={"keep-alive": "5"}),
        rf"forward\('/x'\) {HERE}: .*keep-alive is written by the gateway itself",
    ),
    (lambda: untyped.websocket("/y")(yields), r"^yields .*has `yield`, which sends nothing"),
    (lambda: untyped.websocket("/y")(yields_and_awaits), r"has `yield`, which sends nothing"),
    (lambda: untyped.mount("/x", untyped), rf"^mount {HERE}: mounting at /x"),
    (lambda: App().get("/x", stream=True, form=FormLimits())(deny), rf"^get {HERE}: .*form="),
]
"""Mistakes in values were told without the line of the application that has them."""


@pytest.mark.parametrize(("declare", "said"), PLACES, ids=range(len(PLACES)))
def test_a_mistake_has_one_place(declare: Callable[[], object], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        declare()
    assert len(re.findall(r"\.py:\d+", str(raised.value))) == 1


async def awaits(n: int) -> int:
    return n


def yields(n: int) -> Any:
    yield n


async def yields_and_awaits(n: int) -> Any:
    yield n


class Adds:
    def __call__(self, n: int) -> int:
        return n


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (awaits, rf"awaits {HERE} is `async def`, .*write `def`"),
        (yields, rf"yields {HERE} has `yield`, .*write `return`"),
        (yields_and_awaits, rf"yields_and_awaits {HERE} has `yield`, .*write `return`"),
        (functools.partial(awaits, 1), "is `async def`"),
        (Adds(), rf"compiled=True {HERE} is for functions .*got .*Adds"),
        (Adds, rf"compiled=True {HERE} is for functions .*got .*Adds"),
        (len, rf"compiled=True {HERE} is for functions .*got .*len"),
    ],
)
def test_what_cannot_be_compiled_is_refused_at_its_declaration(function: Any, said: str) -> None:
    app = App()
    with pytest.raises(ConfigError, match=said):
        app.get("/{n}", compiled=True)(function)
    assert not app.endpoints


@pytest.mark.parametrize(
    ("native", "said"),
    [
        (
            "./fast.so",
            r"is a path; write compiled=citius\.load_handlers\('\./fast\.so'\)\[\"name\"\]",
        ),
        (Path("fast.so"), r"is a path; write compiled=citius\.load_handlers\('fast\.so'\)"),
        (ctypes.CDLL(None), r"is a library; write compiled=citius\.load_handlers\(path\)"),
        (ctypes, r"is a module; .*compiled=ctypes\.name"),
        (deny, "is a function of Python; write compiled=True"),
    ],
    ids=["text", "path", "library", "module", "function"],
)
def test_what_has_or_makes_handlers_and_is_none(native: object, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"compiled= {HERE}: .*{said}"):
        App().get("/", compiled=native)


class OfASGI:
    def __init__(self, app: Any, *, size: int) -> None: ...


@pytest.mark.parametrize("given", [{}, {"minimum": 1}, {"size": 1, "other": 2}])
def test_arguments_of_asgi_middleware(given: dict[str, Any]) -> None:
    message = rf"app\.add_middleware {HERE}: OfASGI {HERE} is called .*takes \(app"
    with pytest.raises(ConfigError, match=message):
        App().add_middleware(OfASGI, **given)


def test_a_directory_that_is_missing_has_the_line_of_its_mount(tmp_path: Path) -> None:
    app = App()
    app.static("/x", tmp_path / "nothing")
    with pytest.raises(ConfigError, match=rf"static /x {HERE}: there is no directory"):
        Client(app)


def test_a_procedure_without_parentheses_is_the_function() -> None:
    assert App().rpc(deny) is deny


VALUES: list[tuple[dict[str, Any], str]] = [
    ({"tags": "users"}, "tags= is a list of texts"),
    ({"tags": [1]}, "tags= is a list of texts"),
    ({"status_code": "201"}, "status_code= is a number"),
    ({"headers": [("a", "b")]}, "headers= is a mapping"),
    ({"body_bytes_max": "1MB"}, "body_bytes_max= is a number of bytes"),
    ({"blocking": "no"}, "blocking= is True or False"),
    ({"exclude_none": 1}, "exclude_none= is True or False"),
    ({"compress": None}, "compress= is True, False or"),
    ({"callbacks": [1]}, "callbacks= is a mapping"),
    ({"summary": 3}, "summary= is a text"),
    ({"tool": None}, "tool= is True, False or"),
]
"""Values that were taken for something else, or ended the start without a word of the route."""


@pytest.mark.parametrize(("given", "said"), VALUES, ids=[said for _, said in VALUES])
def test_values_of_options(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"the route / .*test_options.py:\d+.*{said}"):
        app.get("/", **given)


@pytest.mark.parametrize("make", [App, Router])
def test_tags_that_are_a_text(make: Any) -> None:
    with pytest.raises(ConfigError, match=r"test_options.py:\d+.*tags= is a list of texts"):
        make(tags="users")


@pytest.mark.parametrize("methods", [["GE T"], [1], [""]])
def test_methods_that_are_none(methods: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"test_options.py:\d+.*(is no method|is a list of texts)"
    ):
        app.route("/", methods=methods)
    with pytest.raises(
        ConfigError, match=r"test_options.py:\d+.*(is no method|is a list of texts)"
    ):
        app.forward("/", "http://a", methods=methods)


def test_methods_of_an_iterator() -> None:
    app = App()
    app.route("/", methods=(one for one in ("get", "post")))(lambda: "x")
    with Client(app) as client:
        assert [client.request(one, "/").status_code for one in ("GET", "POST")] == [200, 200]


@pytest.mark.parametrize(
    "given",
    [
        {"executor": "x"}, {"form": FormLimits()}, {"on_disconnect": "continue"}, {"response": dict},
        {"exclude_none": True}, {"exclude_unset": True}, {"exclude_defaults": True}, {"by_alias": False},
    ],
    ids=str,
)  # fmt: skip
def test_options_that_compiled_code_does_not_have(given: dict[str, Any]) -> None:
    """They were dropped."""
    with pytest.raises(ConfigError, match=f"the route / is compiled: {next(iter(given))}="):
        app.get("/", compiled=True, **given)


@pytest.mark.parametrize("given", [CORS, CORS(["*"])], ids=["class", "object"])
def test_native_middleware_as_asgi_middleware(given: Any) -> None:
    options: dict[str, Any] = {"origins": ["*"]} if given is CORS else {}
    with pytest.raises(ConfigError, match=r"test_options.py:\d+.*write app.middleware\(CORS"):
        loose().add_middleware(given, **options)


DEPENDENCIES: list[Callable[[Any], object]] = [
    lambda given: App(dependencies=given),
    lambda given: Router(dependencies=given),
    lambda given: App().get("/", dependencies=given)(deny),
    lambda given: App().websocket("/", dependencies=given)(deny),
    lambda given: App().rpc("x", dependencies=given)(deny),
]


@pytest.mark.parametrize("declare", DEPENDENCIES, ids=range(len(DEPENDENCIES)))
@pytest.mark.parametrize("given", [Depends(deny), [deny], deny, "x", [None]], ids=range(5))
def test_dependencies_that_are_none(declare: Callable[[Any], object], given: object) -> None:
    with pytest.raises(ConfigError, match=r"test_options.py:\d+.*Depends\("):
        declare(given)


def test_a_class_stands_for_itself() -> None:
    with pytest.raises(ConfigError, match=r"without a function"):
        app = App()
        app.get("/", dependencies=[Depends])(lambda: "x")  # type: ignore[list-item]  # pyright: ignore
        Client(app).__enter__()


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", r'app.get .*test_options.py:\d+.*the path of a router or mount itself is "/"'),
        ("hello", r"app.get .*test_options.py:\d+.*begins with a slash"),
        ("/<n>", r"test_options.py:\d+.*<n> .*is no parameter; write \{n\}"),
        ("/u/<int:n>", r"<int:n> .*write \{n:int\}"),  # Flask, Django
        ("/u/<n:int>", r"<n:int> .*write \{n:int\}"),  # Sanic, Bottle
        ("/u/<string(length=2):n>", r"write \{n\}"),
        ("/u/<path:n>", r"write \{n:path\}"),
        ("/u/:n", r"test_options.py:\d+.*:n .*write \{n\}"),  # Express, Rails
        ("/u/:n?", r"write \{n\}, and another route without it"),
        ("/u/:n*", r"write \{n:path\}"),
        ("/u/*", r"test_options.py:\d+.*\* in '/u/\*' .*write \{rest:path\}"),
        ("/u/**", r"write \{rest:path\}"),
        ("/*n", r"write \{n:path\}"),  # Gin, Rails
        ("/u*", r"write \{rest:path\}"),
        ("/{a}/{n...}", r"\{n\.\.\.\} .*write \{n:path\}"),  # Go
        ("/{a}/{*n}", r"write \{n:path\}"),  # axum
        ("/{a}/{n?}", r"write \{n\}, and another route without it"),
        ("/[n]", r"write \{n\}"),  # Next.js
        ("/[...n]", r"write \{n:path\}"),
        (r"^/u/(?P<n>\d+)$", r"test_options.py:\d+.*regular expression.*write \{n\}"),
        (r"/u/(\d+)", r"regular expression.*write \{name\}"),
        ("/u/(.*)", r"regular expression.*write \{name\}"),
        ("/u/{n:[0-9]+}", r"regular expression.*write \{n\}"),  # aiohttp, Spring
        ("/u?n=1", r"test_options.py:\d+.*has a query"),
        ("/u#n", r"test_options.py:\d+.*has a fragment"),
    ],
)
def test_paths_of_other_frameworks(pattern: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        App().get(pattern)


def test_paths_with_colons_that_are_plain() -> None:
    app = App()
    plain = (
        "/v1/items:batch",
        "/urn:isbn:1",
        "/{n:int}",
        "/a*b",
        "/$batch",
        "/@{n}",
        "/{n}.json",
        "/(a)",
    )
    for pattern in plain:
        app.get(pattern)


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda to: to.websocket("/u/*"), r"app\.websocket .*write \{rest:path\}"),
        (lambda to: to.forward("/u/*", "http://a"), r"app\.forward .*write \{rest:path\}"),
        (lambda to: to.forward("/{rest:path}", "http://a", path="/b/*"), r"write \{rest:path\}"),
        (lambda to: to.forward("/{rest:path}", "http://a/b/*"), r"write \{rest:path\}"),
        (lambda to: to.static("/u/*", "."), "static .*without \\*"),
        (lambda to: to.mount("/u/*", App()), "mount .*write '/u'"),
        (lambda to: to.mount("/<n>", App()), r"mount .*write \{n\}"),
        (lambda to: to.include(Router(), prefix="/u/*"), "include .*write '/u'"),
        (lambda to: Router(prefix="/u/*"), "router .*write '/u'"),
        (lambda to: Router(prefix="/:n"), r"router: .*write \{n\}"),
    ],
    ids=range(10),
)
def test_paths_of_other_frameworks_elsewhere(declare: Callable[[App], Any], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"{HERE}") as raised:
        declare(App())
    assert re.search(said, str(raised.value))


def test_what_is_right_is_taken(tmp_path: Path) -> None:
    app = App(dependencies=(Depends(deny),))
    app.static("/x", tmp_path, index=None, middleware=True)

    @app.websocket("/w", serial=False)
    async def socket(ws: WebSocket) -> None: ...

    with Client(app) as client:
        assert client.get("/x/a").status_code == 404


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (
            lambda: FromPool(cast("Any", 5)),
            r"FromPool \(.*test_options.py:\d+\) takes a pool, got 5",
        ),
        (
            lambda: FromRedis(5),
            r"FromRedis \(.*test_options.py:\d+\) takes a client of Redis, got 5",
        ),
        (
            lambda: App().add_middleware(cast("Any", 5)),
            r"add_middleware \(.*test_options.py:\d+\) takes what makes ASGI middleware, got 5",
        ),
        (
            lambda: Client(cast("Any", 5)),
            r"Client \(.*test_options.py:\d+\) takes an App of citius, got 5",
        ),
    ],
    ids=["pool", "redis", "middleware", "client"],
)
def test_an_argument_of_another_kind(declare: Callable[[], object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        declare()


def test_options_of_the_server_are_options_of_the_server() -> None:
    assert OPTIONS.keys() >= OF_SERVERS
