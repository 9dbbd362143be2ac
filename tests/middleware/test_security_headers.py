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
