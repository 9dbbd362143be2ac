"""Markers: where a parameter comes from, its other name, its constraints; types taken whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from typing import Annotated, Any

import msgspec
import pytest
from citius import (
    App,
    Body,
    ConfigError,
    Cookie,
    File,
    Form,
    Header,
    Path,
    Query,
    UploadFile,
)
from citius.testing import Client, TestResponse


class Filters(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    tag: list[str] = []


class Trace(msgspec.Struct):
    x_request_id: str
    user_agent: str | None = None


class Visit(msgspec.Struct):
    session: str
    count: int = 0


@dataclass
class Login:
    name: str
    age: int


def ask(
    handler: Callable[..., Any],
    target: str = "/",
    method: str = "GET",
    path: str = "/",
    **more: Any,
) -> TestResponse:
    app = App()
    app.route(path, methods=(method,))(handler)
    with Client(app) as client:
        return client.request(method, target, **more)


def errors(response: TestResponse) -> list[tuple[str, str, str]]:
    assert response.status_code == 422
    return [(one["in"], one["pointer"], one["detail"]) for one in response.json()["errors"]]


MULTIPART = {"content-type": "multipart/form-data; boundary=b"}


def multipart(*parts: tuple[str, str | None, str]) -> bytes:
    text = ""
    for name, filename, data in parts:
        file = f'; filename="{filename}"' if filename else ""
        text += f'--b\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n{data}\r\n'
    return (text + "--b--\r\n").encode()


class TestQuery:
    def test_alias_default_and_constraints(self) -> None:
        def handler(page: Annotated[int, Query(alias="p", ge=1, default=7)]) -> Any:
            return page

        assert ask(handler).json() == 7
        assert ask(handler, "/?p=3").json() == 3
        assert errors(ask(handler, "/?p=0")) == [("query", "#/p", "expected an integer >= 1")]

    def test_a_python_default_and_none(self) -> None:
        def handler(q: Annotated[str | None, Query(min_length=3)] = None) -> Any:
            return {"q": q}

        assert ask(handler).json() == {"q": None}
        assert errors(ask(handler, "/?q=ab")) == [
            ("query", "#/q", "expected a string of length >= 3")
        ]

    def test_constraints_of_lists_hold_for_items(self) -> None:
        def handler(n: Annotated[list[int], Query(ge=0, max_length=2)]) -> Any:
            return n

        assert ask(handler, "/?n=1&n=2").json() == [1, 2]
        assert errors(ask(handler, "/?n=-1&n=x")) == [
            ("query", "#/n/0", "expected an integer >= 0"), ("query", "#/n/1", "expected an integer"),
        ]  # fmt: skip
        assert "length <= 2" in errors(ask(handler, "/?n=1&n=2&n=3"))[0][2]

    def test_a_class_for_a_marker(self) -> None:
        def handler(q: Annotated[str, Query]) -> Any:
            return q

        assert ask(handler, "/?q=x").text == "x"

    def test_a_type_taken_whole(self) -> None:
        def handler(filters: Annotated[Filters, Query()]) -> Any:
            return filters

        assert ask(handler, "/?limit=5&tag=a&tag=b").json() == {"limit": 5, "tag": ["a", "b"]}
        assert errors(ask(handler, "/?limit=0&other=1")) == [
            ("query", "#/limit", "expected an integer >= 1"), ("query", "#/other", "unknown field"),
        ]  # fmt: skip


class TestHeadersAndCookies:
    def test_headers(self) -> None:
        def handler(
            user_agent: Annotated[str, Header()],
            key: Annotated[str, Header(alias="X-Api-Key", pattern="^[a-z]+$")],
            accept: Annotated[list[str], Header()] = [],  # noqa: B006
            depth: Annotated[int, Header()] = 1,
        ) -> Any:
            return [user_agent, key, accept, depth]

        sent = {"user-agent": "me", "x-api-key": "abc", "depth": "2", "accept": "text/html"}
        assert ask(handler, headers=sent).json() == ["me", "abc", ["text/html"], 2]
        assert errors(ask(handler, headers={"x-api-key": "A1", "depth": "x"})) == [
            ("header", "#/user-agent", "missing"),
            ("header", "#/X-Api-Key", "expected a string matching regex '^[a-z]+$'"),
            ("header", "#/depth", "expected an integer"),
        ]

    def test_headers_taken_whole(self) -> None:
        def handler(trace: Annotated[Trace, Header()]) -> Any:
            return trace

        assert ask(handler, headers={"x-request-id": "7"}).json()["x_request_id"] == "7"
        assert errors(ask(handler)) == [("header", "#/x-request-id", "missing")]

    def test_cookies(self) -> None:
        def handler(
            session: Annotated[str, Cookie()], count: Annotated[int, Cookie(alias="n")] = 0
        ) -> Any:
            return [session, count]

        assert ask(handler, headers={"cookie": "session=abc; n=3"}).json() == ["abc", 3]
        assert errors(ask(handler, headers={"cookie": "n=x"})) == [
            ("cookie", "#/session", "missing"), ("cookie", "#/n", "expected an integer"),
        ]  # fmt: skip

    def test_cookies_taken_whole(self) -> None:
        def handler(visit: Annotated[Visit, Cookie()]) -> Any:
            return visit

        sent = {"cookie": "session=abc; count=3; other=1"}
        assert ask(handler, headers=sent).json() == {"session": "abc", "count": 3}


class TestForms:
    def test_fields(self) -> None:
        def handler(name: Annotated[str, Form()], age: Annotated[int, Form(ge=0)] = 0) -> Any:
            return [name, age]

        sent = {"content-type": "application/x-www-form-urlencoded"}
        assert ask(handler, method="POST", content="name=x&age=3", headers=sent).json() == ["x", 3]
        wrong = ask(handler, method="POST", content="age=-1", headers=sent)
        assert errors(wrong) == [
            ("form", "#/name", "missing"), ("form", "#/age", "expected an integer >= 0"),
        ]  # fmt: skip
        assert ask(handler, method="POST", json={}).status_code == 415

    def test_a_form_taken_whole(self) -> None:
        def handler(login: Annotated[Login, Form()]) -> Any:
            return login

        sent = multipart(("name", None, "x"), ("age", None, "3"))
        whole = ask(handler, method="POST", content=sent, headers=MULTIPART)
        assert whole.json() == {"name": "x", "age": 3}
        assert len(errors(ask(handler, method="POST", content=multipart(), headers=MULTIPART))) == 2

    def test_files(self) -> None:
        def handler(
            title: Annotated[str, Form()],
            file: Annotated[UploadFile, File()],
            data: Annotated[bytes, File(alias="raw")],
            more: Annotated[list[UploadFile], File()] = [],  # noqa: B006
            none: Annotated[UploadFile | None, File()] = None,
        ) -> Any:
            return [title, file.filename, data.decode(), len(more), none]

        sent = multipart(
            ("title", None, "t"), ("file", "a.txt", "A"), ("raw", "r", "R"), ("more", "m", ""),
            ("more", "m", ""),
        )  # fmt: skip
        response = ask(handler, method="POST", content=sent, headers=MULTIPART)
        assert response.json() == ["t", "a.txt", "R", 2, None]
        sent = multipart(("file", None, "no file"))
        wrong = ask(handler, method="POST", content=sent, headers=MULTIPART)
        assert [(place, at) for place, at, _ in errors(wrong)] == [
            ("form", "#/title"), ("file", "#/file"), ("file", "#/raw"),
        ]  # fmt: skip


class TestBodies:
    def test_text_plain(self) -> None:
        def handler(value: Annotated[int, Body(ge=1)]) -> Any:
            return value

        def text(value: Annotated[str, Body()]) -> Any:
            return value

        sent = {"content-type": "text/plain"}
        assert ask(handler, method="POST", content="7\n", headers=sent).json() == 7
        assert ask(handler, method="POST", json=7).json() == 7
        assert ask(text, method="POST", content=" é ", headers=sent).text == " é "
        assert errors(ask(handler, method="POST", content="0", headers=sent)) == [
            ("body", "#", "expected an integer >= 1")
        ]
        assert ask(text, method="POST", content=b"\xff", headers=sent).status_code == 400

    def test_a_record_is_no_text(self) -> None:
        def handler(value: Login) -> Any:
            return value

        sent = {"content-type": "text/plain"}
        assert ask(handler, method="POST", content="x", headers=sent).status_code == 415


class TestPath:
    def test_alias_and_constraints(self) -> None:
        def handler(
            item: Annotated[int, Path(alias="id", le=9)],
            part: Annotated[str, Path(max_length=2)],
        ) -> Any:
            return [item, part]

        assert ask(handler, "/7/ab", path="/{id:int}/{part}").json() == [7, "ab"]
        assert errors(ask(handler, "/10/abc", path="/{id:int}/{part}")) == [
            ("path", "#/id", "expected an integer <= 9"),
            ("path", "#/part", "expected a string of length <= 2"),
        ]


class TestRefusedAtStart:
    def check(self, handler: Callable[..., Any], message: str, path: str = "/") -> None:
        with pytest.raises(ConfigError, match=message):
            ask(handler, path=path)

    def test_markers_that_cannot_hold(self) -> None:
        def nowhere(id: Annotated[int, Path()]) -> None: ...
        def elsewhere(id: Annotated[int, Query()]) -> None: ...
        def twice(id: Annotated[int, Query(), Header()]) -> None: ...
        def defaults(id: Annotated[int, Query(default=1)] = 2) -> None: ...
        def odd(id: Annotated[bool, Query(ge=1)]) -> None: ...
        def price(id: Annotated[Decimal, Query(gt=0)]) -> None: ...
        def file(id: Annotated[int, File()]) -> None: ...
        def both(id: Annotated[int, Form()], item: bytes) -> None: ...
        def wrong(id: Annotated[int, Query(default="x")]) -> None: ...

        self.check(nowhere, r"is Path\(\), and the path / has no \{id\}")
        self.check(elsewhere, r"is in the path .* takes it from elsewhere", "/{id}")
        self.check(twice, r"has Query\(\) and Header\(\); it takes one")
        self.check(defaults, "has two defaults")
        self.check(odd, r"test_sources.py:\d+\) has a type that msgspec cannot read: .*`ge`")
        self.check(price, r"numeric type .*; write pydantic\.Field\(…\) for the constraint")
        self.check(file, "annotate it as citius.UploadFile or bytes")
        self.check(both, "as item and as a form for id")
        self.check(wrong, "its default is 'x'")


def test_the_default_of_files_is_no_request_s_alone() -> None:
    app = App()

    @app.post("/")
    def handler(files: Annotated[list[UploadFile], File()] = []) -> int:  # noqa: B006
        files.append(UploadFile(BytesIO(), size=0))
        return len(files)

    with Client(app) as client:
        for _ in range(2):
            response = client.post(
                "/",
                content=multipart(("x", None, "1")),
                headers={"content-type": "multipart/form-data; boundary=b"},
            )
            assert response.text == "1"


def test_a_class_that_is_local_to_a_function() -> None:
    """Frameworks, debatable: what to do is not about ``TYPE_CHECKING`` then."""

    class Item(msgspec.Struct):
        name: str

    app = App()

    @app.post("/")
    def take(item: "Item") -> None: ...  # noqa: UP037

    with pytest.raises(ConfigError, match="local to a function .*: define it in the module, or"):
        Client(app).post("/")
