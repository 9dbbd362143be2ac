"""What a hostile server says over HTTP/1.1, a case a row, and what the client makes of it.

A case ends with an error of a class, and names the rule (``Fault`` of ``citius_h1::client``); or
with a response, where a server does what looks odd and is allowed. Sections are those of RFC 9112
unless another one is named.
"""

from __future__ import annotations

from dataclasses import dataclass

import hostile_servers
from hostile_servers import CUT, LARGE, WRONG


@dataclass(frozen=True)
class Case(hostile_servers.Case):
    """One server of HTTP/1.1.

    Args:
        stays: The server leaves the connection open, and serves what follows on it.
    """

    stays: bool = False


def bad(said: bytes, reason: str, **options: bool | str) -> Case:
    """A rule that is broken, which nothing after it mends."""
    return Case(said, WRONG, reason, **options)  # type: ignore[arg-type]


def large(said: bytes, reason: str) -> Case:
    """More than the client takes."""
    return Case(said, LARGE, reason)


def long(said: bytes, streamed: Case) -> Case:
    """More content than the client takes at once."""
    return Case(said, LARGE, "BodyTooLong", streamed=streamed)


def cut(said: bytes, reason: str, **options: bool | str) -> Case:
    """A connection that ends too early."""
    return Case(said, CUT, reason, **options)  # type: ignore[arg-type]


def good(said: bytes, body: bytes = b"", **options: bool | int | str) -> Case:
    """What is a response."""
    return Case(said, body=body, **options)  # type: ignore[arg-type]


def endless(said: bytes) -> Case:
    """Content of which more is announced than the client takes at once, and less comes."""
    return long(said, cut(b"", "BodyTruncated"))


def kept(said: bytes, body: bytes = b"", **options: bool | int | str) -> Case:
    """What is one, and lets the connection live on."""
    return good(said, body, stays=True, is_kept=True, **options)


LINE = b"HTTP/1.1 200 OK\r\n"
SIZE_2 = b"content-length: 2\r\n"
OK = LINE + SIZE_2 + b"\r\nok"
CHUNKED = LINE + b"transfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def line(first: bytes) -> bytes:
    """A response with this status line."""
    return first + b"\r\n" + SIZE_2 + b"\r\nok"


def fields(*lines: bytes) -> bytes:
    """One with these field lines, which end as they say."""
    return LINE + b"".join(lines) + SIZE_2 + b"\r\nok"


def length(value: bytes, content: bytes = b"ok") -> bytes:
    """One of this length."""
    return LINE + b"content-length:" + value + b"\r\n\r\n" + content


def coded(value: bytes, content: bytes = b"2\r\nok\r\n" + END) -> bytes:
    """One with this transfer coding."""
    return LINE + b"transfer-encoding:" + value + b"\r\n\r\n" + content


def sized(text: bytes) -> bytes:
    """One whose first chunk has this line, which ends as it says."""
    return CHUNKED + text + b"ok\r\n" + END


def trailed(text: bytes) -> bytes:
    """One with this trailer section."""
    return CHUNKED + b"2\r\nok\r\n0\r\n" + text


