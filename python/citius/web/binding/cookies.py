"""Cookies of a request: the values of its ``Cookie`` fields in, names and values out (RFC 6265 §5.4)."""

from __future__ import annotations


def cookies(values: list[str]) -> dict[str, str]:
    """The cookies of all ``Cookie`` lines; of two with one name the first counts.

    RFC 6265 §5.4 sends the cookie with the longer path first.
    """
    found: dict[str, str] = {}
    for line in values:
        for part in line.split(";"):
            name, separator, value = part.partition("=")
            name = name.strip()
            if not separator or not name or name in found:
                continue
            value = value.strip()
            if len(value) >= 2 and value[0] == value[-1] == '"':
                value = value[1:-1]
            found[name] = value
    return found
