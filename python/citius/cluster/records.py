"""What nodes send one another over an engine: batches of messages of one room, authenticated.

```text
"CTS" version  sender (8)  first number (8)  messages (4)   { 2 * length + is text (4)  message } …   MAC (16)
```

The MAC is BLAKE2b, keyed with the secret of the cluster, over the name of the channel and all before it. So a
batch of another application, of another version, of another channel, or of a client of the engine that does
not know the secret is not one of ours: :class:`ForeignRecord`, whose ``reason`` is counted. Bytes in, values
out; nothing here waits. Tests: ``tests/cluster/test_records.py``.
"""

from __future__ import annotations

import hmac
import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION: Final = 1
SENDER_BYTES: Final = 8
MESSAGES_MAX: Final = 4096
"""Messages of one batch. Origin: what one turn of a busy worker sends to one room. More: several batches."""
RECORD_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of one batch that are read at all; the engines refuse larger ones long before."""

_MAGIC: Final = b"CTS"
_HEAD: Final = struct.Struct(f"!3sB{SENDER_BYTES}sQI")
_LENGTH: Final = struct.Struct("!I")
_MAC_BYTES: Final = 16
_PERSON: Final = b"citius-cluster"

Reason = Literal["not ours", "version", "key", "malformed"]


class Message(NamedTuple):
    """One message of a room."""

    is_text: bool
    payload: bytes


class Record(NamedTuple):
    """A batch of one sender; its messages are numbered from ``first`` on.

    One without messages says that those before ``first`` were lost where they were sent.
    """

    sender: bytes
    first: int
    messages: tuple[Message, ...]


class ForeignRecord(Exception):
    """Bytes on a channel of ours that no node of this cluster has sent."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


def key_of(secret: str | bytes | None, application: str) -> bytes:
    """The key of the MAC. Without a secret it tells applications apart, but protects from no attacker."""
    given = secret.encode() if isinstance(secret, str) else secret or b""
    return blake2b(given, key=application.encode()[:64], person=_PERSON, digest_size=32).digest()


def pack(key: bytes, channel: bytes, record: Record) -> bytes:
    """The bytes of a record for a channel."""
    pieces = [_HEAD.pack(_MAGIC, VERSION, record.sender, record.first, len(record.messages))]
    for is_text, payload in record.messages:
        pieces.append(_LENGTH.pack(len(payload) << 1 | is_text))
        pieces.append(payload)
    body = b"".join(pieces)
    return body + _mac(key, channel, body)


def unpack(key: bytes, channel: bytes, data: bytes) -> Record:
    """The record that ``data`` is.

    Raises:
        ForeignRecord: It is none of this cluster.
    """
    if len(data) < _HEAD.size + _MAC_BYTES or data[:3] != _MAGIC or len(data) > RECORD_BYTES_MAX:
        raise ForeignRecord("not ours")
    _, version, sender, first, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise ForeignRecord("version")
    end = len(data) - _MAC_BYTES
    if not hmac.compare_digest(_mac(key, channel, data[:end]), data[end:]):
        raise ForeignRecord("key")
    return Record(sender, first, _messages(data, count, end))


def _messages(data: bytes, count: int, end: int) -> tuple[Message, ...]:
    # Who knows the key could still be a node with a defect; such a record is refused as a whole.
    messages: list[Message] = []
    at = _HEAD.size
    for _ in range(count):
        if at + _LENGTH.size > end:
            raise ForeignRecord("malformed")
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        messages.append(Message(bool(length & 1), data[at : at + (length >> 1)]))
        at += length >> 1
    if at != end:
        raise ForeignRecord("malformed")
    return tuple(messages)


def _mac(key: bytes, channel: bytes, body: bytes) -> bytes:
    mac = blake2b(_LENGTH.pack(len(channel)), key=key, person=_PERSON, digest_size=_MAC_BYTES)
    mac.update(channel)
    mac.update(body)
    return mac.digest()


def split(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Batches of at most ``MESSAGES_MAX``."""
    return [messages[at : at + MESSAGES_MAX] for at in range(0, len(messages), MESSAGES_MAX)]
