"""Services that gRPC's tools expect: health checking (Kubernetes' probes) and server reflection (grpcurl).

They are served by connectrpc, with messages that are encoded here: there are a dozen fields, and the package
has no generated code. Protocols: ``grpc.health.v1``, ``grpc.reflection.v1`` and ``v1alpha``. Tests:
``tests/rpc/test_mount_rpc.py``.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from citius.web.realtime.broadcast import closed_with_broadcasts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

SERVING: Final = 1
NOT_SERVING: Final = 2
SERVICE_UNKNOWN: Final = 3
_STATUS: Final = {
    SERVING: "SERVING",
    NOT_SERVING: "NOT_SERVING",
    SERVICE_UNKNOWN: "SERVICE_UNKNOWN",
}

_HEALTH: Final = "/grpc.health.v1.Health"
# How often those that watch look.
_LOOK_S = 0.5


class HealthRequest:
    """``grpc.health.v1.HealthCheckRequest``."""

    def __init__(self, service: str = "") -> None:
        self.service = service

    @classmethod
    def from_binary(cls, data: bytes | bytearray) -> HealthRequest:
        """Read it."""
        found = dict(fields_of(bytes(data)))
        return cls(_text(found.get(1, b"")))

    @classmethod
    def from_json(cls, data: bytes | bytearray) -> HealthRequest:
        """Read it."""
        return cls(str(json.loads(data or b"{}").get("service", "")))


class HealthResponse:
    """``grpc.health.v1.HealthCheckResponse``."""

    def __init__(self, status: int) -> None:
        self.status = status

    def to_binary(self) -> bytes:
        """As it is sent."""
        return field(1, self.status)

    def to_json(self) -> bytes:
        """As it is sent."""
        return json.dumps({"status": _STATUS[self.status]}).encode()


class HealthFile:
    """The descriptor of ``grpc/health/v1/health.proto``, as files of generated code have one."""

    name = "grpc/health/v1/health.proto"
    dependencies = ()
    symbols = tuple(
        f"{_HEALTH[1:]}{suffix}"
        for suffix in ("", ".Check", ".Watch", "CheckRequest", "CheckResponse")
    )

    @property
    def proto(self) -> HealthFile:
        """What has the bytes."""
        return self

    def to_binary(self) -> bytes:
        """A ``FileDescriptorProto``."""
        request, response = (f".{_HEALTH[1:]}Check{it}".encode() for it in ("Request", "Response"))
        statuses = ("UNKNOWN", *_STATUS.values())
        values = b"".join(
            field(2, field(1, name.encode()) + field(2, number))
            for number, name in enumerate(statuses)
        )
        # A label of 1 is "optional"; a type of 9 is a string, one of 14 an enumeration.
        service = field(1, b"service") + field(3, 1) + field(4, 1) + field(5, 9)
        status = field(1, b"status") + field(3, 1) + field(4, 1) + field(5, 14)
        status += field(6, response + b".ServingStatus")
        enum = field(4, field(1, b"ServingStatus") + values)
        ends = field(2, request) + field(3, response)
        return (
            field(1, self.name.encode())
            + field(2, b"grpc.health.v1")
            + field(4, field(1, b"HealthCheckRequest") + field(2, service))
            + field(4, field(1, b"HealthCheckResponse") + field(2, status) + enum)
            + field(
                6,
                field(1, b"Health")
                + field(2, field(1, b"Check") + ends)
                + field(2, field(1, b"Watch") + ends + field(6, 1)),
            )
            + field(12, b"proto3")
        )


class ReflectionRequest:
    """``grpc.reflection.v1.ServerReflectionRequest``."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.fields: dict[int, Any] = dict(fields_of(data))

    @classmethod
    def from_binary(cls, data: bytes | bytearray) -> ReflectionRequest:
        """Read it."""
        return cls(bytes(data))


class ReflectionResponse:
    """``grpc.reflection.v1.ServerReflectionResponse``."""

    def __init__(self, request: ReflectionRequest, number: int, data: bytes) -> None:
        self._request = request
        self._number = number
        self._data = data

    def to_binary(self) -> bytes:
        """As it is sent."""
        return field(2, self._request.data) + field(self._number, self._data)


