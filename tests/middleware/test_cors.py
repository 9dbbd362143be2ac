"""CORS by the Fetch standard: preflight, credentials, null, Vary; what hostile origins get."""

from __future__ import annotations

from typing import Any

import pytest
from citius import App, ConfigError, NotFound, Response
from citius.testing import Client, TestResponse
from citius.web.middleware import CORS

SHOP = "https://shop.example"


def ask(
    cors: CORS, origin: str | None = SHOP, path: str = "/", method: str = "GET", **headers: str
) -> TestResponse:
    app = App()
    app.middleware(cors)
    app.get("/")(lambda: "x")
    app.get("/varies")(lambda: Response("x", headers={"vary": "Accept, Origin"}))
    app.get("/fails")(lambda: [][0])

    @app.get("/missing")
    def missing() -> Any:
        raise NotFound

    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if origin is not None:
        sent["origin"] = origin
    with Client(app, raise_errors=False) as client:
        return client.request(method, path, headers=sent)


def preflight(
    cors: CORS, origin: str = SHOP, method: str = "GET", path: str = "/", **headers: str
) -> TestResponse:
    return ask(
        cors, origin, path, "OPTIONS", access_control_request_method=method, **headers
    )  # fmt: skip


def allowed(answer: TestResponse) -> str | None:
    return answer.headers.get("access-control-allow-origin")


@pytest.mark.parametrize("path", ["/", "/missing", "/fails", "/nowhere"])
def test_every_response_names_the_origin(path: str) -> None:
    answer = ask(CORS([SHOP]), path=path)
    assert allowed(answer) == SHOP
    assert "origin" in answer.headers["vary"].split(", ")


@pytest.mark.parametrize(
    "origin",
    [
        "https://shop.example.evil.example", "https://evilshop.example", "http://shop.example",
        "https://shop.example:8443", "null", "", "https://", "https://shop.example/", "*",
    ],
)  # fmt: skip
def test_other_origins_get_nothing(origin: str) -> None:
    answer = ask(CORS([SHOP]), origin)
    assert (answer.status_code, allowed(answer), answer.headers["vary"]) == (200, None, "origin")
    refused = preflight(CORS([SHOP]), origin)
    assert (refused.status_code, allowed(refused)) == (403, None)


def test_no_origin_is_no_cross_origin_request() -> None:
    answer = ask(CORS([SHOP]), None)
    assert (allowed(answer), answer.headers["vary"]) == (None, "origin")
    assert ask(CORS([SHOP]), path="/varies").headers["vary"] == "Accept, Origin"


def test_wildcards() -> None:
    everyone = ask(CORS("*"), "https://any.example")
    assert (allowed(everyone), "vary" in everyone.headers) == ("*", False)
    below = CORS(["https://*.shop.example"])
    assert allowed(ask(below, "https://a.b.shop.example")) == "https://a.b.shop.example"
    for origin in (
        "https://shop.example", "https://.shop.example", "http://a.shop.example",
        "https://evil.example/.shop.example", "https://evil.example?.shop.example",
        "https://evil.example#.shop.example", "https://user@.shop.example",
        "https://evil.example\\.shop.example", "https://a.shop.example:444",
    ):  # fmt: skip
        assert allowed(ask(below, origin)) is None, origin
    assert allowed(ask(CORS(["https://shop.example:443"]), SHOP)) == SHOP


def test_null_is_an_origin_only_where_it_is_listed() -> None:
    assert allowed(ask(CORS(["null"]), "null")) == "null"
    assert allowed(ask(CORS("*"), "null")) == "*"


def test_credentials() -> None:
    answer = ask(CORS([SHOP], credentials=True, expose=["X-Total"]))
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert answer.headers["access-control-expose-headers"] == "x-total"
    other = ask(CORS([SHOP], credentials=True), "https://other.example")
    assert "access-control-allow-credentials" not in other.headers


