"""Subprotocols of WebTransport: a List of Strings (RFC 9651 §3.1) in ``WT-Available-Protocols``.

Tests: ``tests/unit/test_subprotocols.py``.
"""

from __future__ import annotations


def offered_protocols(text: str) -> list[str]:
    """The strings of a list; none if it is malformed or has other items, as if the field were not there."""
    found: list[str] = []
    at = 0
    while True:
        at = _skip(text, at)
        if at == len(text):
            # Behind a comma there is an item.
            return found if not found else []
        item, at = _string(text, at)
        at = _parameters(text, at) if item is not None else None
        if item is None or at is None:
            return []
        found.append(item)
        at = _skip(text, at)
        if at == len(text):
            return found
        if text[at] != ",":
            return []
        at += 1


def quoted(protocol: str) -> str:
    """One of them as ``WT-Protocol`` says it."""
    escaped = protocol.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at


def _string(text: str, at: int) -> tuple[str | None, int]:
    """The string that begins at a place, and the place behind it."""
    if text[at] != '"':
        return None, at
    parts: list[str] = []
    at += 1
    while at < len(text):
        one = text[at]
        if one == '"':
            return "".join(parts), at + 1
        if one == "\\":
            at += 1
            one = text[at : at + 1]
            if one not in ('"', "\\"):
                return None, at
        elif not " " <= one <= "~":
            return None, at
        parts.append(one)
        at += 1
    return None, at


def _parameters(text: str, at: int) -> int | None:
    """The place behind the parameters of an item, which mean nothing here; ``None``: they are malformed."""
    while at < len(text) and text[at] == ";":
        at = _skip(text, at + 1)
        while at < len(text) and text[at] not in ',;" \t':
            at += 1
        if at < len(text) and text[at] == '"':
            value, at = _string(text, at)
            if value is None:
                return None
    return at
