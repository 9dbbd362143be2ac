"""Types of pydantic: models, annotations, what only TypeAdapter knows. Classes of attrs and TypedDicts."""

import subprocess
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from ipaddress import IPv4Address
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin

import attrs
import msgspec
import pydantic
import pytest
from citius import (
    App,
    Body,
    ConfigError,
    Cookie,
    Depends,
    Form,
    Header,
    Query,
    Response,
    WebSocket,
)
from citius.testing import Client, TestResponse
from openapi_spec_validator import validate
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, RootModel, computed_field
from rig import application
from typing_extensions import TypedDict


class Address(BaseModel):
    street: str
    number: int = Field(ge=1)


class User(BaseModel):
    name: str = Field(min_length=1)
    born: date | None = None
    homes: list[Address] = []


class Secret(User):
    password: str = "secret"


class Aliased(BaseModel):
    model_config = ConfigDict(extra="forbid")

    first_name: str = Field(alias="firstName")

    @computed_field
    @property
    def shout(self) -> str:
        return self.first_name.upper()


class Filters(BaseModel):
    limit: int = Field(10, ge=1)
    tag: list[str] = []
    page: int | None = None


class Trace(BaseModel):
    x_request_id: int


class Names(RootModel[list[str]]):
    pass


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]


@dataclass
class Holder:
    user: User
    count: int = 0


class Keyed(TypedDict):
    user: User


@attrs.define
class Point:
    x: int
    y: int = 0


class Plain(TypedDict):
    name: str
    age: int


Positive = Annotated[int, Field(gt=0)]


def ask(handler: Any, target: str = "/", *, path: str = "/", **more: Any) -> TestResponse:
    app = App()
    app.route(path, methods=("GET", "POST"))(handler)
    with Client(app, raise_errors=False) as client:
        sends = more.keys() & {"json", "form", "content", "msgpack"}
        return client.request("POST" if sends else "GET", target, **more)


def is_in(part: Any, whole: Any) -> bool:
    """Whether all that was sent has come back, defaults besides."""
    if isinstance(part, dict):
        return all(is_in(one, whole[name]) for name, one in part.items())
    if isinstance(part, list):
        return all(map(is_in, part, whole))
    return part == whole


def mistakes(response: TestResponse) -> list[tuple[str, str, str]]:
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/problem+json"
    return [(one["in"], one["pointer"], one["detail"]) for one in response.json()["errors"]]


