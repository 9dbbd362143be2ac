"""Runs of several kinds; with CLUSTER they are kept in a Redis."""

# pyright: basic

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator

import msgspec
from citius import App, Depends, Event, HTTPError, Request, Unauthorized
from citius.cluster import Cluster

url = os.environ.get("CLUSTER")
app = App(cluster=Cluster(url, application="runs") if url else None)
ended: list[str] = []
SLOW_S = float(os.environ.get("SLOW_S", "0.02"))


class Question(msgspec.Struct):
    text: str
    count: int = 3


class Token(msgspec.Struct):
    text: str
    number: int


def user(request: Request) -> str:
    found = request.header("x-user")
    if found is None:
        raise Unauthorized("who are you?")
    return found


async def session() -> AsyncIterator[str]:
    try:
        yield "session"
    finally:
        ended.append("session")


@app.get("/pid")
async def pid():
    return os.getpid()


@app.get("/ended")
async def what_ended():
    return ended


@app.run("/chats/{chat}/answers", owner=user, owner_runs_max=3, grace_s=30, runs_max=20)
async def answer(chat: int, body: Question, at: str = Depends(session)) -> AsyncIterator[Token]:
    """The answer to a question."""
    try:
        for number in range(body.count):
            yield Token(f"{at} {chat} {body.text}", number)
            await asyncio.sleep(SLOW_S)
    finally:
        ended.append("answer")


@app.run("/counts", grace_s=None)
async def count(n: int = 5, pause_s: float = 0.01, pid: bool = False):
    if pid:
        yield Event({"pid": os.getpid()}, "worker")
    for number in range(n):
        yield str(number)
        await asyncio.sleep(pause_s)


@app.run("/fast", history=10)
async def fast(n: int = 100):
    for number in range(n):
        yield f"event {number}\nsecond line"


@app.run("/hasty", grace_s=0.5)
async def hasty():
    try:
        while True:
            yield "tick"
            await asyncio.sleep(0.05)
    finally:
        ended.append("hasty")


@app.run("/short", lasts_s=1, keep_s=2)
async def short():
    while True:
        yield "tick"
        await asyncio.sleep(0.05)


@app.run("/silent", lasts_s=60)
async def silent():
    await asyncio.sleep(3600)
    yield ""


@app.run("/stubborn", lasts_s=60)
async def stubborn():
    while True:
        try:
            yield "tick"
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("stubborn")


@app.run("/raises/{what}")
async def raises(what: str):
    yield "first"
    if what == "http":
        raise HTTPError(402, "no money")
    if what == "id":
        yield Event("x", id="own")
    if what == "end":
        yield Event("x", "end")
    if what == "cancelled":
        raise asyncio.CancelledError
    raise ValueError("a secret")


@app.run("/threads")
def threads(n: int = 3) -> Iterator[str]:
    for _ in range(n):
        time.sleep(0.01)
        yield threading.current_thread().name
