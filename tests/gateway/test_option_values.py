"""Values that options cannot have end the start: A2. What is wrong is read from each option's annotation."""

from __future__ import annotations

import inspect
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from types import GenericAlias, SimpleNamespace
from typing import Any

import pytest
from citius import (
    App,
    Broadcast,
    ConfigError,
    Depends,
    FormLimits,
    FromPool,
    OpenAPI,
    Query,
    event_stream,
    http,
    pg,
    redis,
)
from citius import mcp as assistants
from citius.cluster import Cluster, MemoryStore, SharedStore
from citius.option_values import kinds_of, mistake
from citius.testing import AsyncClient, Client
from citius.web.middleware import (
    CORS,
    RateLimit,
    RedisBuckets,
    RedisStore,
    SecurityHeaders,
    SessionCookie,
    Timeout,
)
from citius.web.routing.router import Router
from citius.web.security import Basic

app: Any = App()
cluster: Any = Cluster()
POOL = pg.Pool("postgres://a")


def deny() -> None: ...


WRONG: list[tuple[Any, tuple[object, ...], dict[str, object], str]] = [
    (App, (), {"redirect_slashes": "no"}, "True or False, got 'no'"),
    (Router, (), {"prefix": 3}, "prefix= is a text"),
    (app.websocket, ("/",), {"serial": 0}, "True or False"),
    (app.rpc, ("x",), {"blocking": "no"}, "True or False"),
    (app.run, ("/r",), {"tags": "abc"}, r"a list of texts, tags=\['abc'\], got"),
    (app.run, ("/r",), {"lasts_s": float("nan")}, "lasts_s= is a number, got nan"),
    (app.run, ("/r",), {"history": 2.5}, "a whole number"),
    (app.run, ("/r",), {"heartbeat_s": "5"}, "a number or None, got '5'"),
    (app.run, ("/r",), {"summary": b"x"}, "a text or None"),
    (app.forward, ("/f", "http://a"), {"tags": [3]}, "a list of texts"),
    (app.forward, ("/f", "http://a"), {"retry": "no"}, "True or False"),
    (app.static, ("/s", "."), {"middleware": "no"}, "True or False"),
    (app.room, ("a",), {"history": "5"}, "history= is a whole number, got '5'"),
    (app.room, ("a",), {"history": -1}, "history must be at least 0, got -1"),
    (app.broadcast, ("a",), {"slow": "bogus"}, "'close' or 'drop', got 'bogus'"),
    (app.executor, ("a",), {"threads": True}, "a whole number or None, got True"),
    (app.executor, ("a",), {"threads": 1, "deadline_s": "5"}, "a number"),
    (app.executor, ("a",), {"threads": 1, "calls_max": -1}, "more than 0"),
    (app.mcp, ("/m1",), {"session_s": "5"}, "session_s= is a whole number"),
    (app.mcp, ("/m2",), {"title": 3}, "a text or None"),
    (app.mcp("/m3").tool, (), {"read_only": "no"}, "True or False or None"),
    (CORS, (), {"origins": "*", "max_age_s": "10"}, "a whole number"),
    (CORS, (), {"origins": "*", "credentials": 0}, "True or False"),
    (RateLimit, (), {"limit": 1, "per_s": 1, "burst": "5"}, "burst= is"),
    (SecurityHeaders, (), {"hsts_max_age_s": "1y"}, "a whole number"),
    (Timeout, (), {"seconds": "5"}, "is a number"),
    (SessionCookie, (), {"secure": "no"}, "True or False"),
    (Depends, (), {"call": deny, "cached": "no"}, "True or False"),
    (Query, (), {"min_length": -1}, "min_length must be at least 0"),
    (Query, (), {"pattern": 3}, "a text or None"),
    (Query, (), {"deprecated": "no"}, "True or False"),
    (OpenAPI, (), {"title": 3}, "a text"),
    (FormLimits, (), {"file_bytes_max": "10MB"}, "a whole number"),
    (Broadcast, (), {"heartbeat_s": [1]}, "a number or None"),
    (Basic, (), {"check": print, "realm": 3}, "a text"),
    (http.Client, (), {"follow_redirects": "no"}, "True or False"),
    (http.Client, (), {"verify": "no", "http2": 3}, "http2= is"),
    (http.Timeout, (), {"connect": "5"}, "is a number"),
    (http.Retry, (), {"statuses": ["503"]}, "a list of whole numbers"),
    (http.Limits, (), {"connections_max": True}, "a whole number"),
    (redis.Redis, (), {"size": "4"}, "a whole number"),
    (redis.Redis, (), {"decode_responses": "yes"}, "True or False"),
    (Cluster, (), {"when_down": "bogus"}, "'queue' or 'local'"),
    (cluster.cache, ("x",), {"ttl_s": "60"}, "a number"),
    (cluster.lock, ("x",), {"ttl_s": -1}, "more than 0"),
    (cluster.presence, ("x",), {"when_down": 3}, "'last' or 'refuse'"),
    (cluster.buckets, (), {"when_down": "bogus"}, "'local' or 'allow' or 'refuse'"),
    (MemoryStore, (), {"sessions_max": "5"}, "a whole number"),
    (SharedStore, (), {"prefix": b"x"}, "a text"),
    (RedisStore.from_url, ("redis://a",), {"timeout_s": float("nan")}, "a number"),
    (App, (), {"openapi": {"title": "x"}}, "an OpenAPI or None"),
    (App, (), {"cluster": "redis://a"}, "a Cluster or None"),
    (app.get, ("/",), {"form": {"files_max": 3}}, "a FormLimits or None"),
    (app.forward, ("/f", "http://a"), {"cache": True}, "an HTTPCache or None"),
    (app.forward, ("/f", "http://a"), {"timeout": "5"}, "a Timeout or a number"),
    (FromPool, (POOL,), {"readonly": "no"}, "readonly= is True or False"),
    (pg.Codec, (), {"type_name": 3}, "a text"),
    (event_stream, ([],), {"heartbeat_s": "5"}, "a number or None"),
    (pg.Pool, (), {"dsn": "postgres://a", "on_notice": 3}, "a function or None"),
    (pg.Pool, (), {"dsn": "postgres://a", "codecs": ["hstore"]}, "a list"),
    (redis.Redis, (), {"cache": True}, "a ClientCache or None"),
    (http.Client, (), {"breaker": True}, "a CircuitBreaker or None"),
    (http.Client, (), {"params": "a=b"}, "a mapping or a list or None"),
    (http.Bearer, (), {"token": 3}, "a text or a function"),
    (RedisBuckets.from_url, ("redis://a",), {"when_down": "x"}, "'allow'"),
    (Client, (app,), {"scheme": "ftp"}, "'http' or 'https'"),
    (AsyncClient, (app,), {"raise_errors": "no"}, "True or False"),
]