class TestBodies:
    def test_a_model(self) -> None:
        def handler(user: User) -> Any:
            assert isinstance(user, User)
            return [user.name, str(user.born), [home.number for home in user.homes]]

        sent = {"name": "Ann", "born": "2000-01-02", "homes": [{"street": "a", "number": 3}]}
        expected = ["Ann", "2000-01-02", [3]]
        assert ask(handler, json=sent).json() == expected
        assert ask(handler, msgpack=sent).json() == expected

    def test_every_mistake_has_its_place(self) -> None:
        def handler(user: User) -> None: ...

        sent = {"name": "", "homes": [{"street": 1, "number": 0}, {}]}
        for body in ({"json": sent}, {"msgpack": sent}):
            assert mistakes(ask(handler, **body)) == [
                ("body", "#/name", "string should have at least 1 character"),
                ("body", "#/homes/0/street", "input should be a valid string"),
                ("body", "#/homes/0/number", "input should be greater than or equal to 1"),
                ("body", "#/homes/1/street", "missing"),
                ("body", "#/homes/1/number", "missing"),
            ]

    def test_places_in_unions_are_those_of_the_body(self) -> None:
        def handler(either: dict[str, int | Address]) -> None: ...

        pointers = [one[1] for one in mistakes(ask(handler, json={"a/b": {"street": "x"}}))]
        assert pointers == ["#/a~1b", "#/a~1b/number"]

    def test_broken_bodies(self) -> None:
        def handler(user: User) -> None: ...

        for kind, content, status in (
            ("application/json", b"{", 400),
            ("application/msgpack", b"\xc1", 400),
            ("text/plain", b"x", 415),
        ):
            answer = ask(handler, content=content, headers={"content-type": kind})
            assert answer.status_code == status

    def test_aliases_and_unknown_fields(self) -> None:
        def handler(one: Aliased) -> Aliased:
            return one

        assert ask(handler, json={"firstName": "a"}).json() == {"firstName": "a", "shout": "A"}
        assert mistakes(ask(handler, json={"first_name": "a"})) == [
            ("body", "#/firstName", "missing"), ("body", "#/first_name", "unknown field"),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("annotation", "sent"),
        [
            (list[User], [{"name": "a"}]),
            (User | None, {"name": "a"}),
            (Page[User], {"items": [{"name": "a"}]}),
            (Names, ["a"]),
            (Holder, {"user": {"name": "a"}}),
            (Keyed, {"user": {"name": "a"}}),
            (dict[str, User], {"a": {"name": "a"}}),
            (Annotated[list[Positive], Body()], [1]),
            (Annotated[list[IPv4Address], Body()], ["127.0.0.1"]),
        ],
    )
    def test_types_with_models_in_them(self, annotation: Any, sent: Any) -> None:
        def handler(value: Any) -> Any:
            return value

        # A marker stands at parameters alone.
        returned = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
        handler.__annotations__ = {"value": annotation, "return": returned}
        answer = ask(handler, json=sent)
        assert answer.status_code == 200
        assert is_in(sent, answer.json())
        assert mistakes(ask(handler, json=3))

    def test_without_a_body_the_default_holds(self) -> None:
        default = User(name="nobody")

        def handler(user: User = default) -> str:
            user.homes.append(Address(street="a", number=1))
            return f"{user.name} {len(user.homes)}"

        assert ask(handler).text == "nobody 1"
        assert ask(handler).text == "nobody 1"

    def test_read_by_the_handler(self) -> None:
        from citius import Request

        def handler(request: Request) -> str:
            return request.json(User).name

        assert ask(handler, json={"name": "a"}).text == "a"
        assert mistakes(ask(handler, json={})) == [("body", "#/name", "missing")]


class TestParameters:
    def test_single_values(self) -> None:
        def handler(
            id: Positive,
            url: HttpUrl,
            ips: list[IPv4Address],
            many: Annotated[list[Positive], Query(alias="m")],
            n: Annotated[Positive, Query(le=9)] = 1,
        ) -> Any:
            return [id, str(url), [str(ip) for ip in ips], many, n]

        target = "/3?url=http://a/&ips=1.2.3.4&ips=::1&m=1&m=2"
        wrong = mistakes(ask(handler, target + "&n=10", path="/{id}"))
        assert [one[:2] for one in wrong] == [("query", "#/ips/1"), ("query", "#/n")]
        good = target.replace("&ips=::1", "")
        expected = [3, "http://a/", ["1.2.3.4"], [1, 2], 1]
        assert ask(handler, good, path="/{id}").json() == expected
        assert mistakes(ask(handler, good.replace("/3", "/0"), path="/{id}"))[0][:2] == (
            "path",
            "#/id",
        )

    def test_models_taken_whole(self) -> None:
        def handler(filters: Annotated[Filters, Query()], trace: Annotated[Trace, Header()]) -> Any:
            return [filters.limit, filters.tag, filters.page, trace.x_request_id]

        unable = "unable to parse string as an integer"
        headers = {"x-request-id": "7"}
        answer = ask(handler, "/?limit=3&tag=a&tag=b&other=1", headers=headers)
        assert answer.json() == [3, ["a", "b"], None, 7]
        assert mistakes(ask(handler, "/?limit=0&page=null", headers={"x-request-id": "x"})) == [
            ("query", "#/limit", "input should be greater than or equal to 1"),
            ("query", "#/page", f"input should be a valid integer, {unable}"),
            ("header", "#/x-request-id", f"input should be a valid integer, {unable}"),
        ]

    def test_forms_and_cookies(self) -> None:
        def handler(address: Annotated[Address, Form()], trace: Annotated[Trace, Cookie()]) -> Any:
            return [address.street, address.number, trace.x_request_id]

        answer = ask(
            handler, form={"street": "a", "number": "2"}, headers={"cookie": "x_request_id=1"}
        )
        assert answer.json() == ["a", 2, 1]

    def test_websockets(self) -> None:
        app = App()

        @app.websocket("/")
        async def handler(ws: WebSocket, filters: Annotated[Filters, Query()]) -> None:
            ws.send_json(filters)

        with Client(app) as client, client.websocket("/?limit=2") as socket:
            assert msgspec.json.decode(socket.receive())["limit"] == 2

    def test_defaults_are_checked(self) -> None:
        def handler(n: Positive = 0) -> None: ...

        with pytest.raises(ConfigError, match="default is 0"):
            ask(handler)

    def test_what_pydantic_does_not_know(self) -> None:
        class Record(msgspec.Struct):
            n: int

        def handler(both: Record | User) -> None: ...
        def inner(order: Any) -> None: ...

        inner.__annotations__["order"] = msgspec.defstruct("Order", [("user", User)])

        def both_kinds(n: Annotated[Positive, msgspec.Meta(le=3)]) -> None: ...

        for function, message in (
            (handler, "pydantic has no schema"),
            (inner, "User cannot be read"),
            (both_kinds, r"use pydantic\.Field"),
        ):
            with pytest.raises(ConfigError, match=message):
                ask(function)