STATUS_LINES = {
    "no version": bad(line(b"200 OK"), "StatusLineSyntax"),
    "lower case": bad(line(b"http/1.1 200 OK"), "StatusLineSyntax"),
    "another protocol": bad(b"SSH-2.0-OpenSSH\r\n", "StatusLineSyntax"),
    "Icecast": bad(line(b"ICY 200 OK"), "StatusLineSyntax"),
    "HTTP/0.9": bad(b"<html>hello</html>", "StatusLineSyntax"),
    "frames of HTTP/2": bad(b"\0\0\0\4\0\0\0\0\0", "StatusLineSyntax"),
    "an alert of TLS": bad(b"\x15\3\1\0\2\2\x28", "StatusLineSyntax"),
    "HTTP/2.0": bad(line(b"HTTP/2.0 200 OK"), "VersionUnsupported"),
    "HTTP/1.2": bad(line(b"HTTP/1.2 200 OK"), "VersionUnsupported"),
    "HTTP/0.9 in a line": bad(line(b"HTTP/0.9 200 OK"), "VersionUnsupported"),
    "HTTP/1.10": bad(line(b"HTTP/1.10 200 OK"), "StatusLineSyntax"),
    "HTTP/1": bad(line(b"HTTP/1 200 OK"), "StatusLineSyntax"),
    "two spaces": bad(line(b"HTTP/1.1  200 OK"), "StatusLineSyntax"),
    "tab": bad(line(b"HTTP/1.1\t200 OK"), "StatusLineSyntax"),
    "four digits": bad(line(b"HTTP/1.1 2000 OK"), "StatusLineSyntax"),
    "two digits": bad(line(b"HTTP/1.1 20 OK"), "StatusLineSyntax"),
    "no digit": bad(line(b"HTTP/1.1 2x0 OK"), "StatusLineSyntax"),
    "sign": bad(line(b"HTTP/1.1 +20 OK"), "StatusLineSyntax"),
    "no status": bad(line(b"HTTP/1.1"), "StatusLineSyntax"),
    "status 0": bad(line(b"HTTP/1.1 000 No"), "StatusUnknown"),
    "status 99": bad(line(b"HTTP/1.1 099 No"), "StatusUnknown"),
    "status 600": bad(line(b"HTTP/1.1 600 No"), "StatusUnknown"),
    "status 999": bad(line(b"HTTP/1.1 999 No"), "StatusUnknown"),
    "reason that touches": bad(line(b"HTTP/1.1 200OK"), "StatusLineSyntax"),
    "NUL in the reason": bad(line(b"HTTP/1.1 200 O\0K"), "StatusLineSyntax"),
    "CR in the reason": bad(line(b"HTTP/1.1 200 O\rK"), "LineEnding"),
    "LF": bad(b"HTTP/1.1 200 OK\n" + SIZE_2 + b"\r\nok", "LineEnding"),
    "blank line before it": bad(b"\r\n" + OK, "StatusLineSyntax"),
    "space before it": bad(b" " + OK, "StatusLineSyntax"),
    "byte order mark": bad(b"\xef\xbb\xbf" + OK, "StatusLineSyntax"),
    "no reason": kept(line(b"HTTP/1.1 200 "), b"ok"),
    "no reason and no space": kept(line(b"HTTP/1.1 200"), b"ok"),
    "reason in Latin-1 with a tab": kept(line(b"HTTP/1.1 200 O\tK\xe9"), b"ok"),
    "unknown status": kept(line(b"HTTP/1.1 299 Odd"), b"ok", status=299),
}

FIELD_LINES = {
    "folded": bad(fields(b"x: a\r\n b\r\n"), "LineFolding"),
    "folded by a tab": bad(fields(b"x: a\r\n\tb\r\n"), "LineFolding"),
    "folded to hide a length": bad(LINE + b"x: a\r\n content-length: 2\r\n\r\nok", "LineFolding"),
    "space before the first": bad(fields(b" x: a\r\n"), "LineFolding"),
    "space before the colon": bad(fields(b"x : a\r\n"), "FieldNameSyntax"),
    "tab before the colon": bad(fields(b"x\t: a\r\n"), "FieldNameSyntax"),
    "space in the name": bad(fields(b"x y: a\r\n"), "FieldNameSyntax"),
    "no name": bad(fields(b": a\r\n"), "FieldNameSyntax"),
    "no colon": bad(fields(b"x\r\n"), "FieldNameSyntax"),
    "parenthesis in the name": bad(fields(b"x(y): a\r\n"), "FieldNameSyntax"),
    "NUL in the name": bad(fields(b"x\0: a\r\n"), "FieldNameSyntax"),
    "name beyond ASCII": bad(fields(b"\xe9: a\r\n"), "FieldNameSyntax"),
    "NUL in the value": bad(fields(b"x: a\0b\r\n"), "FieldValueSyntax"),
    "DEL in the value": bad(fields(b"x: a\x7fb\r\n"), "FieldValueSyntax"),
    "escape in the value": bad(fields(b"x: a\x1b[2Jb\r\n"), "FieldValueSyntax"),
    "CR in the value": bad(fields(b"x: a\rset-cookie: b\r\n"), "LineEnding"),
    "LF": bad(fields(b"x: a\n"), "LineEnding"),
    "LF that hides a field": bad(fields(b"x: a\nset-cookie: b\r\n"), "LineEnding"),
    "CR CR LF": bad(fields(b"x: a\r\r\n"), "LineEnding"),
    "LF as blank line": bad(LINE + SIZE_2 + b"\nok", "LineEnding"),
    "CR CR LF as blank line": cut(LINE + SIZE_2 + b"\r\r\nok", "HeadTruncated"),
    "too many": large(LINE + b"x: a\r\n" * 200 + b"\r\n", "TooManyFields"),
    "one too long": large(LINE + b"x: " + b"a" * 70_000, "HeadTooLong"),
    "name too long": large(LINE + b"a" * 70_000, "HeadTooLong"),
    "too long in all": large(LINE + (b"x: " + b"a" * 1000 + b"\r\n") * 70, "HeadTooLong"),
    "empty value": kept(fields(b"x:\r\n"), b"ok"),
    "white space around the value": kept(fields(b"x: \t a \t\r\n"), b"ok"),
    "value in Latin-1": kept(fields(b"x: \xe9\r\n"), b"ok"),
    "128 of them": kept(fields(b"x: a\r\n" * 127), b"ok"),
}