class _Codec:
    """Reads and writes these messages, as a codec of connectrpc."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._suffix = "binary" if name == "proto" else "json"

    def name(self) -> str:
        return self._name

    def encode(self, message: Any) -> bytes:
        return getattr(message, f"to_{self._suffix}")()

    def decode(self, data: bytes | bytearray, message_class: Any) -> Any:
        return getattr(message_class, f"from_{self._suffix}")(data)


class Health:
    """Whether services serve: all that are mounted, until the server begins to stop."""

    def __init__(self, services: Mapping[str, Any]) -> None:
        self._services = services
        self._is_stopping = False
        closed_with_broadcasts(self)

    def close(self, spread_s: float = 0.0) -> None:
        """Say that nothing is served any more, as before a shutdown."""
        self._is_stopping = True

    def _status(self, service: str) -> int:
        if service and service not in self._services:
            return SERVICE_UNKNOWN
        return NOT_SERVING if self._is_stopping else SERVING

    async def check(self, request: HealthRequest, _: object) -> HealthResponse:
        """The status of a service; of the server without a name.

        Raises:
            ConnectError: There is no such service.
        """
        status = self._status(request.service)
        if status == SERVICE_UNKNOWN:
            from connectrpc.code import Code  # pyright: ignore
            from connectrpc.errors import ConnectError  # pyright: ignore

            raise ConnectError(Code.NOT_FOUND, f"there is no service {request.service}")  # pyright: ignore
        return HealthResponse(status)

    async def watch(self, request: HealthRequest, _: object) -> AsyncIterator[HealthResponse]:
        """The status now, and each time that it changes."""
        said = None
        while True:
            status = self._status(request.service)
            if status != said:
                said = status
                yield HealthResponse(status)
            if self._is_stopping:
                return
            await asyncio.sleep(_LOOK_S)


class Reflection:
    """What services there are, and the descriptors of their files."""

    def __init__(self, services: Mapping[str, Mapping[str, Any]], *, health: bool) -> None:
        self._names = sorted([*services, _HEALTH[1:]] if health else services)
        file = HealthFile()
        self._files: dict[str, Any] = {file.name: file} if health else {}
        self._symbols: dict[str, Any] = dict.fromkeys(file.symbols, file) if health else {}
        for name, endpoints in services.items():
            for endpoint in endpoints.values():
                for cls in (endpoint.method.input, endpoint.method.output):
                    desc: Any = getattr(cls, "desc", None)
                    if desc is not None:
                        self._add(desc().file)
                        # The service is in the file of the first message that is beside it.
                        self._note_services(desc().file, name)

    def _add(self, file: Any) -> None:
        if file.name in self._files:
            return
        self._files[file.name] = file
        for message in file.messages:
            self._note(message)
        for enum in file.enums:
            self._symbols[enum.type_name] = file
        for service in file.services:
            self._symbols[service.type_name] = file
            for method in service.methods:
                self._symbols[f"{service.type_name}.{method.name}"] = file

    def _note(self, message: Any) -> None:
        self._symbols[message.type_name] = message.file
        for inner in message.nested_messages:
            self._note(inner)
        for enum in message.nested_enums:
            self._symbols[enum.type_name] = message.file

    def _note_services(self, file: Any, name: str) -> None:
        for service in file.services:
            if service.type_name == name:
                self._symbols[name] = file

    def _descriptors(self, name: str) -> bytes | None:
        """A file and all that it needs."""
        file = self._files.get(name)
        if file is None:
            return None
        found: dict[str, bytes] = {}
        waiting = [file]
        while waiting:
            one = waiting.pop()
            if one.name not in found:
                found[one.name] = one.proto.to_binary()
                waiting += one.dependencies
        return b"".join(field(1, data) for data in found.values())

    async def info(
        self, requests: AsyncIterator[ReflectionRequest], _: object
    ) -> AsyncIterator[ReflectionResponse]:
        """A response to each question."""
        async for request in requests:
            yield self._answer(request)

    def _answer(self, request: ReflectionRequest) -> ReflectionResponse:
        asked = request.fields
        if 7 in asked:
            names = b"".join(field(1, field(1, name.encode())) for name in self._names)
            return ReflectionResponse(request, 6, names)
        data: bytes | None = None
        if 3 in asked:
            data = self._descriptors(_text(asked[3]))
        elif 4 in asked:
            file = self._symbols.get(_text(asked[4]))
            data = None if file is None else self._descriptors(file.name)
        if data is not None:
            return ReflectionResponse(request, 4, data)
        is_known = 3 in asked or 4 in asked
        code, text = (5, b"not found") if is_known else (12, b"extensions are not told")
        return ReflectionResponse(request, 7, field(1, code) + field(2, text))


def tools(
    services: dict[str, dict[str, Any]], *, health: bool, reflection: bool
) -> list[tuple[str, Any]]:
    """Names and ASGI applications of the services that are wanted."""
    from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType  # pyright: ignore
    from connectrpc.server import ConnectASGIApplication, Endpoint  # pyright: ignore

    def info(service: str, name: str, cls: Any, made: Any, kind: Any) -> Any:
        return MethodInfo(  # pyright: ignore
            name=name, service_name=service, input=cls, output=made,
            idempotency_level=IdempotencyLevel.UNKNOWN, stream_type=kind,  # pyright: ignore
        )  # fmt: skip

    def application(name: str, endpoints: Callable[[Any], dict[str, Any]], service: Any) -> Any:
        class Application(ConnectASGIApplication):  # pyright: ignore
            @property
            def path(self) -> str:
                return f"/{name}"

        codecs = [_Codec("proto"), _Codec("json")]
        return Application(service=service, endpoints=endpoints, codecs=codecs)  # pyright: ignore

    found: list[tuple[str, Any]] = []
    if health:
        unary, stream = StreamType.UNARY, StreamType.SERVER_STREAM  # pyright: ignore

        def of_health(service: Any) -> dict[str, Any]:
            return {
                f"{_HEALTH}/Check": Endpoint.unary(  # pyright: ignore
                    method=info(_HEALTH[1:], "Check", HealthRequest, HealthResponse, unary),
                    function=service.check,
                ),
                f"{_HEALTH}/Watch": Endpoint.server_stream(  # pyright: ignore
                    method=info(_HEALTH[1:], "Watch", HealthRequest, HealthResponse, stream),
                    function=service.watch,
                ),
            }

        found.append((_HEALTH[1:], application(_HEALTH[1:], of_health, Health(services))))
    for version in ("v1", "v1alpha") if reflection else ():
        name = f"grpc.reflection.{version}.ServerReflection"

        def of_reflection(service: Any, name: str = name) -> dict[str, Any]:
            bidi = StreamType.BIDI_STREAM  # pyright: ignore
            return {
                f"/{name}/ServerReflectionInfo": Endpoint.bidi_stream(  # pyright: ignore
                    method=info(
                        name, "ServerReflectionInfo", ReflectionRequest, ReflectionResponse, bidi
                    ),
                    function=service.info,
                )
            }

        told = Reflection(services, health=health)
        found.append((name, application(name, of_reflection, told)))
    return found


# --- the encoding of protocol buffers ---------------------------------------------------------------------


def field(number: int, value: int | bytes) -> bytes:
    """A field: a varint, or bytes behind their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message.

    Raises:
        ValueError: It is none.
    """
    at = 0
    while at < len(data):
        key, at = _read(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _read(data, at)
            yield number, value
            continue
        size = {1: 8, 5: 4}.get(kind)
        if size is None:
            if kind != 2:
                raise ValueError(f"the wire type {kind} is not known")
            size, at = _read(data, at)
        if at + size > len(data):
            raise ValueError("a field is longer than its message")
        yield number, data[at : at + size]
        at += size


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number has no end")


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
