"""What a hostile server says over HTTP/2, a case a row, and what the client makes of it.

A fault of the connection ends it, one of a stream only the request; both name the rule (``Fault`` of
``citius_h2::client``). What is allowed and looks odd is a response. Sections are those of RFC 9113
unless another one is named.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import hostile_servers
from hostile_servers import CUT, LARGE, WRONG

if TYPE_CHECKING:
    from citius.http import errors


@dataclass(frozen=True)
class Case(hostile_servers.Case):
    """One server of HTTP/2; it sends its settings first.

    Args:
        greets: Its settings come first.
        ends: The server closes the connection behind what it has said; with ``resets`` it resets it.
    """

    greets: bool = True
    ends: bool = False


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame.

    Kinds: 0 DATA, 1 HEADERS, 2 PRIORITY, 3 RST_STREAM, 4 SETTINGS, 5 PUSH_PROMISE, 6 PING, 7 GOAWAY,
    8 WINDOW_UPDATE, 9 CONTINUATION. Flags: 1 END_STREAM or ACK, 4 END_HEADERS, 8 PADDED, 32 PRIORITY.
    """
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def head(*more: bytes, ends: bool = False, status: bytes = b"\x88") -> bytes:
    """The head of a response on the first stream; a status of 200 unless another one is given."""
    return frame(1, 5 if ends else 4, 1, status + b"".join(more))