LENGTHS = {
    "two that differ": bad(fields(b"content-length: 3\r\n"), "ContentLengthSyntax"),
    "two that are the same": bad(fields(SIZE_2), "ContentLengthSyntax"),
    "list": bad(length(b" 2, 2"), "ContentLengthSyntax"),
    "list that differs": bad(length(b" 2, 3"), "ContentLengthSyntax"),
    "plus": bad(length(b" +2"), "ContentLengthSyntax"),
    "minus": bad(length(b" -2"), "ContentLengthSyntax"),
    "hexadecimal": bad(length(b" 0x2"), "ContentLengthSyntax"),
    "fraction": bad(length(b" 2.0"), "ContentLengthSyntax"),
    "exponent": bad(length(b" 2e0"), "ContentLengthSyntax"),
    "underscore": bad(length(b" 1_0"), "ContentLengthSyntax"),
    "space within": bad(length(b" 1 0"), "ContentLengthSyntax"),
    "parameter": bad(length(b" 2;a"), "ContentLengthSyntax"),
    "empty": bad(length(b""), "ContentLengthSyntax"),
    "digits of another script": bad(length(b" \xd9\xa2"), "ContentLengthSyntax"),
    "with a coding": bad(
        LINE + SIZE_2 + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n" + END, "AmbiguousLength"
    ),
    "behind a coding": bad(
        LINE + b"transfer-encoding: chunked\r\n" + SIZE_2 + b"\r\n2\r\nok\r\n" + END,
        "AmbiguousLength",
    ),
    "2^64": large(length(b" 18446744073709551616"), "BodyTooLong"),
    "2^64-1": endless(length(b" 18446744073709551615")),
    "2^63": endless(length(b" 9223372036854775808")),
    "of a hundred digits": large(length(b" " + b"9" * 100), "BodyTooLong"),
    "more than the client takes": endless(length(b" 100000")),
    "that is not there": cut(length(b" 5"), "BodyTruncated"),
    "that is there in part": cut(length(b" 40000", b"x" * 39_999), "BodyTruncated"),
    "less than there is": good(length(b" 1"), b"o", stays=True),
    "0 before content": good(length(b" 0"), b"", stays=True),
    "zeros before it": kept(length(b" 002"), b"ok"),
    "white space around it": kept(length(b"\t 2 \t"), b"ok"),
    "name in upper case": kept(LINE + b"CONTENT-LENGTH: 2\r\n\r\nok", b"ok"),
    "underscore in the name": good(LINE + b"content_length: 1\r\n\r\nok", b"ok"),
}

CODINGS = {
    "unknown": bad(coded(b" gzip"), "TransferEncoding"),
    "two": bad(coded(b" gzip, chunked"), "TransferEncoding"),
    "chunked twice": bad(coded(b" chunked, chunked"), "TransferEncoding"),
    "chunked in two lines": bad(
        LINE + b"transfer-encoding: chunked\r\n" * 2 + b"\r\n" + END, "TransferEncoding"
    ),
    "chunked not last": bad(coded(b" chunked, gzip"), "TransferEncoding"),
    "identity": bad(coded(b" identity"), "TransferEncoding"),
    "parameter": bad(coded(b" chunked;q=1"), "TransferEncoding"),
    "in quotes": bad(coded(b' "chunked"'), "TransferEncoding"),
    "letter before it": bad(coded(b" xchunked"), "TransferEncoding"),
    "vertical tab before it": bad(coded(b" \x0bchunked"), "FieldValueSyntax"),
    "comma before it": bad(coded(b" ,chunked"), "TransferEncoding"),
    "empty": bad(coded(b""), "TransferEncoding"),
    "in HTTP/1.0": bad(
        b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n" + END,
        "TransferEncodingInHttp10",
    ),
    "space before the colon": bad(
        LINE + b"transfer-encoding : chunked\r\n\r\n" + END, "FieldNameSyntax"
    ),
    "upper case": kept(coded(b" CHUNKED"), b"ok"),
    "white space around it": kept(coded(b" \tchunked\t "), b"ok"),
    "underscore in the name": good(LINE + b"transfer_encoding: chunked\r\n\r\n0", b"0"),
}

