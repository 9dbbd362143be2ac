"""WT-Available-Protocols is a List of Strings (RFC 9651 §3.1); what is malformed offers nothing."""

from __future__ import annotations

import pytest
from citius.web.realtime.subprotocols import offered_protocols, quoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ('"a"', ["a"]),
        (' "a" ,\t"b"', ["a", "b"]),
        ('"a";q=1;x="y,z", "b"', ["a", "b"]),
        (r'"a\"b\\c"', [r'a"b\c']),
        ('"a",', []),
        (',"a"', []),
        ('"a" "b"', []),
        ("a, b", []),
        ('"a', []),
        ('"a\\n"', []),
        ('"ä"', []),
        ('"a";x="', []),
        ('"a", 7', []),
    ],
)
def test_lists_of_strings(text: str, expected: list[str]) -> None:
    assert offered_protocols(text) == expected


@pytest.mark.parametrize("protocol", ["a", r'a"b\c', ""])
def test_what_is_chosen_is_quoted(protocol: str) -> None:
    assert offered_protocols(quoted(protocol)) == [protocol]
