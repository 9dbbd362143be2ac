"""OAuth 2.0 flows in the document, and the form of a request for a token."""

from __future__ import annotations

from typing import Any

from citius import App, Depends, Form
from citius.errors import Unauthorized
from citius.testing import Client
from citius.web.security import PasswordForm, Principal, Requires, oauth2_code, oauth2_password


def check(token: str) -> Principal | None:
    return Principal("ann", frozenset({"read"})) if token == "t" else None


scheme = oauth2_password(check, "/token", scopes={"read": "see items"}, refresh_url="/refresh")
reads = Requires(scheme, "read")
app = App()


@app.post("/token")
def token(form: PasswordForm = Form()) -> Any:
    if form.password != "secret":
        raise Unauthorized("wrong")
    return {"access_token": "t", "token_type": "bearer", "scope": form.scopes}


@app.get("/me")
def me(user: Principal = Depends(reads)) -> str:
    return user.id


FORM = {"content-type": "application/x-www-form-urlencoded"}


def test_a_password_becomes_a_token() -> None:
    with Client(app) as client:
        sent = client.post(
            "/token",
            content=b"grant_type=password&username=ann&password=secret&scope=a+b",
            headers=FORM,
        )
        assert sent.json() == {"access_token": "t", "token_type": "bearer", "scope": ["a", "b"]}
        assert (
            client.post("/token", content=b"username=ann&password=x", headers=FORM).status_code
            == 401
        )
        assert (
            client.post(
                "/token", content=b"grant_type=code&username=a&password=secret", headers=FORM
            ).status_code
            == 422
        )
        assert client.get("/me").headers["www-authenticate"] == "Bearer"
        assert client.get("/me", headers={"authorization": "Bearer t"}).text == "ann"


def test_the_document_has_the_flows() -> None:
    document = app.openapi()
    assert document["components"]["securitySchemes"]["oauth2"] == {
        "type": "oauth2",
        "flows": {
            "password": {
                "tokenUrl": "/token",
                "refreshUrl": "/refresh",
                "scopes": {"read": "see items"},
            }
        },
    }
    assert document["paths"]["/me"]["get"]["security"] == [{"oauth2": ["read"]}]


async def awaited(token: str) -> Principal | None:
    return check(token)


def test_codes_and_checks_that_are_awaited() -> None:
    by_code = oauth2_code(
        awaited, "https://login.example/a", "https://login.example/t", scopes={"a": "b"}
    )
    assert by_code.openapi["flows"] == {
        "authorizationCode": {
            "authorizationUrl": "https://login.example/a",
            "tokenUrl": "https://login.example/t",
            "scopes": {"a": "b"},
        }
    }
    app = App(dependencies=[Depends(by_code)])
    app.get("/")(lambda: "in")
    with Client(app) as client:
        assert client.get("/").status_code == 401
        assert client.get("/", headers={"authorization": "Bearer t"}).text == "in"
