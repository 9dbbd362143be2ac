"""The gateway for language models between a Redis and two providers."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis_rig
from rig import wait_for

EXAMPLE = Path(__file__).parents[2] / "examples/token-gateway"
pytestmark = redis_rig.needs_redis


@pytest.fixture(scope="module")
def redis() -> Iterator[redis_rig.Server]:
    server = redis_rig.Server(listens=True)
    try:
        server.start()
        yield server
    finally:
        server.remove()


class Gateway:
    """The gateway, and what it keeps of users."""

    def __init__(self, port: int, redis: redis_rig.Server) -> None:
        from citius.redis import Redis

        self.port, self.redis = port, Redis(redis.url, decode_responses=True).sync

    def user(self, name: str, budget: int = 1000, per_minute: int = 1000) -> str:
        key = f"secret-{name}"
        digest = hashlib.sha256(key.encode()).hexdigest()
        self.redis.hset(
            f"key:{digest}", mapping={"user": name, "budget": budget, "per_minute": per_minute}
        )
        return key

    def spent(self, name: str) -> int:
        return int(self.redis.get(f"spent:{name}") or 0)

    @contextmanager
    def asked(self, key: str, text: str, **options: Any) -> Iterator[http.client.HTTPResponse]:
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **options}
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            with connection.getresponse() as response:
                yield response

    def ask(self, key: str, text: str, **options: Any) -> tuple[int, str, dict[str, str]]:
        with self.asked(key, text, **options) as response:
            fields = {name.lower(): value for name, value in response.getheaders()}
            return response.status, response.read().decode(), fields


@pytest.fixture
def started(serve, redis: redis_rig.Server) -> Iterator[Callable[..., Gateway]]:
    """Providers with these variables, and a gateway to them."""
    made: list[Gateway] = []

    def start(*providers: dict[str, str]) -> Gateway:
        ports = [serve(EXAMPLE / "provider.py", env=env).port for env in providers]
        urls = ",".join(f"http://127.0.0.1:{port}" for port in ports)
        server = serve(EXAMPLE / "app.py", env={"REDIS": redis.url, "PROVIDERS": urls})
        made.append(Gateway(server.port, redis))
        return made[-1]

    yield start
    for gateway in made:
        gateway.redis.close()


def test_usage_is_counted(started: Callable[..., Gateway]) -> None:
    gateway = started({"TOKEN_S": "0.001"})
    key = gateway.user("ada")
    status, text, fields = gateway.ask(key, "one two three", stream=True)
    assert (status, fields["content-type"].partition(";")[0]) == (200, "text/event-stream")
    events = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    deltas = [json.loads(one)["choices"][0]["delta"] for one in events[:-1]]
    assert "".join(delta.get("content", "") for delta in deltas) == "one two three"
    wait_for(lambda: gateway.spent("ada") == 6, "what the stream has cost")
    _, text, _ = gateway.ask(key, "one two")
    assert json.loads(text)["choices"][0]["message"]["content"] == "one two"
    wait_for(lambda: gateway.spent("ada") == 10, "what the other has cost")


def test_keys_limits_budgets(started: Callable[..., Gateway]) -> None:
    gateway = started({})
    assert gateway.ask("no-such-key", "x")[0] == 401
    key = gateway.user("bob", budget=4)
    assert gateway.ask(key, "a b")[0] == 200
    wait_for(lambda: gateway.spent("bob") == 4, "the cost")
    assert gateway.ask(key, "a")[0] == 402
    status, _, fields = gateway.ask(gateway.user("eve", per_minute=0), "x")
    assert status == 429
    assert 0 < int(fields["retry-after"]) <= 60


def test_the_second_provider(started: Callable[..., Gateway]) -> None:
    gateway = started({"FAILS": "1"}, {})
    key = gateway.user("joe")
    for _ in range(8):  # more than open the first one's circuit breaker
        status, text, _ = gateway.ask(key, "hello")
        assert (status, json.loads(text)["model"]) == (200, "m")


def test_no_provider(started: Callable[..., Gateway]) -> None:
    gateway = started({"FAILS": "1"})
    key = gateway.user("kim")
    assert {gateway.ask(key, "hello")[0] for _ in range(8)} == {503}


def test_a_client_that_leaves_pays_for_what_came(started: Callable[..., Gateway]) -> None:
    gateway = started({"TOKEN_S": "0.02"})
    key = gateway.user("lee")
    with gateway.asked(key, "word " * 500, stream=True) as response:
        assert response.readline().startswith(b"data: ")
    wait_for(lambda: 1 <= gateway.spent("lee") < 500, "the cost of what came")
