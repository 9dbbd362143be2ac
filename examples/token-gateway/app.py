"""A gateway for language models: keys, budgets and limits per user in Redis, and a second provider.

    PROVIDERS=http://127.0.0.1:9001,http://127.0.0.1:9002 citius serve examples/token-gateway/app.py

A key is a hash in Redis, under the SHA-256 of the key: ``HSET key:… user ada budget 100000 per_minute 60``.
Each event of a stream passes as it comes; what it has cost is counted from its last one. A provider that
refuses, fails or does not answer is replaced by the next one, as long as nothing has been sent.
"""

import hashlib
import os
import time
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
from citius import App, Header, HTTPError, Request, Response, TooManyRequests, Unauthorized
from citius.http import CircuitBreaker, Client, Timeout
from citius.http.gateway import forward
from citius.redis import Redis

redis = Redis(os.environ.get("REDIS", "redis://127.0.0.1"), decode_responses=True)
providers = [
    Client(
        url,
        name=f"provider-{number}",
        timeout=Timeout(connect=2, read=60, pool=2),
        breaker=CircuitBreaker(failures=5, open_s=10),
        headers={
            "authorization": f"Bearer {os.environ.get('PROVIDER_KEY', '')}",
            "accept-encoding": "identity",  # the events are read here
        },
    )
    for number, url in enumerate(os.environ.get("PROVIDERS", "http://127.0.0.1:9001").split(","), 1)
]


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for part in (redis, *providers):
            await stack.enter_async_context(part)
        yield


app = App(lifespan=lifespan)


class Usage(msgspec.Struct):
    total_tokens: int = 0


class HasUsage(msgspec.Struct):
    usage: Usage | None = None


class User(msgspec.Struct):
    name: str
    budget: int
    per_minute: int


# Counts a request in its minute, and says what has been spent: one exchange with Redis.
admit = redis.register_script(
    "local n = redis.call('INCR', KEYS[1]) "
    "if n == 1 then redis.call('EXPIRE', KEYS[1], 120) end "
    "return {n, tonumber(redis.call('GET', KEYS[2]) or '0')}"
)


async def user_of(authorization: str) -> User:
    """The user of a key, if there is budget left and the minute has room."""
    digest = hashlib.sha256(authorization.removeprefix("Bearer ").encode()).hexdigest()
    found = await redis.hgetall(f"key:{digest}")
    if not found:
        raise Unauthorized("no such key", headers={"www-authenticate": "Bearer"})
    user = User(found["user"], int(found["budget"]), int(found["per_minute"]))
    minute = int(time.time() // 60)
    calls, spent = await admit(keys=[f"calls:{user.name}:{minute}", f"spent:{user.name}"])
    if calls > user.per_minute:
        left_s = 60 - int(time.time() % 60)
        raise TooManyRequests("too many calls in a minute", headers={"retry-after": str(left_s)})
    if spent >= user.budget:
        raise HTTPError(402, f"the budget of {user.budget} tokens is spent")
    return user


@app.post("/v1/chat/completions")
async def complete(request: Request, authorization: str = Header("")) -> Response:
    user = await user_of(authorization)
    response = await first_that_answers(request)
    response.body = metered(response.body, user)
    return response


async def first_that_answers(request: Request) -> Response:
    """The response of the first provider that gives one; the last one's, whatever it is."""
    failure: HTTPError | None = None
    for provider in providers:
        try:
            response = await forward(request, provider)
        except HTTPError as error:
            failure = error
            continue
        refuses = response.status_code >= 500 or response.status_code == 429
        if not refuses or provider is providers[-1]:
            return response
        response.body.close()
    raise failure or HTTPError(502, "no provider answers")


async def metered(pieces: AsyncIterable[bytes], user: User) -> AsyncIterator[bytes]:
    """The content as it comes; what it has cost is the user's, also if the client leaves."""
    meter = Meter()
    try:
        async for piece in pieces:
            meter.take(piece)
            yield piece
    finally:
        if tokens := meter.tokens():
            await redis.incr(f"spent:{user.name}", tokens)


class Meter:
    """What a response has cost: what its last event says, or its events if it was not read to its end."""

    def __init__(self) -> None:
        self._rest = b""
        self._events = self._said = 0

    def take(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._events += 1
                if b'"usage"' in line:
                    self._read(line[5:])

    def _read(self, text: bytes) -> None:
        try:
            usage = msgspec.json.decode(text, type=HasUsage).usage
        except msgspec.DecodeError:
            return
        self._said = usage.total_tokens if usage is not None else self._said

    def tokens(self) -> int:
        if self._rest.startswith(b"{"):  # no stream
            self._read(self._rest)
        return self._said or self._events
