"""JSON Web Tokens: good ones, and the attacks of RFC 8725 §2."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
from citius import App, ConfigError
from citius.testing import Client
from citius.web.security import JWT, Authenticate, Requires, principal

jwt = pytest.importorskip("jwt", reason="PyJWT is not installed")

SECRET = "a secret of thirty-two bytes, or more"
# When the tests were collected; they may run much later.
NOW = int(time.time())
CLAIMS: dict[str, Any] = {"sub": "me", "exp": NOW + 100_000, "scope": "read write"}


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def raw(header: dict[str, Any], claims: dict[str, Any], key: bytes | None = None) -> str:
    """A token that no library would make."""
    signed = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
    mac = b"" if key is None else hmac.digest(key, signed.encode(), hashlib.sha256)
    return f"{signed}.{b64(mac)}"


def status(scheme: JWT | Requires, token: str) -> int:
    app = App()
    app.middleware(Authenticate(scheme))
    app.get("/")(lambda request: principal(request).id)
    with Client(app, raise_errors=False) as client:
        return client.get("/", headers={"authorization": f"Bearer {token}"}).status_code


def test_a_good_token() -> None:
    scheme = JWT(SECRET, algorithms=["HS256"])
    assert status(scheme, jwt.encode(CLAIMS, SECRET, "HS256")) == 200
    assert status(Requires(scheme, "write"), jwt.encode(CLAIMS, SECRET, "HS256")) == 200
    assert status(Requires(scheme, "admin"), jwt.encode(CLAIMS, SECRET, "HS256")) == 403
    listed = JWT(SECRET, algorithms=["HS256"], scopes_claim="permissions")
    token = jwt.encode({**CLAIMS, "permissions": ["a", 1, None]}, SECRET, "HS256")
    assert status(Requires(listed, "a"), token) == 200
    assert scheme.openapi == {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


def test_tokens_that_are_no_good() -> None:
    scheme = JWT(SECRET, algorithms=["HS256"], audience="shop", issuer="us")
    good = {**CLAIMS, "aud": "shop", "iss": "us"}
    token = jwt.encode(good, SECRET, "HS256")
    assert status(scheme, token) == 200
    head, body, signature = token.split(".")
    other = b64(json.dumps({**good, "sub": "admin"}).encode())
    bad = {
        "alg none": raw({"alg": "none"}, good),
        "alg NONE": raw({"alg": "NONE"}, good),
        "alg none, signed": raw({"alg": "none"}, good, SECRET.encode()),
        "no alg": raw({}, good, SECRET.encode()),
        "another alg": jwt.encode(good, SECRET * 2, "HS512"),
        "wrong key": jwt.encode(good, SECRET[::-1], "HS256"),
        "other claims": f"{head}.{other}.{signature}",
        "no signature": f"{head}.{body}.",
        "two parts": f"{head}.{body}",
        "expired": jwt.encode({**good, "exp": NOW - 1}, SECRET, "HS256"),
        "not yet": jwt.encode({**good, "nbf": NOW + 100_000}, SECRET, "HS256"),
        "exp is text": raw({"alg": "HS256"}, {**good, "exp": "never"}, SECRET.encode()),
        "no exp": raw({"alg": "HS256"}, {"sub": "me", "aud": "shop", "iss": "us"}, SECRET.encode()),
        "no sub": jwt.encode({k: v for k, v in good.items() if k != "sub"}, SECRET, "HS256"),
        "other audience": jwt.encode({**good, "aud": "other"}, SECRET, "HS256"),
        "other issuer": jwt.encode({**good, "iss": "them"}, SECRET, "HS256"),
        "own key": raw(
            {"alg": "HS256", "jwk": {"kty": "oct", "k": b64(b"x" * 32)}}, good, b"x" * 32
        ),
        "critical": raw({"alg": "HS256", "crit": ["x"], "x": 1}, good, SECRET.encode()),
        "no JSON": "eA.eA.eA",
        "nothing": "..",
        "header without end": f"{b64(b'[' * 11_000)}.e30.",
        "exp beyond numbers": raw({"alg": "HS256"}, {**good, "exp": float("inf")}, SECRET.encode()),
        "deep": raw({"alg": "HS256"}, {"sub": "me"}, SECRET.encode()) + "." * 1000,
    }
    for name, one in bad.items():
        assert status(scheme, one) == 401, name


def test_a_public_key_is_no_secret() -> None:
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import serialization

    private = rsa.generate_private_key(65537, 2048)
    public: bytes = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    scheme = JWT(public, algorithms=["RS256"])
    assert status(scheme, jwt.encode(CLAIMS, private, "RS256")) == 200
    assert status(scheme, raw({"alg": "HS256"}, CLAIMS, public)) == 401

    def keys(header: Mapping[str, Any]) -> Any:
        return public if header.get("kid") == "one" else None

    chosen = JWT(keys, algorithms=["RS256"])
    assert status(chosen, jwt.encode(CLAIMS, private, "RS256", headers={"kid": "one"})) == 200
    assert status(chosen, jwt.encode(CLAIMS, private, "RS256", headers={"kid": "../etc"})) == 401
    assert status(chosen, jwt.encode(CLAIMS, private, "RS256")) == 401


def test_keys_that_cannot_be_had_are_no_fault_of_the_token() -> None:
    reasons: list[Exception] = []

    def keys(header: Mapping[str, Any]) -> Any:
        raise reasons[-1]

    scheme = JWT(keys, algorithms=["HS256"])
    token = jwt.encode(CLAIMS, SECRET, "HS256")
    for error, expected in (
        (jwt.PyJWKClientError("no key of this name"), 401),
        (jwt.InvalidTokenError("its header is none of ours"), 401),
        (jwt.PyJWKClientConnectionError("nothing listens there"), 500),
        (ValueError("no JSON"), 500),
        (TypeError("a mistake of the application"), 500),
    ):
        reasons.append(error)
        assert status(scheme, token) == expected, error


@pytest.mark.parametrize("secret", ["", b"", "short", b"x" * 31])
def test_a_secret_that_a_function_chooses_is_long(secret: str | bytes) -> None:
    """Of an empty secret, of a variable that is not set, anyone could make tokens."""
    token = raw({"alg": "HS256"}, CLAIMS, secret.encode() if isinstance(secret, str) else secret)
    assert status(JWT(lambda header: secret, algorithms=["HS256"]), token) == 500
    key = jwt.PyJWK({"kty": "oct", "k": b64(b"x" * 31), "alg": "HS256"})
    token = raw({"alg": "HS256"}, CLAIMS, b"x" * 31)
    assert status(JWT(lambda header: key, algorithms=["HS256"]), token) == 500


@pytest.mark.parametrize("names", [["RS265"], ["hs256", "RS256"]])
def test_an_algorithm_that_does_not_exist_ends_the_start(names: list[str]) -> None:
    with pytest.raises(
        ConfigError, match=rf"test_jwt.py:\d+\): there is no algorithm '{names[0]}'"
    ):
        JWT(lambda header: None, algorithms=names)


def test_a_header_without_end_is_a_bad_token_with_any_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PyJWT 2.12 lets the error of the parser through."""

    def too_deep(*_args: object, **_options: object) -> None:
        raise RecursionError

    monkeypatch.setattr(jwt, "decode", too_deep)
    monkeypatch.setattr(jwt, "get_unverified_header", too_deep)
    token = jwt.encode(CLAIMS, SECRET, "HS256")
    assert status(JWT(SECRET, algorithms=["HS256"]), token) == 401
    assert status(JWT(lambda header: SECRET, algorithms=["HS256"]), token) == 401


@pytest.mark.parametrize(
    ("key", "algorithms", "message"),
    [
        (SECRET, [], "expected algorithms"),
        (SECRET, ["none"], "no signature"),
        (SECRET, ["HS256", "None"], "no signature"),
        (SECRET, ["HS256", "RS256"], "two kinds"),
        ("short", ["HS256"], "at least 32 bytes"),
    ],
)
def test_what_is_not_safe_ends_the_start(key: str, algorithms: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        JWT(key, algorithms=algorithms)


@pytest.mark.parametrize("options", [{"audience": ""}, {"audience": []}, {"issuer": ""}])
def test_what_no_token_has_ends_the_start(options: Any) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=rf"JWT \(.*test_jwt.py:\d+\): {name} is empty.*variable"):
        JWT(SECRET, algorithms=["HS256"], **options)