class TestResponses:
    def test_only_declared_fields_are_sent(self) -> None:
        def handler() -> User:
            return Secret(name="a")

        def of_dict() -> list[User]:
            return [{"name": "b", "password": "x"}]  # pyright: ignore[reportReturnType]

        assert ask(handler).json() == {"name": "a", "born": None, "homes": []}
        assert ask(of_dict).json() == [{"name": "b", "born": None, "homes": []}]
        packed = ask(handler, headers={"accept": "application/msgpack"})
        assert packed.msgpack()["name"] == "a"

    def test_a_value_that_does_not_fit_is_a_500(self) -> None:
        def handler() -> User:
            return {"name": 1}  # pyright: ignore[reportReturnType]

        assert ask(handler).status_code == 500

    def test_without_a_declaration(self) -> None:
        def handler(how: str):
            made = {"one": User(name="a", born=date(2000, 1, 2)), "url": HttpUrl("http://a")}
            if how == "model":
                return made["one"]
            return Response(made) if how == "response" else made

        one = {"name": "a", "born": "2000-01-02", "homes": []}
        assert ask(handler, "/?how=model").json() == one
        for how in ("response", "dict"):
            assert ask(handler, f"/?how={how}").json() == {"one": one, "url": "http://a/"}

    def test_what_nobody_can_encode_is_a_500(self) -> None:
        def handler():
            return {"a": object()}

        assert ask(handler).status_code == 500


class TestDocument:
    def test_schemas_are_those_of_pydantic(self) -> None:
        app = App()

        @app.post("/users/{id}")
        def create(
            id: Positive, user: User, filters: Annotated[Filters, Query()], n: Positive = 1
        ) -> Aliased: ...  # pyright: ignore[reportReturnType]

        @app.get("/mixed")
        def mixed(url: HttpUrl) -> list[Address]: ...  # pyright: ignore[reportReturnType]

        document = app.openapi()
        validate(document)
        schemas = document["components"]["schemas"]
        own = User.model_json_schema(ref_template="#/components/schemas/{model}")
        del own["$defs"]
        assert schemas["User"] == own
        assert schemas["Address"]["properties"]["number"]["minimum"] == 1
        assert schemas["Aliased"]["properties"]["shout"]["readOnly"] is True
        operation = document["paths"]["/users/{id}"]["post"]
        by_name = {one["name"]: one for one in operation["parameters"]}
        assert by_name["id"]["schema"] == {"type": "integer", "exclusiveMinimum": 0}
        assert by_name["n"]["schema"]["default"] == 1
        assert by_name["limit"]["schema"]["minimum"] == 1
        mixed_url = document["paths"]["/mixed"]["get"]["parameters"][0]["schema"]
        assert mixed_url["format"] == "uri"

    def test_names_that_msgspec_has_taken(self) -> None:
        app = App()
        other = msgspec.defstruct("Address", [("zip", str)])

        @app.post("/")
        def both(user: User) -> Any: ...

        both.__annotations__["return"] = other
        document = app.openapi()
        validate(document)
        schemas = document["components"]["schemas"]
        assert "zip" in schemas["Address"]["properties"]
        homes = schemas["User"]["properties"]["homes"]["items"]["$ref"]
        assert homes == "#/components/schemas/Address_"
        assert "street" in schemas["Address_"]["properties"]