def field(name: bytes, value: bytes) -> bytes:
    """A field as a literal that is not kept."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def said_status(value: bytes) -> bytes:
    """A status as a literal."""
    return b"\x08" + bytes([len(value)]) + value


def length(value: bytes) -> bytes:
    """A length as a literal."""
    return b"\x0f\x0d" + bytes([len(value)]) + value


def data(content: bytes, *, ends: bool = True) -> bytes:
    """Content of the first stream."""
    return frame(0, 1 if ends else 0, 1, content)


def reset(code: int, stream: int = 1) -> bytes:
    """The end of a stream."""
    return frame(3, 0, stream, struct.pack(">I", code))


def goodbye(last: int, code: int = 0, text: bytes = b"") -> bytes:
    """The end of a connection, whose last stream is this one."""
    return frame(7, 0, 0, struct.pack(">II", last, code) + text)


def setting(number: int, value: int) -> bytes:
    """One setting."""
    return struct.pack(">HI", number, value)


def connection(
    said: bytes, reason: str, error: type[errors.RequestError] = WRONG, **options: bool
) -> Case:
    """A fault that ends the connection."""
    return Case(said, error, reason, **options)  # type: ignore[arg-type]


def stream(
    said: bytes, reason: str, error: type[errors.RequestError] = WRONG, **options: str
) -> Case:
    """A fault that ends the request."""
    return Case(said, error, reason, is_kept=True, **options)  # type: ignore[arg-type]


def good(
    said: bytes, body: bytes = b"", *, is_kept: bool = True, **options: bool | int | str
) -> Case:
    """What is a response."""
    return Case(said, body=body, is_kept=is_kept, **options)  # type: ignore[arg-type]


def cut(said: bytes, reason: str | None = None, **options: bool) -> Case:
    """A connection that ends too early."""
    return Case(said, CUT, reason, ends=True, **options)  # type: ignore[arg-type]


SETTINGS = frame(4, 0, 0)
REPEATED = b"again"
"""The content of all responses but the first: a request of which nothing was done is asked for again."""
END = head(ends=True)

HOSTILE = {
    "no settings": connection(frame(6, 0, 0, bytes(8)), "SettingsMissing", greets=False),
    "HTTP/1.1": connection(
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "FrameSize", greets=False
    ),
    "push": connection(frame(5, 4, 1, b"\0\0\0\2\x88"), "Push"),
    "frame too large": connection(b"\1\0\0\0\0\0\0\0\1", "FrameSize"),
    "unreadable fields": connection(frame(1, 5, 1, b"\xff\xff\xff\xff\xff"), "Compression"),
    "no status": stream(frame(1, 5, 1, b"\0\1x\1y"), "PseudoField"),
    "content before head": stream(frame(0, 1, 1, b"ok"), "MessageOrder"),
    "content of no stream": connection(frame(0, 1, 9, b"ok"), "FrameStream"),
    "length": stream(frame(1, 4, 1, b"\x88\x0f\x0d\x015") + frame(0, 1, 1, b"ok"), "ContentLength"),
    "ping flood": connection(frame(6, 0, 0, bytes(8)) * 3000, "ExcessiveLoad"),
    "settings flood": connection(SETTINGS * 3000, "ExcessiveLoad"),
    "endless section": connection(
        frame(1, 0, 1, b"\x88") + frame(9, 0, 1) * 1000, "SectionTooLong", LARGE
    ),
    "reset": stream(frame(3, 0, 1, b"\0\0\0\2"), "StreamReset"),
    "cut": cut(frame(1, 4, 1, b"\x88") + frame(0, 0, 1, b"half")),
    "window overflow of the connection": connection(
        frame(8, 0, 0, b"\x7f\xff\xff\xff") * 2, "FlowControl"
    ),
    "window overflow of a stream": stream(frame(8, 0, 1, b"\x7f\xff\xff\xff") * 2, "FlowControl"),
    "window of nothing": connection(frame(8, 0, 0, bytes(4)), "WindowIncrement"),
    "window of another size": connection(frame(8, 0, 0, bytes(3)), "FrameSize"),
    "initial window too large": connection(
        frame(4, 0, 0, b"\0\4\xff\xff\xff\xff"), "FlowControl", greets=False
    ),
    "frame size that there is not": connection(
        frame(4, 0, 0, b"\0\5\0\0\0\1"), "SettingsValue", greets=False
    ),
    "push that is allowed": connection(
        frame(4, 0, 0, b"\0\2\0\0\0\2"), "SettingsValue", greets=False
    ),
    "settings of a stream": connection(frame(4, 0, 1), "FrameStream", greets=False),
    "settings in part": connection(frame(4, 0, 0, bytes(5)), "FrameSize", greets=False),
    "acknowledgement with settings": connection(frame(4, 1, 0, bytes(6)), "FrameSize"),
    "ping of a stream": connection(frame(6, 0, 1, bytes(8)), "FrameStream"),
    "ping of another size": connection(frame(6, 0, 0, bytes(7)), "FrameSize"),
    "goodbye of a stream": connection(frame(7, 0, 1, bytes(8)), "FrameStream"),
    "reset of no stream": connection(frame(3, 0, 9, bytes(4)), "FrameStream"),
    "reset of another size": connection(frame(3, 0, 1, bytes(3)), "FrameSize"),
    "priority of another size": connection(frame(2, 0, 1, bytes(4)), "FrameSize"),
    "head of the connection": connection(frame(1, 5, 0, b"\x88"), "FrameStream"),
    "head of a stream of its own": connection(frame(1, 5, 2, b"\x88"), "FrameStream"),
    "content of the connection": connection(frame(0, 1, 0, b"x"), "FrameStream"),
    "continuation of nothing": connection(frame(9, 4, 1, b"\x88"), "FrameOrder"),
    "continuation of another stream": connection(
        frame(1, 0, 1, b"\x88") + frame(9, 4, 3), "FrameOrder"
    ),
    "frame within a section": connection(
        frame(1, 0, 1, b"\x88") + frame(6, 0, 0, bytes(8)), "FrameOrder"
    ),
    "padding longer than its frame": connection(frame(1, 0x0D, 1, b"\x09\x88"), "FramePadding"),
    "index of no field": connection(frame(1, 5, 1, b"\x88\xfe"), "Compression"),
    "index 0": connection(frame(1, 5, 1, b"\x88\x80"), "Compression"),
    "text that is cut": connection(frame(1, 5, 1, b"\x88\0\5x"), "Compression"),
    "Huffman padding": connection(frame(1, 5, 1, b"\x88\0\x81\0\1y"), "Compression"),
    "table larger than agreed": connection(frame(1, 5, 1, b"\x3f\xe1\xff\3\x88"), "Compression"),
    "trailers with a pseudo-field": stream(
        frame(1, 4, 1, b"\x88") + frame(1, 5, 1, b"\x88"), "MessageOrder"
    ),
    "trailers that do not end": stream(
        frame(1, 4, 1, b"\x88") + frame(1, 4, 1, b"\0\1x\1y"), "MessageOrder"
    ),
    "two statuses": stream(frame(1, 5, 1, b"\x88\x89"), "PseudoField"),
    "status behind a field": stream(frame(1, 5, 1, b"\0\1x\1y\x88"), "PseudoField"),
    "status of two digits": stream(frame(1, 5, 1, b"\x08\x0220"), "Status"),
    "pseudo-field of a request": stream(frame(1, 5, 1, b"\x88\x82"), "PseudoField"),
    "field of the connection": stream(
        frame(1, 5, 1, b"\x88\0\x0aconnection\5close"), "FieldOfConnection"
    ),
    "upper case": stream(frame(1, 5, 1, b"\x88\0\1X\1y"), "FieldSyntax"),
    "line break in a value": stream(frame(1, 5, 1, b"\x88\0\1x\3a\r\n"), "FieldSyntax"),
    "switching protocols": stream(frame(1, 4, 1, b"\x08\x03101"), "Status"),
    "interim response that ends": stream(frame(1, 5, 1, b"\x08\x03103"), "Status"),
    "two lengths": stream(
        frame(1, 4, 1, b"\x88\x0f\x0d\x012\x0f\x0d\x013") + frame(0, 1, 1, b"ok"), "ContentLength"
    ),
    "length that is no number": stream(
        frame(1, 4, 1, b"\x88\x0f\x0d\x02+2") + frame(0, 1, 1, b"ok"), "ContentLength"
    ),
    "more than its length": stream(
        frame(1, 4, 1, b"\x88\x0f\x0d\x011") + frame(0, 1, 1, b"ok"), "ContentLength"
    ),
    "interim responses": stream(frame(1, 4, 1, b"\x08\x03103") * 200, "TooManyInterim", LARGE),
    "too many fields": stream(frame(1, 5, 1, b"\x88" + b"\0\1x\1y" * 500), "TooManyFields", LARGE),
    "fields out of the table": stream(
        SETTINGS
        + frame(1, 0, 1, b"\x88\x40\1x\x7f\xa1\x1e" + b"y" * 4000)
        + frame(9, 4, 1, b"\xbe" * 16_000),
        "HeadTooLong",
        LARGE,
    ),
    "empty pieces": connection(frame(1, 4, 1, b"\x88") + frame(0, 0, 1) * 3000, "ExcessiveLoad"),
    "unknown frames": connection(frame(77, 0, 0) * 3000, "ExcessiveLoad"),
    "priorities": connection(frame(2, 0, 1, bytes(5)) * 3000, "ExcessiveLoad"),
    "windows": connection(frame(8, 0, 0, b"\0\0\0\1") * 3000, "ExcessiveLoad"),
    "nothing": cut(b""),
    "body too long": Case(
        head() + data(b"x" * 16_000, ends=False) * 3 + data(b"x" * 16_000),
        LARGE,
        "BodyTooLong",
        is_kept=True,
        streamed=good(b"", b"x" * 64_000),
    ),
}

# What looks like some of them, and is allowed.
ALLOWED = {
    "head": good(frame(1, 5, 1, b"\x88")),
    "settings that are known and unknown": good(
        frame(4, 0, 0, b"\0\4\x7f\xff\xff\xff\0\x99\0\0\0\1") + frame(1, 5, 1, b"\x88"),
        greets=False,
    ),
    "interim responses": good(frame(1, 4, 1, b"\x08\x03103") * 3 + frame(1, 5, 1, b"\x88")),
    "padding and priority": good(frame(1, 0x2D, 1, b"\x02" + bytes(5) + b"\x88\0\0")),
    "section in pieces": good(frame(1, 1, 1) + frame(9, 0, 1, b"\x88") + frame(9, 4, 1)),
    "trailers": good(frame(1, 4, 1, b"\x88") + frame(1, 5, 1, b"\0\1x\1y")),
    "lengths that are the same": good(frame(1, 5, 1, b"\x88\x0f\x0d\x010")),
    "unknown frames": good(frame(77, 0, 0, b"x") * 9 + frame(1, 5, 1, b"\x88")),
}

SETTING_FRAMES = {
    "acknowledgement first": connection(frame(4, 1, 0) + SETTINGS, "SettingsMissing", greets=False),
    "response first": connection(END + SETTINGS, "SettingsMissing", greets=False),
    "push switched on": connection(frame(4, 0, 0, setting(2, 1)), "SettingsValue"),
    "frames of 2^24": connection(frame(4, 0, 0, setting(5, 1 << 24)), "SettingsValue"),
    "windows that grow too large": connection(
        frame(8, 0, 1, struct.pack(">I", 0x7FFF0000)) + frame(4, 0, 0, setting(4, 0x7FFFFFFF)),
        "FlowControl",
    ),
    "acknowledgements without end": connection(frame(4, 1, 0) * 3000, "ExcessiveLoad"),
    "a table of 2^32-1": good(frame(4, 0, 0, setting(1, 0xFFFFFFFF)) + END),
    "no table": good(frame(4, 0, 0, setting(1, 0)) + END),
    "no window": good(frame(4, 0, 0, setting(4, 0)) + END),
    "the same one often": good(frame(4, 0, 0, setting(3, 7) * 2000) + END),
}

ENDS_OF_STREAMS = {
    "cancelled": stream(reset(8), "StreamReset"),
    "no error before the response": stream(reset(0), "StreamReset"),
    "unknown code": stream(reset(0xFFFFFFFF), "StreamReset"),
    "behind the head": stream(head() + reset(2), "StreamReset"),
    "within the content": stream(head() + data(b"half", ends=False) + reset(2), "StreamReset"),
    "HTTP/1.1 required": stream(reset(13), "StreamReset"),
    "of the connection": connection(reset(2, 0), "FrameStream"),
    "of a stream of its own": connection(reset(2, 2), "FrameStream"),
    "without end": connection(reset(2, 1) + reset(2, 1) * 3000, "StreamReset"),
    "refused": good(reset(7), REPEATED),
    # It has begun to answer, and has not guarded what it says then (§8.7).
    "refused behind the head": stream(head() + reset(7), "StreamReset"),
    "behind the end": good(END + reset(0)),
    "twice": stream(reset(2) + reset(2), "StreamReset"),
}

GOODBYES = {
    "too short": connection(frame(7, 0, 0, bytes(7)), "FrameSize"),
    "without end": connection(goodbye(1) * 3000, "ExcessiveLoad"),
    "and the end": cut(goodbye(1, 2)),
    "before the request": good(goodbye(0), REPEATED, is_kept=False),
    "before the request, for an error": good(goodbye(0, 11), REPEATED, is_kept=False),
    "in two steps": good(goodbye(0x7FFFFFFF) + goodbye(0), REPEATED, is_kept=False),
    "that is taken back": good(goodbye(0) + goodbye(1) + END, REPEATED, is_kept=False),
    "before the request, behind its head": connection(head() + goodbye(0), None, CUT),
    "behind the response": good(END + goodbye(1), is_kept=False),
    "before the response": good(goodbye(1) + END, is_kept=False),
    "with a long text": good(goodbye(1, 0, b"x" * 10_000) + END, is_kept=False),
}

SIZES = {
    "content of 16 385 bytes": connection(head() + data(b"x" * 16_385), "FrameSize"),
    "fields of 16 385 bytes": connection(frame(1, 5, 1, b"\x88" * 16_385), "FrameSize"),
    "padding that is all": connection(head() + frame(0, 9, 1, b"\x05abcd"), "FramePadding"),
    "padding without its length": connection(head() + frame(0, 9, 1), "FrameSize"),
    "head with padding without its length": connection(frame(1, 0x0D, 1), "FrameSize"),
    "priority in part": connection(frame(1, 0x25, 1, bytes(4)), "FrameSize"),
    "window in part": connection(frame(8, 0, 1, bytes(2)), "FrameSize"),
    "ping with more": connection(frame(6, 0, 0, bytes(9)), "FrameSize"),
    "reset with more": connection(frame(3, 0, 1, bytes(5)), "FrameSize"),
    "padding": good(head() + frame(0, 9, 1, b"\x05okabcde"), b"ok"),
}

SECTIONS = {
    "continuation behind the end": connection(head() + frame(9, 4, 1), "FrameOrder"),
    "head within a head": connection(frame(1, 0, 1, b"\x88") + head(), "FrameOrder"),
    "content within a head": connection(frame(1, 0, 1, b"\x88") + data(b"x"), "FrameOrder"),
    "unknown frame within a head": connection(
        frame(1, 0, 1, b"\x88") + frame(77, 0, 1), "FrameOrder"
    ),
    "settings within a head": connection(frame(1, 0, 1, b"\x88") + SETTINGS, "FrameOrder"),
    "continuations of 100 KB": connection(
        frame(1, 0, 1, b"\x88") + frame(9, 0, 1, field(b"x", b"y" * 90) * 170) * 7,
        "SectionTooLong",
        LARGE,
    ),
    "integer without end": connection(
        frame(1, 5, 1, b"\xff" + b"\x80" * 20 + b"\1"), "Compression"
    ),
    "size of the table behind a field": connection(frame(1, 5, 1, b"\x88\x20"), "Compression"),
    "index beyond the table": connection(frame(1, 5, 1, b"\x88\xbe"), "Compression"),
    "Huffman's end of text": connection(
        frame(1, 5, 1, b"\x88\0\x84\xff\xff\xff\xff\1y"), "Compression"
    ),
    "no field": stream(frame(1, 5, 1), "PseudoField"),
    "section that empties the table": good(frame(1, 5, 1, b"\x20\x88")),
}

FIELDS = {
    "status of three letters": stream(head(status=said_status(b"abc")), "Status"),
    "status of four digits": stream(head(status=said_status(b"2000")), "Status"),
    "status 99": stream(head(status=said_status(b"099")), "Status"),
    "status 600": stream(head(status=said_status(b"600")), "Status"),
    "empty status": stream(head(status=said_status(b"")), "Status"),
    "space before the status": stream(head(status=said_status(b" 20")), "Status"),
    "status with a line break": stream(head(status=said_status(b"200\r\nx: y")), "Status"),
    "unknown pseudo-field": stream(head(field(b":x", b"y")), "PseudoField"),
    "authority": stream(head(field(b":authority", b"a")), "PseudoField"),
    "protocol": stream(head(field(b":protocol", b"websocket")), "PseudoField"),
    "no name": stream(head(field(b"", b"y")), "FieldSyntax"),
    "space in the name": stream(head(field(b"x y", b"")), "FieldSyntax"),
    "colon in the name": stream(head(field(b"x:", b"")), "FieldSyntax"),
    "line break in the name": stream(head(field(b"x\r\ny", b"")), "FieldSyntax"),
    "NUL in the name": stream(head(field(b"x\0", b"")), "FieldSyntax"),
    "name beyond ASCII": stream(head(field(b"\xe9", b"")), "FieldSyntax"),
    "NUL in the value": stream(head(field(b"x", b"a\0b")), "FieldSyntax"),
    "LF in the value": stream(head(field(b"x", b"a\nb")), "FieldSyntax"),
    "CR in the value": stream(head(field(b"x", b"a\rb")), "FieldSyntax"),
    "space before the value": stream(head(field(b"x", b" a")), "FieldSyntax"),
    "space behind the value": stream(head(field(b"x", b"a ")), "FieldSyntax"),
    "coding": stream(head(field(b"transfer-encoding", b"chunked")), "FieldOfConnection"),
    "keep-alive": stream(head(field(b"keep-alive", b"1")), "FieldOfConnection"),
    "upgrade": stream(head(field(b"upgrade", b"h2c")), "FieldOfConnection"),
    "proxy-connection": stream(head(field(b"proxy-connection", b"close")), "FieldOfConnection"),
    "value in Latin-1": good(head(field(b"x", b"\xe9"), ends=True)),
    "no value": good(head(field(b"x", b""), ends=True)),
}

ORDER = {
    "content behind an interim response": stream(
        head(status=said_status(b"103")) + data(b"x"), "MessageOrder"
    ),
    "trailers first": stream(frame(1, 5, 1, field(b"x", b"y")), "PseudoField"),
    "field of the connection in trailers": stream(
        head() + frame(1, 5, 1, field(b"connection", b"close")), "FieldOfConnection"
    ),
    "upper case in trailers": stream(head() + frame(1, 5, 1, field(b"X", b"y")), "FieldSyntax"),
    "head behind content": stream(head() + data(b"x", ends=False) + head(), "MessageOrder"),
    "content behind the end": good(END + data(b"more")),
    "head behind the end": good(END + head(ends=True)),
    "trailers behind content": good(
        head() + data(b"ok", ends=False) + frame(1, 5, 1, field(b"x", b"y")), b"ok"
    ),
    "end in a frame of its own": good(head() + data(b"ok", ends=False) + data(b""), b"ok"),
}

LENGTHS = {
    "more at the end of the head": stream(head(length(b"5"), ends=True), "ContentLength"),
    "less than it says, and trailers": stream(
        head(length(b"5")) + data(b"ok", ends=False) + frame(1, 5, 1, field(b"x", b"y")),
        "ContentLength",
    ),
    "0 with content": stream(head(length(b"0")) + data(b"ok"), "ContentLength"),
    "minus": stream(head(length(b"-2")) + data(b"ok"), "ContentLength"),
    "list": stream(head(length(b"2, 2")) + data(b"ok"), "ContentLength"),
    "empty": stream(head(length(b"")) + data(b"ok"), "ContentLength"),
    "2^64": stream(head(length(b"18446744073709551616")), "ContentLength"),
    "two that are the same": stream(
        head(length(b"2"), length(b"2")) + data(b"ok"), "ContentLength"
    ),
    "larger than the client takes": Case(
        head(length(b"100000")) + reset(2),
        LARGE,
        "BodyTooLong",
        is_kept=True,
        streamed=stream(b"", "StreamReset"),
    ),
    "204 with a length": stream(head(length(b"2"), status=b"\x89"), "ContentLength"),
    "204 with content": stream(head(status=b"\x89") + data(b"ok"), "ContentLength"),
    "304 with content": stream(head(status=b"\x8b") + data(b"ok"), "ContentLength"),
    "HEAD with content": stream(head() + data(b"ok"), "ContentLength", method="HEAD"),
    "HEAD with content of its length": stream(
        head(length(b"2")) + data(b"ok"), "ContentLength", method="HEAD"
    ),
    "HEAD with a length": good(head(length(b"99999"), ends=True), method="HEAD"),
    "304 with a length": good(head(length(b"99999"), ends=True, status=b"\x8b"), status=304),
    "padding does not count": good(head(length(b"2")) + frame(0, 9, 1, b"\x05okabcde"), b"ok"),
}

PUSHES = {
    "of the connection": connection(frame(5, 4, 0, b"\0\0\0\2\x88"), "Push"),
    "of an odd number": connection(frame(5, 4, 1, b"\0\0\0\3\x88"), "Push"),
    "in part": connection(frame(5, 0, 1, b"\0\0\0\2"), "Push"),
    "behind the head": connection(head() + frame(5, 4, 1, b"\0\0\0\2\x88"), "Push"),
}

CUTS = {
    "within a frame": cut(frame(1, 5, 1, b"\x88")[:-1]),
    "within its size": cut(b"\0"),
    "behind the head": cut(head()),
    "within a head": cut(frame(1, 1, 1, b"\x88")),
    "behind an interim response": cut(head(status=said_status(b"103"))),
    "reset before the response": cut(b"", resets=True),
    "reset behind the head": cut(head(), resets=True),
    "reset within the content": cut(head(length(b"5")) + data(b"ok", ends=False), resets=True),
    "before the settings": cut(b"", greets=False),
}

OTHERS = {
    "another service's place": good(frame(10, 0, 0, b"\0\1ax") + END),
    "origins": good(frame(12, 0, 0, b"\0\1a") + END),
    "a priority of itself": good(frame(2, 0, 1, b"\0\0\0\1\0") + END),
    "answers to pings that were none": good(frame(6, 1, 0, bytes(8)) * 9 + END),
    "answers to pings without end": connection(frame(6, 1, 0, bytes(8)) * 3000, "ExcessiveLoad"),
    "window of a stream that was none": connection(frame(8, 0, 9, b"\0\0\0\1"), "FrameStream"),
    "window of a stream of its own": connection(frame(8, 0, 2, b"\0\0\0\1"), "FrameStream"),
    "windows of a stream that is over": good(END + frame(8, 0, 1, b"\0\0\0\1")),
    "reserved bit of the stream": good(frame(1, 5, 0x80000001, b"\x88")),
}

GROUPS = {
    "": HOSTILE,
    "settings": SETTING_FRAMES,
    "end of a stream": ENDS_OF_STREAMS,
    "goodbye": GOODBYES,
    "size": SIZES,
    "section": SECTIONS,
    "field": FIELDS,
    "order": ORDER,
    "length": LENGTHS,
    "push": PUSHES,
    "cut": CUTS,
    "other": OTHERS,
    "allowed": ALLOWED,
}
CASES = {
    f"{group}: {name}".removeprefix(": "): case
    for group, rows in GROUPS.items()
    for name, case in rows.items()
}
