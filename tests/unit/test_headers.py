"""Headers, MutableHeaders, QueryParams: what is shown, what is kept, what is refused."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from citius.web.binding.headers import Headers, MutableHeaders, QueryParams


class TestHeaders:
    headers = Headers([("accept", "a"), ("x-id", "7"), ("accept", "b")])

    def test_names_have_no_case(self) -> None:
        assert self.headers["X-Id"] == "7"
        assert "ACCEPT" in self.headers
        assert self.headers.get("X-ID") == "7"

    def test_several_lines_are_joined(self) -> None:
        assert self.headers["Accept"] == "a, b"
        assert self.headers.getlist("Accept") == ["a", "b"]

    def test_iterates_over_names_once_in_order(self) -> None:
        assert list(self.headers) == ["accept", "x-id"]
        assert len(self.headers) == 2
        assert self.headers.multi_items() == [("accept", "a"), ("x-id", "7"), ("accept", "b")]

    def test_missing_name(self) -> None:
        with pytest.raises(KeyError):
            self.headers["nope"]
        assert self.headers.getlist("nope") == []
        assert 7 not in self.headers


class TestMutableHeaders:
    def test_is_a_view_over_the_list(self) -> None:
        items = [("Accept", "a")]
        headers = MutableHeaders(items)
        headers["X"] = "1"
        headers.add("x", "2")
        assert items == [("Accept", "a"), ("X", "1"), ("x", "2")]
        headers["x"] = "3"
        assert items == [("Accept", "a"), ("x", "3")]
        del headers["ACCEPT"]
        assert items == [("x", "3")]
        assert headers.multi_items() == items

    def test_deleting_what_is_not_there(self) -> None:
        with pytest.raises(KeyError):
            del MutableHeaders([])["x"]

    @pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "a\0"])
    def test_refuses_values_that_break_the_head(self, value: str) -> None:
        headers = MutableHeaders()
        with pytest.raises(ValueError, match="line break or NUL"):
            headers["x"] = value
        with pytest.raises(ValueError, match="line break or NUL"):
            headers.add("x", value)
        assert headers.multi_items() == []

    @pytest.mark.parametrize("name", ["", "a b", "a:", "ü", "a\r\n"])
    def test_refuses_names_that_are_no_tokens(self, name: str) -> None:
        with pytest.raises(ValueError, match="token"):
            MutableHeaders().add(name, "x")

    def test_set_cookie_with_its_defaults(self) -> None:
        headers = MutableHeaders()
        headers.set_cookie("session", "abc")
        assert headers["set-cookie"] == "session=abc; Path=/; HttpOnly; SameSite=Lax"

    def test_set_cookie_with_everything(self) -> None:
        headers = MutableHeaders()
        headers.set_cookie(
            "a", "b", max_age_s=60, path="/x", domain="example.org", secure=True, http_only=False,
            same_site="none",
        )  # fmt: skip
        assert (
            headers["set-cookie"]
            == "a=b; Path=/x; Domain=example.org; Max-Age=60; Secure; SameSite=None"
        )

    def test_several_cookies_stay_several_lines(self) -> None:
        headers = MutableHeaders()
        headers.set_cookie("a", "1")
        headers.delete_cookie("b")
        assert [line.partition(";")[0] for line in headers.getlist("set-cookie")] == ["a=1", "b="]
        assert "Max-Age=0" in headers.getlist("set-cookie")[1]

    @pytest.mark.parametrize(
        ("name", "value"),
        [("a=b", "x"), ("", "x"), ("a", "x;y"), ("a", "x\r\n"), ("a", 'x"'), ("ä", "x")],
    )
    def test_refuses_cookies_outside_the_grammar(self, name: str, value: str) -> None:
        with pytest.raises(ValueError, match="cookie"):
            MutableHeaders().set_cookie(name, value)

    def test_refuses_an_attribute_that_starts_another(self) -> None:
        with pytest.raises(ValueError, match="semicolon"):
            MutableHeaders().set_cookie("a", "b", path="/; Secure")


class TestQuery:
    query = QueryParams([("a", "1"), ("b", ""), ("a", "2")])

    def test_the_last_value_counts(self) -> None:
        assert self.query["a"] == "2"
        assert self.query.getlist("a") == ["1", "2"]

    def test_names_have_case(self) -> None:
        assert "A" not in self.query
        assert self.query.get("A") is None

    def test_is_a_mapping(self) -> None:
        assert dict(self.query) == {"a": "2", "b": ""}
        assert len(self.query) == 2
        assert self.query.multi_items() == [("a", "1"), ("b", ""), ("a", "2")]


def test_lines_that_are_missing_are_added() -> None:
    headers = MutableHeaders()
    headers.add_missing([("a", "1"), ("b", "2")])
    assert headers.multi_items() == [("a", "1"), ("b", "2")]
    headers = MutableHeaders([("B", "own")])
    headers.add_missing([("a", "1"), ("b", "2")])
    assert headers.multi_items() == [("B", "own"), ("a", "1")]
    assert headers.get("A") == "1"
    assert headers.get("c") is None
    assert headers.get("c", "otherwise") == "otherwise"
    headers.add("a", "3")
    assert headers.get("a") == "1, 3"


class TestCookiesThatClientsKeep:
    """Frameworks 18: what browsers throw away is refused, and deletion has the attributes of the cookie."""

    def test_attributes(self) -> None:
        headers = MutableHeaders([])
        end = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))
        headers.set_cookie("a", "1", expires=end, secure=True, partitioned=True, same_site="none")
        assert headers["set-cookie"] == (
            "a=1; Path=/; Expires=Wed, 02 Jan 2030 02:04:05 GMT; Secure; HttpOnly; SameSite=None; Partitioned"
        )

    @pytest.mark.parametrize("name", ["__Host-session", "__Secure-session", "__host-session"])
    def test_deleted_by_prefix(self, name: str) -> None:
        headers = MutableHeaders([])
        headers.delete_cookie(name)
        assert "Max-Age=0" in headers["set-cookie"]
        assert "Secure" in headers["set-cookie"].split("; ")

    def test_deleted_with_attributes(self) -> None:
        headers = MutableHeaders([])
        headers.delete_cookie("a", partitioned=True, same_site="none")
        assert headers["set-cookie"].endswith("; Secure; HttpOnly; SameSite=None; Partitioned")

    @pytest.mark.parametrize(
        ("name", "attributes"),
        [
            ("__Host-a", {}), ("__Secure-a", {}), ("__Host-a", {"secure": True, "path": "/x"}),
            ("__Host-a", {"secure": True, "domain": "x.example"}), ("a", {"same_site": "none"}),
            ("a", {"partitioned": True}), ("a", {"expires": datetime(2030, 1, 1)}),
            ("a", {"domain": ""}), ("a", {"domain": "https://a.example"}), ("a", {"domain": "a.example:80"}),
            ("a", {"domain": "a b"}), ("a", {"domain": "a..example"}),
        ],
    )  # fmt: skip
    def test_refused(self, name: str, attributes: Any) -> None:
        with pytest.raises(ValueError, match="throw the cookie|time zone"):
            MutableHeaders([]).set_cookie(name, "1", **attributes)

    @pytest.mark.parametrize("same_site", ["strickt", True, "lax; Domain=x.example", ""])
    def test_same_site_that_no_client_knows(self, same_site: Any) -> None:
        """It was sent, and clients took it for another one; ``"None"`` passed without ``Secure``."""
        with pytest.raises(
            ValueError, match=r'same_site of the cookie a is "lax", "strict", "none"'
        ):
            MutableHeaders([]).set_cookie("a", "1", same_site=same_site)
        with pytest.raises(ValueError, match="same_site of the cookie a"):
            MutableHeaders([]).delete_cookie("a", same_site=same_site)

    @pytest.mark.parametrize("same_site", ["Lax", "STRICT", "None"])
    def test_same_site_in_capitals(self, same_site: Any) -> None:
        headers = MutableHeaders([])
        headers.set_cookie("a", "1", same_site=same_site, secure=True)
        headers.delete_cookie("b", same_site=same_site)
        line, gone = headers.getlist("set-cookie")
        assert f"SameSite={same_site.capitalize()}" in line.split("; ")
        assert ("Secure" in gone.split("; ")) == (same_site == "None")
        if same_site == "None":
            with pytest.raises(ValueError, match="demands secure=True"):
                headers.set_cookie("a", "1", same_site=same_site)