class TestOtherRecords:
    @pytest.mark.parametrize(
        ("annotation", "sent", "missing"),
        [(Point, {"x": 1, "y": 2}, "#/x"), (Plain, {"name": "a", "age": 1}, "#/name")],
    )
    def test_attrs_and_typed_dicts(self, annotation: Any, sent: Any, missing: str) -> None:
        def body(value: Any) -> Any:
            return value

        def query(value: Any) -> Any:
            return value

        body.__annotations__ = {"value": annotation, "return": annotation}
        query.__annotations__ = {"value": Annotated[annotation, Query()], "return": annotation}
        assert ask(body, json=sent).json() == sent
        text = "&".join(f"{name}={value}" for name, value in sent.items())
        assert ask(query, f"/?{text}").json() == sent
        assert missing in [one[1] for one in mistakes(ask(body, json={}))]
        assert missing in [one[1] for one in mistakes(ask(query, "/"))]
        app = App()
        app.post("/")(body)
        validate(app.openapi())


def test_pydantic_is_not_imported_for_others() -> None:
    program = application("no_pydantic_app")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.stdout == "False False\n", done.stderr


def test_the_version_is_2() -> None:
    assert pydantic.VERSION.startswith("2.")


def test_models_of_one_name_are_told_apart() -> None:
    def app_with(minimum: int) -> App:
        class Item(BaseModel):
            price: int = Field(ge=minimum)

        app = App()

        @app.post("/")
        def put(items: list[Item]) -> int:
            return len(items)

        return app

    statuses = []
    for minimum in (1, 5):
        with Client(app_with(minimum)) as client:
            statuses.append(client.post("/", json=[{"price": 3}]).status_code)
    assert statuses == [200, 422]


Longer = Annotated[timedelta, pydantic.Field(gt=timedelta(1))]


class WithDuration(pydantic.BaseModel):
    length: Longer


def test_a_duration_that_python_cannot_hold_is_refused_everywhere() -> None:
    """Issue 32 B: pydantic raises an OverflowError for it, which was a 500."""
    app = App()
    app.connect()

    @app.get("/one")
    def one(length: Annotated[Longer, Query()]) -> str:
        raise AssertionError

    @app.get("/model")
    def model(given: Annotated[WithDuration, Query()]) -> str:
        raise AssertionError

    @app.get("/dependency")
    def dependency(given: Annotated[WithDuration, Depends()]) -> str:
        raise AssertionError

    @app.post("/body")
    def body(given: WithDuration) -> str:
        raise AssertionError

    @app.rpc
    def procedure(length: Longer) -> str:
        raise AssertionError

    shortest = "-P999999999DT1S"
    with Client(app) as client:
        for path in ("/one", "/model", "/dependency"):
            response = client.get(f"{path}?length={shortest}")
            assert response.status_code == 422
            assert response.json()["errors"][0]["detail"] == "out of range"
        assert client.post("/body", json={"length": shortest}).status_code == 422
        called = client.post("/citius.Procedures/procedure", json={"length": shortest})
        assert called.status_code == 400
