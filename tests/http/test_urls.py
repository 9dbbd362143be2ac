"""URLs: what is checked is what is called."""

from __future__ import annotations

import random

import pytest
from citius.http import URL, InvalidURL
from citius.http.urls import PLAIN, joined, parse


@pytest.mark.parametrize(
    "base", ["http://a", "http://a/v1", "https://u:p@[::1]:81/x/", "http://a/?"]
)
def test_a_plain_reference_is_joined_as_any_other(base: str) -> None:
    chosen, place = random.Random(base), parse(base)
    path = place.path.rstrip("/")
    for _ in range(2000):
        pieces = ["/", "a", "..", ";", ":", "@", "?", "&", "=", "~", "'", "7", "//"]
        reference = "/" + "".join(chosen.choices(pieces, k=chosen.randint(0, 6)))
        if PLAIN(reference) is not None:
            found = joined(place, reference)
            assert found.target == parse(f"{place.origin}{path}{reference}").target
            assert (found.origin, found.username) == (place.origin, place.username)
            assert found.fragment == ""


@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("http://a.example", "http://a.example", "/"),
        ("HTTPS://A.Example:443/x?y=1#z", "https://a.example", "/x?y=1"),
        ("http://a.example:8080?q", "http://a.example:8080", "/?q"),
        ("http://[::1]:80/x", "http://[::1]", "/x"),
        ("http://[2001:DB8::0:1]:81/", "http://[2001:db8::1]:81", "/"),
        ("http://a/%2F%7e?a%20b", "http://a", "/%2F%7e?a%20b"),
        ("http://a/ü?ü", "http://a", "/%C3%BC?%C3%BC"),
        ("http://a/100%?5%", "http://a", "/100%25?5%25"),
        ("http://a/?", "http://a", "/?"),
        ('http://a/"<>', "http://a", "/%22%3C%3E"),
        ("http://bücher.example/", "http://xn--bcher-kva.example", "/"),
        ("http://faß.example/", "http://xn--fa-hia.example", "/"),
    ],
)
def test_parts(text: str, origin: str, target: str) -> None:
    pytest.importorskip("idna")
    url = parse(text)
    assert (url.origin, url.target) == (origin, target)


def test_user_information_is_not_shown() -> None:
    url = parse("http://user%40x:p%3Aw@a.example/")
    assert (url.username, url.password, url.host) == ("user@x", "p:w", "a.example")
    assert str(url) == "http://a.example/"


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "/x", "ftp://a/", "javascript:alert(1)", "http://", "http:///x", "http://a:0/", "http://a:99999/",
        "http://a:b/", "http://a b/", "http://a/\r\nx: y", "http://a\\@b/", "http://a\t/", "http://a/ b",
        "http://[::1/", "http://[fe80::1%25eth0]/", "http://[1.2.3.4]/", "http://a..b/", "http://a%00.b/",
        "http://a[.b/", "http://" + "a" * 300 + "/", "http://a/" + "x" * 70_000, "//a/b", "http:a",
        "http://a/\ud800",
    ],
)  # fmt: skip
def test_what_is_read_differently_by_programs_is_refused(text: str) -> None:
    with pytest.raises(InvalidURL):
        parse(text)


@pytest.mark.parametrize(
    ("base", "reference", "whole"),
    [
        ("http://a", "x", "http://a/x"),
        ("http://a/v1", "/users", "http://a/v1/users"),
        ("http://a/v1/", "users?q=1", "http://a/v1/users?q=1"),
        ("http://a/v1", "", "http://a/v1"),
        ("http://a/v1", "?q=1", "http://a/v1?q=1"),
        ("http://a/v1?key=2", "/users?q=1", "http://a/v1/users?q=1&key=2"),
        ("http://a/v1", "https://b/x", "https://b/x"),
        ("http://a", "/x?to=http://b/", "http://a/x?to=http://b/"),
        ("http://a", "x:y", "http://a/x:y"),
    ],
)
def test_paths_are_below_the_base(base: str, reference: str, whole: str) -> None:
    assert str(joined(parse(base), reference)) == whole


def test_another_host_is_not_taken_for_a_path() -> None:
    """A path that a user gives must not lead to the user's host."""
    with pytest.raises(InvalidURL, match="expected a path"):
        joined(parse("http://a"), "//evil.example/x")
    with pytest.raises(InvalidURL, match="base_url"):
        joined(None, "/x")


@pytest.mark.parametrize(
    ("location", "whole"),
    [
        ("/y", "http://a/y"),
        ("y", "http://a/b/y"),
        ("../y", "http://a/y"),
        ("../../../y", "http://a/y"),
        ("?z", "http://a/b/c?z"),
        ("//b/x", "http://b/x"),
        ("https://b", "https://b/"),
        ("#g", "http://a/b/c?q#g"),
        ("", "http://a/b/c?q#f"),
        ("/y", "http://a/y#f"),
    ],
)
def test_references_of_redirects(location: str, whole: str) -> None:
    has_fragment = whole.endswith("#f")
    base = parse("http://a/b/c?q#f" if has_fragment else "http://a/b/c?q")
    assert str(base.join(location)) == whole


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "http://a b/", "http://a\r\n/", "gopher://a/"]
)
def test_redirects_to_something_else(location: str) -> None:
    with pytest.raises(InvalidURL):
        parse("http://a/").join(location)


def test_a_url_is_a_value() -> None:
    assert parse("http://a/x") == URL("http", "a", 80, "/x")
    assert hash(parse("http://a/x")) == hash(URL("http", "a", 80, "/x"))
