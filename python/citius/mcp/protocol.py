"""The protocol's versions, names and messages: bytes in, values out.

A message is decoded in steps: its envelope, the parameters of its method, the arguments of a tool. Nothing
here knows HTTP. Tests: ``tests/mcp/test_http.py``.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from citius.mcp.faults import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Fault

STATELESS: Final = "2026-07-28"
"""The version without sessions: each request says all that it needs."""
VERSIONS: Final = ("2025-03-26", "2025-06-18", "2025-11-25", STATELESS)
SESSION_VERSIONS: Final = VERSIONS[:-1]
"""Those that begin with ``initialize``."""
BATCHES: Final = "2025-03-26"
"""The only version with batches of messages."""
ERRORS_IN_RESULTS: Final = "2025-11-25"
"""Since then arguments that do not match are in the result, where the model reads them."""

META: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION: Final = META + "protocolVersion"
CLIENT_CAPABILITIES: Final = META + "clientCapabilities"
CLIENT_INFO: Final = META + "clientInfo"
LOG_LEVEL: Final = META + "logLevel"
SERVER_INFO: Final = META + "serverInfo"
SUBSCRIPTION_ID: Final = META + "subscriptionId"

LEVELS: Final = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip
Level: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]

RequestId: TypeAlias = int | str


class Envelope(Struct, gc=False):
    """A request, a notification (without ``id``), or a response (without ``method``)."""

    jsonrpc: Literal["2.0"]
    method: str | UnsetType = UNSET
    id: RequestId | UnsetType = UNSET
    params: Raw = Raw(b"{}")
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Meta(Struct, gc=False):
    """What a request says besides its parameters."""

    progress_token: RequestId | UnsetType = msgspec.field(name="progressToken", default=UNSET)
    version: str | UnsetType = msgspec.field(name=PROTOCOL_VERSION, default=UNSET)
    capabilities: dict[str, Any] | UnsetType = msgspec.field(
        name=CLIENT_CAPABILITIES, default=UNSET
    )
    client: Raw | UnsetType = msgspec.field(name=CLIENT_INFO, default=UNSET)
    level: Level | UnsetType = msgspec.field(name=LOG_LEVEL, default=UNSET)


class Params(Struct, kw_only=True, gc=False):
    """What the parameters of any request may have."""

    meta: Meta | UnsetType = msgspec.field(name="_meta", default=UNSET)


class Input(Params, kw_only=True, gc=False):
    """The parameters of requests that may have to ask the client before they have a result."""

    responses: dict[str, dict[str, Any]] | UnsetType = msgspec.field(
        name="inputResponses", default=UNSET
    )
    state: str | UnsetType = msgspec.field(name="requestState", default=UNSET)


class CallParams(Input, kw_only=True, gc=False):
    """``tools/call``."""

    name: str = msgspec.field()
    arguments: Raw = Raw(b"{}")


class CallMessage(Struct, gc=False):
    """The most frequent request, in one piece."""

    jsonrpc: Literal["2.0"]
    method: Literal["tools/call"]
    id: RequestId
    params: CallParams


class GetParams(Input, kw_only=True, gc=False):
    """``prompts/get``."""

    name: str = msgspec.field()
    arguments: dict[str, str] = {}


class ReadParams(Input, kw_only=True, gc=False):
    """``resources/read``."""

    uri: str = msgspec.field()


class UriParams(Params, kw_only=True, gc=False):
    """``resources/subscribe`` and ``resources/unsubscribe``."""

    uri: str = msgspec.field()


class ListParams(Params, kw_only=True, gc=False):
    """Lists."""

    cursor: str | None = None


class LevelParams(Params, kw_only=True, gc=False):
    """``logging/setLevel``."""

    level: Level = msgspec.field()


class InitializeParams(Params, kw_only=True, gc=False):
    """``initialize``."""

    protocol: str = msgspec.field(name="protocolVersion")
    capabilities: dict[str, Any] = {}
    client: dict[str, Any] = msgspec.field(name="clientInfo", default_factory=dict)


class Reference(Struct, gc=False):
    """What an argument to be completed is one of."""

    type: Literal["ref/prompt", "ref/resource"]
    name: str = ""
    uri: str = ""


class Argument(Struct, gc=False):
    """An argument to be completed."""

    name: str
    value: str


class CompletionContext(Struct, gc=False):
    """Arguments that are known already."""

    arguments: dict[str, str] = {}


class CompleteParams(Params, kw_only=True, gc=False):
    """``completion/complete``."""

    ref: Reference = msgspec.field()
    argument: Argument = msgspec.field()
    context: CompletionContext = msgspec.field(default_factory=CompletionContext)


class CancelledParams(Params, kw_only=True, gc=False):
    """``notifications/cancelled``."""

    request_id: RequestId | None = msgspec.field(name="requestId", default=None)
    reason: str = ""


class Subscriptions(Struct, gc=False):
    """The notifications that a client wants to hear."""

    resources: list[str] = msgspec.field(name="resourceSubscriptions", default_factory=list)


class ListenParams(Params, kw_only=True, gc=False):
    """``subscriptions/listen``."""

    notifications: Subscriptions = msgspec.field(default_factory=Subscriptions)


decode_envelope = msgspec.json.Decoder(Envelope).decode
_decode_call = msgspec.json.Decoder(CallMessage).decode
encode = msgspec.json.Encoder().encode
_decode_any = msgspec.json.Decoder().decode

_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode_message(body: bytes) -> Envelope | CallMessage:
    """A message.

    Raises:
        Exception: It is none; ``refusal_of`` says why.
    """
    if b'"tools/call"' in body:
        try:
            return _decode_call(body)
        except Exception:  # another one, or a mistake in it
            return decode_envelope(body)
    return decode_envelope(body)


def parsed(body: bytes) -> Any:
    """A body without a type.

    Raises:
        Fault: It is no JSON.
    """
    try:
        return _decode_any(body)
    except _UNDECODABLE as error:
        raise Fault(PARSE_ERROR, f"the body is no valid JSON: {error}", status=400) from None


def refusal_of(body: bytes) -> tuple[RequestId | None, Fault]:
    """Why a body is no message, and its identifier, if that can be told."""
    try:
        value = parsed(body)
    except Fault as fault:
        return None, fault
    if isinstance(value, list):
        text = "expected one message; batches belong to version 2025-03-26 alone"
        return None, Fault(INVALID_REQUEST, text, status=400)
    identifier = cast("dict[str, Any]", value).get("id") if isinstance(value, dict) else None
    is_good = type(identifier) in (int, str)
    try:
        decode_envelope(body)
        text = "the message is incomplete"
    except _UNDECODABLE as error:
        text = str(error)
    fault = Fault(INVALID_REQUEST, f"the body is no JSON-RPC 2.0 message: {text}", status=400)
    return (identifier if is_good else None), fault


class Shape:
    """Decodes the parameters of one method."""

    def __init__(self, cls: type[Any]) -> None:
        self._decode = msgspec.json.Decoder(cls).decode

    def __call__(self, params: Any) -> Any:
        """The parameters.

        Raises:
            Fault: They do not match.
        """
        try:
            return self._decode(params)
        except _UNDECODABLE as error:
            raise Fault(INVALID_PARAMS, f"the parameters do not match: {error}") from None