CHUNKS = {
    "no size": bad(sized(b"\r\n"), "ChunkSize"),
    "no digit": bad(sized(b"2g\r\n"), "ChunkSize"),
    "prefix": bad(sized(b"0x2\r\n"), "ChunkSize"),
    "plus": bad(sized(b"+2\r\n"), "ChunkSize"),
    "minus": bad(sized(b"-2\r\n"), "ChunkSize"),
    "space before": bad(sized(b" 2\r\n"), "ChunkSize"),
    "space behind": bad(sized(b"2 \r\n"), "ChunkSize"),
    "underscore": bad(sized(b"0_2\r\n"), "ChunkSize"),
    "comma": bad(sized(b"2,0\r\n"), "ChunkSize"),
    "17 digits": bad(sized(b"0" * 16 + b"2\r\n"), "ChunkSize"),
    "LF": bad(sized(b"2\n"), "LineEnding"),
    "CR": bad(sized(b"2\r"), "LineEnding"),
    "2^64-1": endless(sized(b"f" * 16 + b"\r\n")),
    "size that goes round": endless(CHUNKED + b"2\r\nok\r\n" + b"f" * 15 + b"e\r\nok\r\n" + END),
    "more than the client takes": endless(CHUNKED + (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 5),
    "more than its size": bad(CHUNKED + b"1\r\nok\r\n" + END, "ChunkEnd"),
    "less than its size": bad(CHUNKED + b"3\r\nok\r\n" + END, "ChunkEnd"),
    "LF behind": bad(CHUNKED + b"2\r\nok\n" + END, "ChunkEnd"),
    "CR behind": bad(CHUNKED + b"2\r\nok\r" + END, "ChunkEnd"),
    "nothing behind": bad(CHUNKED + b"2\r\nok" + END, "ChunkEnd"),
    "no content": cut(CHUNKED, "BodyTruncated"),
    "half a size": cut(CHUNKED + b"2", "BodyTruncated"),
    "half a line": cut(CHUNKED + b"2\r", "BodyTruncated"),
    "half a chunk": cut(CHUNKED + b"5\r\nok", "BodyTruncated"),
    "no line behind": cut(CHUNKED + b"2\r\nok", "BodyTruncated"),
    "no last chunk": cut(CHUNKED + b"2\r\nok\r\n", "BodyTruncated"),
    "half the last chunk": cut(CHUNKED + b"2\r\nok\r\n0\r\n", "BodyTruncated"),
    "zeros before": kept(sized(b"0002\r\n"), b"ok"),
    "last chunk of zeros": kept(CHUNKED + b"2\r\nok\r\n000\r\n\r\n", b"ok"),
    "upper case": kept(CHUNKED + b"A\r\n0123456789\r\n" + END, b"0123456789"),
    "bytes behind the end": good(CHUNKED + b"2\r\nok\r\n" + END + b"x", b"ok", stays=True),
}

# §7.1.1: chunk-ext = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] ).
EXTENSIONS = {
    "semicolon alone": bad(sized(b"2;\r\n"), "ChunkExtension"),
    "no name": bad(sized(b"2;=b\r\n"), "ChunkExtension"),
    "no value": bad(sized(b"2;a=\r\n"), "ChunkExtension"),
    "two semicolons": bad(sized(b"2;;a\r\n"), "ChunkExtension"),
    "LF": bad(sized(b"2;a=b\n"), "LineEnding"),
    "LF within": bad(sized(b"2;a\nb\r\n"), "LineEnding"),
    "CR within": bad(sized(b"2;a\rb\r\n"), "LineEnding"),
    "CR CR LF": bad(sized(b"2;a\r\r\n"), "LineEnding"),
    "NUL": bad(sized(b"2;a\0\r\n"), "ChunkExtension"),
    "name in quotes": bad(sized(b'2;"a"=b\r\n'), "ChunkExtension"),
    "quotes that do not end": bad(sized(b'2;a="b\r\n'), "ChunkExtension"),
    "line break in quotes": bad(sized(b'2;a="\r\n0\r\n\r\n"\r\n'), "ChunkExtension"),
    "LF in quotes": bad(sized(b'2;a="\n"\r\n'), "LineEnding"),
    "NUL in quotes": bad(sized(b'2;a="\0"\r\n'), "ChunkExtension"),
    "line break behind a backslash": bad(sized(b'2;a="\\\r\n"\r\n'), "ChunkExtension"),
    "text behind quotes": bad(sized(b'2;a="b"c\r\n'), "ChunkExtension"),
    "one too long": bad(sized(b"2;" + b"a" * 20_000 + b"\r\n"), "ChunkExtension"),
    "one without end": bad(CHUNKED + b"2;" + b"a" * 20_000, "ChunkExtension"),
    "too long in all": bad(
        CHUNKED + (b"1;" + b"a" * 1000 + b"\r\nx\r\n") * 20 + END, "ChunkExtension"
    ),
    "of the last chunk": bad(CHUNKED + b"2\r\nok\r\n0;\n\r\n\r\n", "LineEnding"),
    "cut": cut(CHUNKED + b"2;a=", "BodyTruncated"),
    "name": kept(sized(b"2;a\r\n"), b"ok"),
    "value": kept(sized(b"2;a=b\r\n"), b"ok"),
    "several": kept(sized(b"2;a=b;c;d=e\r\n"), b"ok"),
    "value in quotes": kept(sized(b'2;a="b;c"\r\n'), b"ok"),
    "backslash in quotes": kept(sized(b'2;a="\\"\\\\"\r\n'), b"ok"),
    "white space": kept(sized(b"2 ; a = b\r\n"), b"ok"),
    "of the last chunk, allowed": kept(CHUNKED + b"2\r\nok\r\n0;a=b\r\n\r\n", b"ok"),
}

TRAILERS = {
    "a length": bad(trailed(b"content-length: 3\r\n\r\n"), "TrailerForbidden"),
    "a coding": bad(trailed(b"transfer-encoding: chunked\r\n\r\n"), "TrailerForbidden"),
    "folded": bad(trailed(b"x: a\r\n b\r\n\r\n"), "LineFolding"),
    "no colon": bad(trailed(b"x\r\n\r\n"), "FieldNameSyntax"),
    "space before the colon": bad(trailed(b"x : a\r\n\r\n"), "FieldNameSyntax"),
    "NUL": bad(trailed(b"x: \0\r\n\r\n"), "FieldValueSyntax"),
    "LF": bad(trailed(b"x: a\n\r\n"), "LineEnding"),
    "too many": large(trailed(b"x: a\r\n" * 200 + b"\r\n"), "TooManyFields"),
    "too long": large(trailed(b"x: " + b"a" * 70_000), "TrailersTooLong"),
    "half of them": cut(trailed(b"x: a\r\n"), "BodyTruncated"),
    "allowed": kept(trailed(b"x: a\r\n\r\n"), b"ok"),
}

EARLY = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
INTERIM = {
    "without end": large(EARLY * 100, "TooManyInterim"),
    "100 without end": large(b"HTTP/1.1 100 Continue\r\n\r\n" * 100, "TooManyInterim"),
    "switch": bad(
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        "SwitchUnasked",
    ),
    "switch to HTTP/2": bad(
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n" + OK,
        "SwitchUnasked",
    ),
    "length": bad(b"HTTP/1.1 103 Early\r\ncontent-length: 2\r\n\r\nok" + OK, "ContentForbidden"),
    "coding": bad(
        b"HTTP/1.1 103 Early\r\ntransfer-encoding: chunked\r\n\r\n" + END + OK, "ContentForbidden"
    ),
    "content": bad(EARLY + b"ok" + OK, "StatusLineSyntax"),
    "HTTP/1.0": bad(b"HTTP/1.0 103 Early\r\n\r\n" + OK, "InterimInHttp10"),
    "nothing behind": cut(EARLY, "HeadTruncated"),
    "half of one": cut(b"HTTP/1.1 103 Early\r\nlink", "HeadTruncated"),
    "100 that was not asked for": kept(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
    "one": kept(EARLY + OK, b"ok"),
    "64 of them": kept(EARLY * 64 + OK, b"ok"),
    "length of 0": kept(b"HTTP/1.1 103 Early\r\ncontent-length: 0\r\n\r\n" + OK, b"ok"),
    "unknown": kept(b"HTTP/1.1 199 Odd\r\n\r\n" + OK, b"ok"),
}

# RFC 9110 §6.4.1: what has no content.
EMPTY = {
    "204 with a length": bad(b"HTTP/1.1 204 No\r\ncontent-length: 2\r\n\r\nok", "ContentForbidden"),
    "204 with a coding": bad(
        b"HTTP/1.1 204 No\r\ntransfer-encoding: chunked\r\n\r\n" + END, "ContentForbidden"
    ),
    "204 with bytes": good(b"HTTP/1.1 204 No\r\n\r\nok", status=204, stays=True),
    "204 with a response": good(b"HTTP/1.1 204 No\r\n\r\n" + OK, status=204, stays=True),
    "304 with bytes": good(
        b"HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\n\r\nok", status=304, stays=True
    ),
    "HEAD with bytes": good(OK, method="HEAD", stays=True),
    "HEAD with chunks": good(CHUNKED + b"2\r\nok\r\n" + END, method="HEAD", stays=True),
    "HEAD with a length that is none": bad(
        length(b" x", b""), "ContentLengthSyntax", method="HEAD"
    ),
    "HEAD with length and coding": bad(
        LINE + SIZE_2 + b"transfer-encoding: chunked\r\n\r\n", "AmbiguousLength", method="HEAD"
    ),
    "205 with content": kept(b"HTTP/1.1 205 Reset\r\n" + SIZE_2 + b"\r\nok", b"ok", status=205),
    "204": kept(b"HTTP/1.1 204 No\r\n\r\n", status=204),
    "204 with a length of 0": kept(b"HTTP/1.1 204 No\r\ncontent-length: 0\r\n\r\n", status=204),
    "304": kept(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", status=304),
    "HEAD": kept(length(b" 99999999", b""), method="HEAD"),
    "HEAD, chunked": kept(CHUNKED, method="HEAD"),
}

ENDS = {
    "nothing": cut(b"", "ClosedBeforeResponse"),
    "one byte": cut(b"H", "HeadTruncated"),
    "half a status line": cut(b"HTTP/1.1 200", "HeadTruncated"),
    "half a field": cut(LINE + b"content-le", "HeadTruncated"),
    "half a blank line": cut(LINE + SIZE_2 + b"\r", "HeadTruncated"),
    "no content": cut(length(b" 2", b""), "BodyTruncated"),
    "half the content": cut(length(b" 2", b"o"), "BodyTruncated"),
    "reset before the response": cut(b"", "ClosedBeforeResponse", resets=True),
    "reset in the status line": cut(b"HTTP/1.1 200", "HeadTruncated", resets=True),
    "reset in the head": cut(LINE + SIZE_2, "HeadTruncated", resets=True),
    "reset in the content": cut(length(b" 2", b"o"), "BodyTruncated", resets=True),
    "reset in a chunk": cut(CHUNKED + b"5\r\nok", "BodyTruncated", resets=True),
    "reset in content without length": cut(LINE + b"\r\nok", "BodyTruncated", resets=True),
    "reset behind a response": good(OK, b"ok", resets=True),
    "closed behind a response": good(OK, b"ok"),
    "content without length": good(LINE + b"\r\nok", b"ok"),
    "content without length, too long": long(
        LINE + b"\r\n" + b"x" * 60_000, good(b"", b"x" * 60_000)
    ),
    "content of HTTP/1.0": good(b"HTTP/1.0 200 OK\r\n\r\nok", b"ok"),
    "HTTP/1.0 that keeps": kept(
        b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n" + SIZE_2 + b"\r\nok", b"ok"
    ),
    "HTTP/1.0 that does not": good(b"HTTP/1.0 200 OK\r\n" + SIZE_2 + b"\r\nok", b"ok", stays=True),
    "close": good(fields(b"connection: close\r\n"), b"ok", stays=True),
    "close among others": good(fields(b"connection: a, CLOSE\r\n"), b"ok", stays=True),
    "close and keep-alive": good(fields(b"connection: keep-alive, close\r\n"), b"ok", stays=True),
    "an unsolicited response": good(OK + OK, b"ok", stays=True),
}

GROUPS = {
    "status line": STATUS_LINES,
    "field": FIELD_LINES,
    "length": LENGTHS,
    "coding": CODINGS,
    "chunk": CHUNKS,
    "extension": EXTENSIONS,
    "trailers": TRAILERS,
    "interim": INTERIM,
    "without content": EMPTY,
    "end": ENDS,
}
CASES = {f"{group}: {name}": case for group, rows in GROUPS.items() for name, case in rows.items()}