@pytest.mark.parametrize(("make", "args", "given", "said"), WRONG, ids=range(len(WRONG)))
def test_wrong_values(
    make: Any, args: tuple[object, ...], given: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError, match=rf"test_option_values.py:\d+.*{said}"):
        make(*args, **given)


def test_positional_values() -> None:
    with pytest.raises(ConfigError, match=r"RateLimit .*limit= is a whole number, got '5'"):
        RateLimit("5", 1)  # type: ignore[arg-type]  # pyright: ignore
    with pytest.raises(ConfigError, match=r"Timeout .*got '5'"):
        Timeout("5")  # type: ignore[arg-type]  # pyright: ignore


def test_secrets_are_not_shown() -> None:
    with pytest.raises(ConfigError) as raised:
        http.Basic(username="me", password=123456)  # type: ignore[arg-type]  # pyright: ignore
    assert "123456" not in str(raised.value)
    assert "password= is a text, got a int" in str(raised.value)
    for make, name in ((pg.Pool, "dsn"), (http.Client, "base_url"), (redis.Redis, "url")):
        with pytest.raises(ConfigError, match=f"{name}= is .*, got a bytes$"):
            make(b"postgres://me:123456@a")  # type: ignore[arg-type]  # pyright: ignore


RIGHT: list[tuple[str, list[object]]] = [
    ("int", [0, HTTPStatus.OK]),
    ("float", [0, 1, 1.5, float("inf"), Decimal("1.5")]),
    ("float | None", [None, 2]),
    ("str | os.PathLike[str]", ["x", Path("x")]),
    ("Literal['a', 'b'] | None", ["a", None]),
    ("Sequence[str]", [(), ["a"], ("a",), {"a"}, iter("ab")]),
    ("str | Iterable[str]", ["a", ["a"]]),
    ("Mapping[str, str] | None", [{}, {"a": "b"}, None]),
    ("Callable[[int | str], bool] | None", [print, None]),
    ("Timeout | float | None", [Timeout(1), 3.5, None]),
    ("Cluster | None", [SimpleNamespace(start=print)]),
    ("Whatever", [3, "x", None]),
]


@pytest.mark.parametrize(("annotation", "values"), RIGHT, ids=[one for one, _ in RIGHT])
def test_right_values(annotation: str, values: list[object]) -> None:
    kinds = kinds_of("option", annotation)
    assert [mistake("option", one, kinds) for one in values] == [""] * len(values)


def test_bounds_may_be_negative() -> None:
    assert Query(ge=-5, le=-1, default=-2).ge == -5


def test_defaults_are_right() -> None:
    """No option has a default that it would refuse."""
    checked = (
        App, Router, Router.run, Router.uploads, Router.forward, App.static, App.room, App.broadcast,
        App.executor, App.mcp, App.rpc, CORS, RateLimit, SecurityHeaders, Cluster,
        Cluster.cache, Cluster.lock, http.Client, http.Retry, http.Limits, redis.Redis,
        assistants.MCPServer.tool, Query, OpenAPI,
    )  # fmt: skip
    for one in checked:
        for name, parameter in inspect.signature(one).parameters.items():
            is_given = parameter.default is not parameter.empty
            if is_given and not isinstance(parameter.default, GenericAlias):  # it makes the default
                kinds = kinds_of(name, parameter.annotation)
                assert not mistake(name, parameter.default, kinds), (one, name)
