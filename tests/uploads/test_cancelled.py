"""What a thread writes to is closed behind it, and no lock of an upload is kept (issue 32 C4)."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from cancelling import at_every_await
from citius.web.uploads.concatenation import joined
from citius.web.uploads.store import (
    BUFFER_BYTES,
    Appender,
    UploadDirectory,
    UploadRecord,
    until_done,
)

OWNER = "me"


def test_a_thread_that_writes_is_waited_for_however_often_the_caller_is_cancelled() -> None:
    """Its client leaves, and the next request for the upload comes."""

    async def main() -> None:
        source, sink = os.pipe()
        appender = Appender(sink, None)
        task = asyncio.ensure_future(appender.add(b"x" * BUFFER_BYTES))  # a pipe has less room
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        for _ in range(20):  # a caller that gives up does so within three
            await asyncio.sleep(0)
        assert not task.done(), "the file would be closed under the thread"
        left = BUFFER_BYTES
        while left:
            left -= len(await asyncio.to_thread(os.read, source, left))
        with pytest.raises(asyncio.CancelledError):
            await task
        for fd in (source, sink):
            os.close(fd)

    asyncio.run(main())


def test_a_thread_that_fails_says_so_unless_the_caller_has_left() -> None:
    async def main() -> None:
        go_on = threading.Event()

        def fail() -> None:
            go_on.wait()
            raise OSError("the disk is full")

        loop = asyncio.get_running_loop()
        tasks = [
            asyncio.ensure_future(until_done(loop.run_in_executor(None, fail))) for _ in range(2)
        ]
        await asyncio.sleep(0)
        tasks[0].cancel()
        go_on.set()
        left, stayed = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(left, asyncio.CancelledError)
        assert isinstance(stayed, OSError)

    asyncio.run(main())


@pytest.mark.parametrize("way", ["append", "join"])
def test_nothing_is_kept(tmp_path: Path, way: str) -> None:
    """Neither locks nor descriptors."""
    store = UploadDirectory(tmp_path / "uploads", 3600, 10, 0)
    store.open()
    whole, part = UploadRecord("", "/files"), UploadRecord("", "/files", length=3)
    for record in (whole, part):
        store.create(OWNER, record)
    store.file(OWNER, part).write_bytes(b"abc")

    async def use() -> None:
        if way == "append":
            async with store.taken(OWNER, whole) as fd:
                await Appender(fd, None).add(b"x" * BUFFER_BYTES)
                async with store.handed(whole):
                    await asyncio.sleep(0)
            return
        store.file(OWNER, whole).write_bytes(b"")
        async with joined(store, OWNER, whole, [part]):
            assert store.file(OWNER, whole).read_bytes() == b"abc"

    async def steps() -> None:
        before = len(os.listdir("/proc/self/fd"))
        async for where in at_every_await(use):
            async with asyncio.timeout(10):
                await use()
            assert len(os.listdir("/proc/self/fd")) <= before + 2, where
            assert not store._handed, where  # pyright: ignore[reportPrivateUsage]
            assert store.file(OWNER, whole).stat().st_size % BUFFER_BYTES in (0, 3), where

    asyncio.run(steps())
