"""Rate limits: what is counted together, what a 429 says, and that workers count together exactly."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from citius import App, ConfigError
from citius.testing import Client
from citius.web.middleware import CORS, RateLimit
from citius.web.middleware.ratelimit import by_client
from rig import Server, application

NAMES = (f"test{n}" for n in itertools.count())


def app_of(limit: RateLimit) -> App:
    app = App()
    app.middleware(CORS("*"))
    app.middleware(limit)
    app.get("/")(lambda: "x")
    app.get("/login")(lambda: "in")
    return app


def by_key(request: Any) -> str:
    return request.header("x-key", "")


def test_a_burst_and_no_more() -> None:
    limit = RateLimit(5, 3600, burst=3, key=by_key, name=next(NAMES))
    with Client(app_of(limit), headers={"origin": "https://shop.example"}) as client:
        answers = [client.get("/", headers={"x-key": "a"}) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        name = answers[0].headers["ratelimit"].partition(";")[0]
        assert answers[0].headers["ratelimit"] == f"{name};r=2;t=720"
        assert answers[0].headers["ratelimit-policy"] == f"{name};q=5;w=3600"
        refused = answers[3]
        assert refused.headers["retry-after"] == "720"
        assert refused.headers["access-control-allow-origin"] == "*"
        assert client.get("/", headers={"x-key": "b"}).status_code == 200
        assert client.get("/").status_code == 200
        assert "ratelimit" not in client.get("/").headers
        assert client.get("/nowhere", headers={"x-key": "a"}).status_code == 429


def test_routes_and_hostile_keys() -> None:
    limit = RateLimit(1, 3600, key=by_key, only="/login", name=next(NAMES))
    with Client(app_of(limit)) as client:
        for key in ("a", "b\xff", "x" * 10_000):
            fields = {"x-key": key}
            statuses = [
                client.get(path, headers=fields).status_code for path in ("/login", "/login", "/")
            ]
            assert statuses == [200, 429, 200]


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"), ("2001:db8:0:1::1", "20010db800000001"),
        ("2001:db8:0:1:ffff::", "20010db800000001"), ("::ffff:192.0.2.1", "192.0.2.1"),
        ("x:y", "x:y"), ("", "unknown"),
    ],
)  # fmt: skip
def test_clients(address: str, key: str) -> None:
    """Hostile 15: a client that says `for=unknown` is counted, too."""

    class Asked:
        client = (address, 1) if address else None

    asked: Any = Asked()
    assert by_client(asked) == key


@pytest.mark.parametrize(
    ("limit", "per_s", "options"),
    [(0, 1, {}), (1, 0, {}), (1, 1, {"burst": 0}), (1, 1e9, {}), (1, 1, {"name": 'a"'})],
)
def test_numbers_that_are_none_end_the_start(limit: int, per_s: float, options: Any) -> None:
    with pytest.raises(ConfigError, match=r"RateLimit \(.*test_ratelimit\.py:\d+\): expected"):
        RateLimit(limit, per_s, **options)


def test_a_limit_for_no_route_ends_the_start() -> None:
    with pytest.raises(ConfigError, match="names no route, and would limit nothing"):
        RateLimit(1, 1, only=[])


def test_a_burst_that_no_bucket_holds_ends_the_start() -> None:
    app = App()
    app.middleware(RateLimit(2**70, 1))
    app.get("/")(lambda: "x")
    with pytest.raises(ConfigError, match="RateLimit default"), Client(app):
        pass


def test_workers_count_together(serve: Callable[..., Server]) -> None:
    """Scale S1: two workers admitted up to twice the limit."""
    server = serve(
        """
        from citius.web.middleware import RateLimit
        app.middleware(RateLimit(50, 3600, key=lambda request: "all"))
        app.get("/")(lambda: str(os.getpid()))
        """,
        "--workers", "2",
    )  # fmt: skip

    def ask(count: int) -> list[tuple[int, bytes]]:
        replies = [server.get("/") for _ in range(count)]
        return [(reply.status, reply.body) for reply in replies]

    with ThreadPoolExecutor(8) as threads:
        answers = [one for some in threads.map(ask, [20] * 8) for one in some]
    good = [body for status, body in answers if status == 200]
    assert (len(answers), len(good)) == (160, 50)
    assert len(set(good)) == 2, "both workers have served"


def test_clients_are_the_same_to_the_extension_and_to_the_function(
    serve: Callable[..., Server],
) -> None:
    server = serve(
        application("limited_clients_app"),
        "--proxy-headers",
    )
    addresses = (
        "203.0.113.7", "203.0.113.80", '"[2001:db8:0:7::1]"', '"[2001:db8:0:8::1]"',
        '"[::ffff:198.51.100.9]"', "198.51.100.10", '"[::1]"', "unknown",
    )  # fmt: skip
    for address in addresses:
        left: list[int] = []
        for path in ("/def", "/function", "/async", "/function"):
            answer = server.get(path, forwarded=f"for={address}")
            left.append(int(answer.headers["ratelimit"].split(";")[1].removeprefix("r=")))
        assert left == [999, 998, 997, 996], address
