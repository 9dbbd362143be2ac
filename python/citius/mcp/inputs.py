"""What a tool asks of the client: a form for the user, a URL to visit, an answer of a model, its roots.

Each kind knows its request, the capability that a client must have declared for it, and how a result of the
client is read. ``Context.ask`` takes them. Tests: ``tests/mcp/test_context.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

import msgspec

from citius.errors import ConfigError
from citius.mcp.content import block_of
from citius.mcp.faults import INVALID_PARAMS, Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.mcp.content import Content, Message

_T = TypeVar("_T")

_PRIMITIVES = ("string", "number", "integer", "boolean")


@dataclass(frozen=True, slots=True)
class Answer(Generic[_T]):
    """What the user has said.

    Args:
        action: ``accept``, ``decline`` or ``cancel``.
        value: What was filled in; ``None`` unless it was accepted.
    """

    action: Literal["accept", "decline", "cancel"]
    value: _T | None = None


class Root(msgspec.Struct, gc=False):
    """A place that the client lets the server work in."""

    uri: str
    name: str | None = None


class Sampled(msgspec.Struct, gc=False):
    """What a model of the client has said."""

    model: str
    role: Literal["user", "assistant"]
    content: Any
    """A content block of the protocol, or a list of them."""
    stop_reason: str | None = msgspec.field(name="stopReason", default=None)

    @property
    def text(self) -> str:
        """The texts of its content."""
        blocks = cast(
            "list[dict[str, Any]]",
            self.content if isinstance(self.content, list) else [self.content],
        )
        return "".join(str(one.get("text", "")) for one in blocks if one.get("type") == "text")


class Input:
    """Something that the client is asked for."""

    __slots__ = ()

    method: str
    capability: tuple[str, ...]
    """What the client must have declared: a capability, and a part of it."""

    def params(self) -> dict[str, Any]:
        """The parameters of the request."""
        raise NotImplementedError

    def read(self, result: dict[str, Any]) -> Any:
        """The value of a client's result.

        Raises:
            Fault: It is none.
        """
        raise NotImplementedError


class Elicit(Input):
    """A form for the user.

    Args:
        message: What the user reads.
        form: A class with fields that are texts, numbers, booleans or choices; or a JSON Schema.
        key: What the question is called; ``q1``, ``q2``, … without it.
    """

    __slots__ = ("_form", "_schema", "key", "message")

    method = "elicitation/create"
    capability = ("elicitation", "form")

    def __init__(self, message: str, form: Any, *, key: str | None = None) -> None:
        self.message = message
        self.key = key
        self._form = form
        self._schema = form_schema(form)

    def params(self) -> dict[str, Any]:
        """The parameters of the request."""
        return {"mode": "form", "message": self.message, "requestedSchema": self._schema}

    def read(self, result: dict[str, Any]) -> Answer[Any]:
        """What the user has said."""
        answer = _action(result)
        if answer.action != "accept":
            return answer
        content = result.get("content")
        if not isinstance(content, dict):
            raise Fault(INVALID_PARAMS, "an accepted elicitation has no content")
        if isinstance(self._form, Mapping):
            return Answer("accept", cast("dict[str, Any]", content))
        from citius.web.declarations.pydantic_types import adapter_of

        try:
            adapter = adapter_of(self._form)
            if adapter is not None:
                return Answer("accept", adapter.validate_python(content))
            return Answer("accept", msgspec.convert(content, self._form))
        except ValueError as error:
            text = f"the content of an elicitation does not match its schema: {error}"
            raise Fault(INVALID_PARAMS, text) from None


class OpenURL(Input):
    """A page for the user to visit, for what must not pass the client, such as passwords and payments.

    Args:
        message: What the user reads.
        url: The page.
        id: What identifies the question to the client and to the page.
        key: As for ``Elicit``.
    """

    __slots__ = ("_id", "_url", "key", "message")

    method = "elicitation/create"
    capability = ("elicitation", "url")

    def __init__(self, message: str, url: str, *, id: str, key: str | None = None) -> None:
        self.message = message
        self.key = key
        self._url, self._id = url, id

    def params(self) -> dict[str, Any]:
        """The parameters of the request."""
        return {"mode": "url", "message": self.message, "url": self._url, "elicitationId": self._id}

    def read(self, result: dict[str, Any]) -> Answer[None]:
        """Whether the user has gone there."""
        return _action(result)


class Sample(Input):
    """A question to a model of the client.

    Args:
        messages: A text, or messages.
        max_tokens: Tokens of the answer at most.
        system: The system prompt.
        temperature: As the model has it.
        options: Further parameters of ``sampling/createMessage``, by the protocol's names.
        key: As for ``Elicit``.
    """

    __slots__ = ("_params", "key")

    method = "sampling/createMessage"
    capability = ("sampling",)

    def __init__(
        self,
        messages: str | Content | Sequence[Message],
        *,
        max_tokens: int,
        system: str | None = None,
        temperature: float | None = None,
        options: Mapping[str, object] | None = None,
        key: str | None = None,
    ) -> None:
        self.key = key
        if isinstance(messages, (list, tuple)):
            sent = [one.sent() for one in cast("Sequence[Message]", messages)]
        else:
            sent = [{"role": "user", "content": block_of(cast("str | Content", messages))}]
        self._params: dict[str, Any] = {"messages": sent, "maxTokens": max_tokens}
        if system is not None:
            self._params["systemPrompt"] = system
        if temperature is not None:
            self._params["temperature"] = temperature
        self._params |= options or {}

    def params(self) -> dict[str, Any]:
        """The parameters of the request."""
        return self._params

    def read(self, result: dict[str, Any]) -> Sampled:
        """What the model has said."""
        return _converted(result, Sampled, "a sampling")


class ListRoots(Input):
    """The places that the client lets the server work in.

    Args:
        key: As for ``Elicit``.
    """

    __slots__ = ("key",)

    method = "roots/list"
    capability = ("roots",)

    def __init__(self, *, key: str | None = None) -> None:
        self.key = key

    def params(self) -> dict[str, Any]:
        """The parameters of the request."""
        return {}

    def read(self, result: dict[str, Any]) -> list[Root]:
        """The roots."""
        return _converted(result.get("roots"), list[Root], "a list of roots")


@dataclass(slots=True)
class InputRequired(BaseException):
    """Ends a function that has asked for what the client has not said yet (2026-07-28).

    It is no ``Exception``, so that ``except Exception`` in a tool does not take it for a failure.
    """

    requests: dict[str, Input]
    answers: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])
    _: KW_ONLY
    names: str = ""


def _action(result: dict[str, Any]) -> Answer[Any]:
    action = result.get("action")
    if action not in ("accept", "decline", "cancel"):
        raise Fault(INVALID_PARAMS, f"expected accept, decline or cancel, got {action!r}")
    return Answer(action)


def _converted(value: Any, cls: Any, what: str) -> Any:
    try:
        return msgspec.convert(value, cls)
    except msgspec.ValidationError as error:
        raise Fault(INVALID_PARAMS, f"the result of {what} does not match: {error}") from None


def form_schema(form: Any) -> dict[str, Any]:
    """The JSON Schema of a form: an object whose members are texts, numbers, booleans or choices.

    Raises:
        ConfigError: The protocol has no such forms.
    """
    if isinstance(form, Mapping):
        return dict(cast("Mapping[str, Any]", form))
    try:
        found = _schemas.get(form)
    except TypeError:
        found = None
    if found is None:
        from citius.mcp.schemas import object_schema

        found = object_schema(form)
        definitions = found.get("$defs", {})
        properties = found.get("properties", {})
        for name, one in properties.items():
            one = properties[name] = _flat(one, definitions)
            if not _is_simple(one):
                raise ConfigError(
                    f"the form {form!r} has the field {name}: a form of an elicitation has texts, numbers, "
                    "booleans and choices alone"
                )
        # What the protocol has of JSON Schema.
        found = {
            key: value for key, value in found.items() if key in ("type", "properties", "required")
        }
        _schemas[form] = found
    return found


_schemas: dict[Any, dict[str, Any]] = {}


def _flat(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field without references, with ``type`` also where only choices were listed."""
    from citius.web.openapi.schemas import schema_without_null

    schema = schema_without_null(schema)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[reference.removeprefix("#/$defs/")], **rest}
    if "type" not in schema and all(isinstance(one, str) for one in schema.get("enum", [0])):
        schema = {"type": "string", **schema}
    if schema.get("type") == "array" and "items" in schema:
        schema = {**schema, "items": _flat(schema["items"], definitions)}
    return schema


def _is_simple(schema: dict[str, Any]) -> bool:
    if schema.get("type") == "array":
        items = schema.get("items", {})
        return "enum" in items or "anyOf" in items
    return schema.get("type") in _PRIMITIVES
