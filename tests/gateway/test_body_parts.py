"""Several parameters of one body: members of its object, JSON in fields of a form (frameworks 20)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import msgspec
import pydantic
import pytest
from citius import App, Body, ConfigError, Depends, File, Form, UploadFile
from citius.testing import Client

JSON = {"content-type": "application/json"}
MSGPACK = {"content-type": "application/msgpack"}
MULTIPART = {"content-type": "multipart/form-data; boundary=b"}


class Item(msgspec.Struct):
    name: str
    price: float = 0.0


class User(pydantic.BaseModel):
    id: int


def serve(handler: Callable[..., Any]) -> Client:
    app = App()
    app.post("/")(handler)
    return Client(app)


def errors(response: Any) -> list[tuple[str, str, str]]:
    assert response.status_code == 422, response.text
    return [(one["in"], one["pointer"], one["detail"]) for one in response.json()["errors"]]


def two(item: Item, user: User, note: str = Body("none"), day: date | None = Body(None)) -> Any:
    return [item, user.id, note, day]


class TestMembersOfAnObject:
    def test_json_and_messagepack(self) -> None:
        sent = {
            "item": {"name": "a", "price": 2},
            "user": {"id": 3},
            "day": "2026-01-02",
            "other": 1,
        }
        wanted = [{"name": "a", "price": 2.0}, 3, "none", "2026-01-02"]
        with serve(two) as client:
            assert client.post("/", json=sent).json() == wanted
            packed = msgspec.msgpack.encode(sent)
            assert client.post("/", content=packed, headers=MSGPACK).json() == wanted

    def test_all_mistakes_have_their_places(self) -> None:
        with serve(two) as client:
            assert errors(client.post("/", json={"item": {"price": "x"}, "user": {"id": "y"}})) == [
                ("body", "#/item/name", "missing"),
                ("body", "#/item/price", "expected a number, got a string"),
                (
                    "body",
                    "#/user/id",
                    "input should be a valid integer, unable to parse string as an integer",
                ),
            ]
            assert errors(client.post("/", json={"item": {"name": "a"}})) == [
                ("body", "#/user", "missing")
            ]
            assert errors(client.post("/"))[0] == ("body", "#/item", "missing")
            assert errors(client.post("/", json=[1]))[0][:2] == ("body", "#")

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b'{"item":', b'{"item": {"name": "\xff"}}', b'{"item": 1e999}', b"[1e999]"],
    )
    def test_what_is_no_json(self, content: bytes) -> None:
        with serve(two) as client:
            assert client.post("/", content=content, headers=JSON).status_code in (400, 422)
            assert client.post("/", content=content, headers=MSGPACK).status_code in (400, 422)
            assert (
                client.post("/", content=content, headers={"content-type": "a/b"}).status_code
                == 415
            )

    def test_one_that_is_embedded(self) -> None:
        def handler(item: Item = Body(embed=True)) -> Any:
            return item

        with serve(handler) as client:
            assert client.post("/", json={"item": {"name": "a"}}).json() == {
                "name": "a",
                "price": 0.0,
            }
            assert client.post("/", json={"name": "a"}).status_code == 422

    def test_one_alone_is_the_body(self) -> None:
        def handler(item: Item = Body()) -> Any:
            return item

        with serve(handler) as client:
            assert client.post("/", json={"name": "a"}).status_code == 200

    def test_in_a_dependency(self) -> None:
        def of_user(user: User) -> int:
            return user.id

        def handler(item: Item = Body(alias="thing"), id: int = Depends(of_user)) -> Any:
            return [item.name, id]

        with serve(handler) as client:
            sent = {"thing": {"name": "a"}, "user": {"id": 3}}
            assert client.post("/", json=sent).json() == ["a", 3]

    def test_the_same_in_handler_and_dependency(self) -> None:
        def of_item(item: Item) -> str:
            return item.name

        def handler(item: Item, name: str = Depends(of_item)) -> Any:
            return [item.name, name]

        with serve(handler) as client:
            assert client.post("/", json={"name": "a"}).json() == ["a", "a"]

    def test_two_types_of_one_name_are_refused(self) -> None:
        def of_item(item: User) -> int:
            return item.id

        def handler(item: Item, id: int = Depends(of_item)) -> Any: ...

        with pytest.raises(ConfigError, match="take item of the body with two types"):
            serve(handler)

    def test_documentation(self) -> None:
        app = App()
        app.post("/")(two)
        body = app.openapi()["paths"]["/"]["post"]["requestBody"]
        schema = body["content"]["application/json"]["schema"]
        assert schema["required"] == ["item", "user"]
        assert set(schema["properties"]) == {"item", "user", "note", "day"}
        assert schema["properties"]["item"]["$ref"].endswith("/Item")


class TestFieldsOfForms:
    def part(self, name: str, data: str, more: str = "", kind: str = "") -> str:
        kind = f"\r\nContent-Type: {kind}" if kind else ""
        return f'--b\r\nContent-Disposition: form-data; name="{name}"{more}{kind}\r\n\r\n{data}\r\n'

    def send(self, client: Client, *parts: str) -> Any:
        return client.post("/", content=("".join(parts) + "--b--\r\n").encode(), headers=MULTIPART)

    def handler(
        self,
        item: Item,
        user: User | None,
        file: UploadFile = File(),
        title: str = Form(),
        note: str = Body("-"),
    ) -> Any:
        return [item, user and user.id, file.data.decode(), title, note]

    @pytest.mark.parametrize(
        ("more", "kind"),
        [("", ""), ("", "application/json"), ('; filename="i.json"', "application/json")],
        ids=["text", "json", "file"],
    )
    def test_json_beside_a_file(self, more: str, kind: str) -> None:
        file, title = self.part("file", "data", '; filename="f"'), self.part("title", "T")
        with serve(self.handler) as client:
            sent = self.send(client, self.part("item", '{"name": "a"}', more, kind), file, title,
                             self.part("user", "null"), self.part("note", "text"))  # fmt: skip
            assert sent.json() == [{"name": "a", "price": 0.0}, None, "data", "T", "text"]

    def test_mistakes(self) -> None:
        with serve(self.handler) as client:
            sent = self.send(client, self.part("item", "{"), self.part("user", '{"id": "x"}'))
            assert {one[:2] for one in errors(sent)} == {
                ("form", "#/item"), ("form", "#/user/id"), ("file", "#/file"), ("form", "#/title"),
            }  # fmt: skip

    def test_documentation(self) -> None:
        app = App()
        app.post("/")(self.handler)
        content = app.openapi()["paths"]["/"]["post"]["requestBody"]["content"]
        assert list(content) == ["multipart/form-data"]
        properties = content["multipart/form-data"]["schema"]["properties"]
        assert set(properties) == {"item", "user", "file", "title", "note"}