@pytest.mark.parametrize(
    ("origins", "options", "message"),
    [
        ("*", {"credentials": True}, "credentials go to named origins only"),
        (["null"], {"credentials": True}, "credentials go to named origins only"),
        (["*", SHOP], {}, "stands alone"),
        (["shop.example"], {}, "without a path"),
        ([SHOP + "/"], {}, "without a path"),
        (["https://*shop.example"], {}, "expected an origin"),
        ([SHOP], {"methods": ["GET, POST"]}, "expected a method"),
        ([SHOP], {"headers": ["x\r\ny"]}, "expected a header"),
        ([SHOP + "\n"], {}, "expected an origin"),
        (["https://shop..example"], {}, "expected an origin"),
        (["https://shop.example:x"], {}, "expected an origin"),
        ([SHOP], {"methods": []}, "expected methods"),
        ([SHOP], {"credentials": True, "expose": ["*"]}, "list the fields in expose"),
        ((), {"credentials": True, "origin_regex": "http://.*"}, "matches every origin"),
    ],
)
def test_what_cannot_work_ends_the_start(origins: Any, options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CORS(origins, **options)


def test_preflight() -> None:
    cors = CORS([SHOP], methods=["get", "PUT"], headers=["X-Key"], max_age_s=60)
    answer = preflight(cors, method="PUT", access_control_request_headers="x-key,Content-Type")
    assert (answer.status_code, allowed(answer), answer.content) == (204, SHOP, b"")
    fields = answer.headers
    assert fields["access-control-allow-methods"] == "GET, PUT"
    assert fields["access-control-allow-headers"] == "x-key, content-type"
    assert fields["access-control-max-age"] == "60"
    vary = "origin, access-control-request-method, access-control-request-headers"
    assert fields["vary"] == vary
    assert preflight(cors, path="/nowhere").status_code == 204
    assert preflight(cors, method="DELETE").status_code == 403
    assert preflight(cors, access_control_request_headers="x-other").status_code == 403


def test_preflight_with_any_header_repeats_tokens_only() -> None:
    cors = CORS([SHOP], headers="*")
    answer = preflight(cors, access_control_request_headers="x-a, x-b")
    assert answer.headers["access-control-allow-headers"] == "x-a, x-b"
    hostile = preflight(cors, access_control_request_headers="x-a: 1; evil=<script>")
    assert hostile.status_code == 403
    assert b"script" not in hostile.content


def test_private_networks() -> None:
    asked = {"access_control_request_private_network": "true"}
    name = "access-control-allow-private-network"
    assert name not in preflight(CORS([SHOP]), **asked).headers
    assert preflight(CORS([SHOP], private_network=True), **asked).headers[name] == "true"


def test_options_without_a_preflight_lists_the_methods() -> None:
    answer = ask(CORS([SHOP]), method="OPTIONS")
    assert (answer.status_code, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    assert allowed(answer) == SHOP
    assert ask(CORS([SHOP]), method="OPTIONS", path="/nowhere").status_code == 404


def _preflight(app: App, origin: str, method: str = "GET") -> TestResponse:
    with Client(app) as client:
        return client.request(
            "OPTIONS", "/", headers={"origin": origin, "access-control-request-method": method}
        )


def test_all_methods() -> None:
    """Frameworks 12."""
    app = App()
    app.middleware(CORS(["https://a.example"], methods=["*"], headers=["*"], credentials=True))
    found = _preflight(app, "https://a.example", "PATCH")
    assert (found.status_code, found.headers["access-control-allow-methods"]) == (204, "PATCH")
    for options in ({"methods": ["*", "GET"]}, {"headers": ["*", "x-a"]}):
        with pytest.raises(ConfigError, match="stands alone"):
            CORS(["https://a.example"], **options)


def test_origins_by_an_expression() -> None:
    app = App()
    app.middleware(CORS(origin_regex=r"http://localhost:\d+"))
    assert _preflight(app, "http://localhost:3000").status_code == 204
    for origin in (
        "http://localhost:3000.evil.example",
        "http://localhost:",
        "xhttp://localhost:1",
    ):
        assert _preflight(app, origin).status_code == 403
    assert _preflight(app, "http://localhost:" + "1" * 300).status_code == 403
    with pytest.raises(ConfigError, match="origin_regex"):
        CORS(origin_regex="(")
    with pytest.raises(ConfigError, match="expected origins"):
        CORS()


def test_origins_of_extensions() -> None:
    """Frameworks 13."""
    origins = ["chrome-extension://abcdef", "moz-extension://a-b", "vscode-webview://x"]
    app = App()
    app.middleware(CORS(origins))
    for origin in origins:
        assert _preflight(app, origin).status_code == 204
