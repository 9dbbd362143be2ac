"""Security headers: defaults, what a handler says itself, nonces, policies that cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from citius import App, ConfigError, Request, Response
from citius.testing import Client
from citius.web.middleware import NONCE, SecurityHeaders, csp_nonce


def app_of(middleware: SecurityHeaders) -> App:
    app = App()
    app.middleware(middleware)
    app.get("/")(lambda: "x")
    app.get("/own")(lambda: Response("x", headers={"X-Frame-Options": "SAMEORIGIN"}))

    @app.get("/page")
    def page(request: Request) -> Response:
        assert csp_nonce(request) == csp_nonce(request)
        return Response(csp_nonce(request))

    @app.get("/late")
    def late(request: Request) -> Any:
        def pieces() -> Any:
            try:
                csp_nonce(request)
            except RuntimeError as error:
                yield str(error)

        return pieces()

    return app


def test_defaults() -> None:
    with Client(app_of(SecurityHeaders())) as client:
        for path in ("/", "/nowhere"):
            fields = client.get(path).headers
            assert fields["x-content-type-options"] == "nosniff"
            assert fields["x-frame-options"] == "DENY"
            assert "strict-transport-security" not in fields  # this is no TLS
            policy = fields["content-security-policy"]
            assert "script-src 'self';" in policy
            assert "nonce" not in policy
        assert client.get("/own").headers.getlist("x-frame-options") == ["SAMEORIGIN"]


def test_nonces_differ_and_are_in_the_policy() -> None:
    with Client(app_of(SecurityHeaders())) as client:
        answers = [client.get("/page") for _ in range(3)]
        for answer in answers:
            assert (
                f"script-src 'self' 'nonce-{answer.text}'"
                in (answer.headers["content-security-policy"])
            )
        assert len({answer.text for answer in answers}) == 3
        assert len(answers[0].text) >= 22
        assert "call csp_nonce(request) in the handler" in client.get("/late").text


def test_a_directive_of_a_nonce_alone_allows_nothing_without_one() -> None:
    with Client(
        app_of(SecurityHeaders(csp={"script-src": [NONCE]}, csp_report_only=True))
    ) as client:
        policy = client.get("/").headers["content-security-policy-report-only"]
        assert policy == "script-src 'none'"


def test_what_is_switched_off_is_not_sent() -> None:
    bare = SecurityHeaders(
        csp=None, frame_options=None, referrer_policy=None, opener_policy=None, resource_policy=None
    )
    with Client(app_of(bare)) as client:
        names = set(client.get("/").headers)
    assert {"x-content-type-options"} == {name for name in names if "-" in name} - {
        "content-type", "content-length",
    }  # fmt: skip


@pytest.mark.parametrize("source", ["a; script-src *", "a,b", "a\r\nx: y", "a b", ""])
def test_a_source_cannot_end_its_directive(source: str) -> None:
    with pytest.raises(ConfigError, match="would end it"):
        SecurityHeaders(csp={"default-src": [source]})


def test_sources_as_one_text_are_one_source() -> None:
    with Client(app_of(SecurityHeaders(csp={"img-src": "'self'"}))) as client:
        assert client.get("/").headers["content-security-policy"] == "img-src 'self'"


@pytest.mark.parametrize("source", ["self", "None", "unsafe-inline", "sha256-abc", "nonce-abc"])
def test_a_keyword_without_quotes_would_be_a_host(source: str) -> None:
    with pytest.raises(ConfigError, match="is a host to browsers; the keyword has quotes"):
        SecurityHeaders(csp={"default-src": [source]})


@pytest.mark.parametrize(
    "options",
    [
        {"frame_options": "ALLOW-FROM https://a.example"}, {"referrer_policy": "none"},
        {"referrer_policy": "origin, never"}, {"opener_policy": "same-site"}, {"resource_policy": "*"},
    ],
)  # fmt: skip
def test_values_that_browsers_ignore(options: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"SecurityHeaders \(.*test_security_headers\.py:\d+\): browsers ignore"
    ):
        SecurityHeaders(**options)


def test_policies_for_older_and_newer_browsers() -> None:
    policy = "no-referrer, strict-origin-when-cross-origin"
    with Client(
        app_of(SecurityHeaders(referrer_policy=policy, frame_options="sameorigin"))
    ) as client:
        assert client.get("/").headers["referrer-policy"] == policy
