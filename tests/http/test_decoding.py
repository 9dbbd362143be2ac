"""Content codings: what comes out, and how much of it at most."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from citius.http import Client, DecodingError, Limits, TooLarge
from citius.http.decoding import HIDDEN_BYTES, HIDDEN_RATIO, Chain, whole
from citius.testing.http import MockReply, MockTransport

TEXT = b"The same sentence again and again. " * 1000


def brotli(data: bytes) -> bytes:
    return pytest.importorskip("brotli").compress(data)


def zstd(data: bytes) -> bytes:
    return pytest.importorskip("backports.zstd").compress(data)


def deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return made.compress(data) + made.flush()


CODINGS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress), ("x-gzip", gzip.compress), ("GZIP", gzip.compress), ("deflate", zlib.compress),
    ("deflate", deflate), ("br", brotli), ("zstd", zstd), ("identity", bytes),
    ("gzip, br", lambda data: brotli(gzip.compress(data))),
    ("gzip", lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:])),
]  # fmt: skip


def test_a_window_of_zstd_is_bounded() -> None:
    """RFC 9659: some bytes could ask for 128 MiB of memory, for each response."""
    module = pytest.importorskip("backports.zstd")
    options = {module.CompressionParameter.window_log: 23}
    data = bytes(1 << 24)
    assert whole("zstd", module.compress(data, options=options), 1 << 25) == data
    options[module.CompressionParameter.window_log] = 27
    compressor = module.ZstdCompressor(options=options)
    sent = compressor.compress(data) + compressor.flush()
    with pytest.raises(DecodingError, match="memory"):
        whole("zstd", sent, 1 << 25)


@pytest.mark.parametrize(("coding", "compress"), CODINGS)
async def test_codings(
    mock: MockTransport, coding: str, compress: Callable[[bytes], bytes]
) -> None:
    data = compress(TEXT)
    mock.add("GET", "*", headers={"content-encoding": coding}, content=data)
    client = Client("http://a", transport=mock)
    assert (await client.get("/")).content == TEXT
    for size in (1, 7, 1000):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        mock.add("GET", "*", headers={"content-encoding": coding}, content=pieces)
        async with client.stream("GET", "/") as response:
            assert b"".join([piece async for piece in response.iter_bytes()]) == TEXT


async def test_codings_in_several_lines_are_one_list(mock: MockTransport) -> None:
    fields = [("content-encoding", "deflate"), ("Content-Encoding", "gzip")]
    mock.add("GET", "*", headers=fields, content=gzip.compress(zlib.compress(TEXT)))
    client = Client("http://a", transport=mock)
    assert (await client.get("/")).content == TEXT
    async with client.stream("GET", "/") as response:
        assert await response.read() == TEXT
    mock.add("GET", "*", headers=[("content-encoding", "gzip")] * 4, content=gzip.compress(TEXT))
    with pytest.raises(DecodingError, match="4 content codings"):
        assert (await client.get("/")).content


@pytest.mark.parametrize(("coding", "compress"), CODINGS[:7])
async def test_what_is_cut_or_wrong(
    mock: MockTransport, coding: str, compress: Callable[[bytes], bytes]
) -> None:
    client = Client("http://a", transport=mock)
    for data in (compress(TEXT)[:-9], b"no such coding at all"):
        mock.add("GET", "*", headers={"content-encoding": coding}, content=data)
        with pytest.raises(DecodingError, match=coding.lower().removeprefix("x-")):
            (await client.get("/")).content
        async with client.stream("GET", "/") as response:
            with pytest.raises(DecodingError):
                await response.read()


@pytest.mark.parametrize(
    "compress", [gzip.compress, lambda data: gzip.compress(gzip.compress(data)), brotli, zstd]
)
async def test_a_bomb_is_bounded(mock: MockTransport, compress: Callable[[bytes], bytes]) -> None:
    """100 MB in some hundred kilobytes or less: neither reading it whole nor piece by piece fills memory."""
    coding = {brotli: "br", zstd: "zstd"}.get(compress, "gzip")
    bomb = compress(bytes(100_000_000))
    if coding == "gzip" and not gzip.decompress(bomb).startswith(b"\0"):
        coding = "gzip, gzip"
    mock.add("GET", "*", headers={"content-encoding": coding}, content=bomb)
    client = Client("http://a", transport=mock, limits=Limits(body_bytes_max=1_000_000))
    response = await client.get("/")
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match="body_bytes_max"):
            response.content
        async with client.stream("GET", "/") as streamed:
            with pytest.raises(TooLarge):
                await streamed.read()
        async with client.stream("GET", "/") as streamed:
            longest = max([len(piece) async for piece in streamed.iter_bytes()])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert longest <= 1024 * 1024
    assert peak < 20_000_000


async def test_codings_that_are_not_known(mock: MockTransport) -> None:
    client = Client("http://a", transport=mock)
    mock.add("GET", "*", headers={"content-encoding": "compress"}, content=b"x")
    with pytest.raises(DecodingError, match="'compress' is not known"):
        (await client.get("/")).content
    mock.add("GET", "*", headers={"content-encoding": "gzip, " * 50 + "gzip"}, content=b"x")
    with pytest.raises(DecodingError, match="51 content codings"):
        (await client.get("/")).content


async def test_what_is_asked_for(mock: MockTransport) -> None:
    mock.add("*", "*")
    await Client(transport=mock).get("http://a/")
    assert mock.calls[-1].headers["accept-encoding"].startswith("gzip, deflate")
    await Client(transport=mock, decompress=False).get("http://a/")
    assert mock.calls[-1].headers["accept-encoding"] == "identity"


async def test_no_content_is_in_no_coding(mock: MockTransport) -> None:
    mock.add("HEAD", "*", MockReply(headers={"content-encoding": "gzip"}))
    response = await Client(transport=mock).head("http://a/")
    assert response.content == b""


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("zstd", zstd)])
def test_members_take_time_that_grows_with_their_number(
    coding: str, compress: Callable[[bytes], bytes]
) -> None:
    """Sixteen times for four times the members where what follows each is copied."""
    member = compress(b"")

    def cpu_s(count: int) -> float:
        began = time.process_time()
        assert list(Chain(coding).decode(member * count)) == []
        return time.process_time() - began

    assert min(cpu_s(32_000) / cpu_s(8_000) for _ in range(3)) < 9


EMPTY = gzip.compress(b"", mtime=0)
STORED = b"\0\0\0\xff\xff"  # a block of deflate without content
HOLLOW: dict[str, tuple[str, bytes]] = {
    "members": ("gzip, gzip", gzip.compress(EMPTY * 100_000)),
    "members, three codings": ("gzip, gzip, gzip", gzip.compress(gzip.compress(EMPTY * 100_000))),
    "blocks": ("deflate, gzip", gzip.compress(STORED * 4_000_000)),
}


@pytest.mark.parametrize("name", HOLLOW)
async def test_what_comes_to_nothing_is_not_worked_on_for_long(
    mock: MockTransport, name: str
) -> None:
    """97 KB of it kept the event loop for nine seconds: nothing came out, so no limit was reached."""
    coding, data = HOLLOW[name]
    limit = 100_000_000
    chain = Chain(coding)
    with pytest.raises(DecodingError, match="next to nothing"):
        for _ in chain.decode(data):
            raise AssertionError
    assert chain.hidden < HIDDEN_BYTES + HIDDEN_RATIO * len(data) + (1 << 20)
    with pytest.raises((DecodingError, TooLarge)):
        whole(coding, data, limit)
    mock.add("*", "*", MockReply(headers={"content-encoding": coding}, content=data))
    async with Client("http://a", transport=mock).stream("GET", "/") as response:
        with pytest.raises(DecodingError, match="next to nothing"):
            await response.read()


def test_many_members_are_read_where_they_came_as_such() -> None:
    """A stream of events may have a member for each; they cost no more than they have bytes."""
    one = gzip.compress(b"data: x\n\n", mtime=0)
    chain = Chain("gzip")
    for _ in range(30):
        assert b"".join(chain.decode(one * 1000)) == b"data: x\n\n" * 1000
        assert b"".join(chain.decode(EMPTY * 1000)) == b""
    chain.end()
    assert whole("gzip", one * 1000, 10_000) == b"data: x\n\n" * 1000
    # A whole one that takes seconds is refused.
    with pytest.raises(TooLarge):
        whole("gzip", EMPTY * 20_000, 10_000)
    # Two codings that are meant are read.
    text = bytes(range(256)) * 100_000
    assert whole("gzip, gzip", gzip.compress(gzip.compress(text)), len(text)) == text
