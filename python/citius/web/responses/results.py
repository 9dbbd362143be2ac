"""Results: what a handler returned in, what its route declares out.

A type that is declared for the response (the return annotation, or ``response=``) filters: of a value with
more fields only the declared ones are sent. ``status_code=``, ``headers=`` and ``content_type=`` of a route
hold for what is not a ``Response`` already. Made once per route, and only for routes that declare something.
Tests: ``tests/gateway/test_results.py``.
"""

from __future__ import annotations

from collections import abc
from typing import TYPE_CHECKING, Any, cast

from citius._core import DeclaredResponse, Response
from citius.errors import ConfigError
from citius.web.binding.signature import read_result
from citius.web.declarations import pydantic_types
from citius.web.declarations.checks import describe
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.type_kinds import (
    has_fields,
    has_record,
    is_named_tuple,
    is_typed_dict,
    kind_of,
    name_of,
    resolved,
    walk,
)
from citius.web.responses.declared.field_copies import Unfit, copier, node_of
from citius.web.responses.declared.filterable import (
    Unfilterable,
    is_known_to_msgspec,
    is_open,
    parts_of_node,
)
from citius.web.responses.declared.filters import (
    ALL_FIELDS,
    FieldOptions,
    Misfit,
    has_optional_record,
    make_filter,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.web.routing.endpoint import Endpoint


def responder(endpoint: Endpoint) -> Callable[[Any], Any] | None:
    """What is done with a handler's value before it is sent; ``None`` for nothing."""
    operation = endpoint.operation
    status = operation.status_code or 200
    headers, content_type = operation.headers, operation.content_type
    has_head = operation.has_head
    if status in _WITHOUT_CONTENT:
        _refuse_content(endpoint, status)
    if endpoint.is_lines:
        return _line_responder(endpoint)
    if not has_head and not endpoint.is_model and not operation.responses:
        return None
    own = _filter(endpoint.result, endpoint) if endpoint.is_model else None
    others = _filters_by_status(endpoint)
    is_own = _finder(endpoint.result) if endpoint.is_model else _never
    if own is None and status in others:  # `responses={200: Model}` says it of values too
        own = _unless_encoded(others[status])

    def respond(value: Any) -> Any:
        if type(value) is Response:
            code = value.status_code
            model = others.get(code) or own
            if model is not None and (code == status or code in others or is_own(value)):
                declared = operation.responses.get(code, endpoint.result)
                hold = getattr(value.body, "hold", None)
                if hold is None:
                    return kept_body(value, model)
                hold(_of_events(model, declared))
            return value
        if own is not None and value is not None:
            value = own(value)
        if not has_head:
            return value
        return Response(
            value, 204 if value is None and status == 200 else status, headers, content_type
        )

    return respond


def _of_events(keep: Callable[[Any], Any], declared: Any) -> Callable[[Any], Any]:
    """The filter of a route for the data of events: of a list's type each may be a list or one of it."""
    if kind_of(declared).kind != "array":
        return keep

    def kept(data: Any) -> Any:
        is_one = isinstance(data, abc.Mapping) or has_fields(type(data))
        return next(iter(keep([data]))) if is_one else keep(data)

    return kept


def kept_body(response: Response, keep: Callable[[Any], Any]) -> Response:
    """The response with a body as declared, if that is a value, or one that ``json_response`` encoded.

    The application may keep the response, and return it where something else is declared.
    """
    value, encode = _value_of(response)
    if encode is not None:
        return response._with_body(encode(keep(value)))  # pyright: ignore[reportPrivateUsage]
    if value is not None:
        return response._with_body(keep(value))  # pyright: ignore[reportPrivateUsage]
    return response


def _value_of(response: Response) -> tuple[Any, Callable[[object], bytes] | None]:
    """The value of the body of a response, ``None`` for text, bytes and streams; and what has encoded it."""
    encoded = response._encoded  # pyright: ignore[reportPrivateUsage]
    if encoded is not None:
        return encoded if encoded[0] is not None else (None, None)
    body = response.body
    return (None if is_encoded(body) else body), None


def _finder(model: Any) -> Callable[[Response], bool]:
    """What says whether a response has an object of the declared classes in it.

    Such an object has the declared fields whatever the status is; what else is in a response of another
    status is not what the route declares.
    """
    classes = tuple(
        found.cls
        for found in map(kind_of, walk(model))
        if (found.kind == "record" and not is_typed_dict(found.cls)) or is_named_tuple(found.cls)
    )

    def has(value: Any) -> bool:
        if isinstance(value, classes):
            return True
        if isinstance(value, abc.Mapping):
            return any(map(has, cast("abc.Mapping[Any, Any]", value).values()))
        return isinstance(value, (list, tuple, set, frozenset)) and any(
            map(has, cast("list[Any]", value))
        )

    return lambda response: has(_value_of(response)[0])


def _never(response: Response) -> bool:
    return False


def _unless_encoded(keep: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: value if is_encoded(value) else keep(value)


def _filters_by_status(endpoint: Endpoint) -> dict[int, Callable[[Any], Any]]:
    """The filters of ``responses=``."""
    return {
        code: _filter(model, endpoint)
        for code, model in endpoint.operation.responses.items()
        if not isinstance(model, str) and model is not None
    }


_WITHOUT_CONTENT = (204, 205, 304)


def _refuse_content(endpoint: Endpoint, status: int) -> None:
    """Refuse a declared response that its status does not let through (RFC 9110, §15.3.5, §15.4.5).

    Raises:
        ConfigError: The handler is to return one.
    """
    result = endpoint.result
    is_model = endpoint.is_model and kind_of(result).kind != "union"
    if is_model or endpoint.is_lines or result in (str, bytes, int, float, bool, list, dict):
        raise ConfigError(
            f"{endpoint.method} {endpoint.pattern} of {describe(endpoint.handler)} has "
            f"status_code={status}, whose responses have no content, and returns "
            f"{getattr(result, '__name__', result)}; return None, or use another status"
        )


def _line_responder(endpoint: Endpoint) -> Callable[[Any], Any]:
    """The responder of a handler that returns an iterator of values."""
    from citius.web.realtime.events import Event
    from citius.web.responses.json_lines import MEDIA_TYPE, json_lines

    operation, item = endpoint.operation, kind_of(endpoint.result).parts[0]
    keep = _filter(item, endpoint) if has_record(item) else None
    status, media_type = operation.status_code or 200, operation.content_type or MEDIA_TYPE
    others = _filters_by_status(endpoint)
    takes_events = kind_of(item).cls is not Event
    is_own = _finder(item)

    def respond(value: Any) -> Any:
        if type(value) is Response:
            code = value.status_code
            if code in others:
                return kept_body(value, others[code])
            if keep is not None and (code == status or is_own(value)):
                return _kept_items(value, keep, takes_events=takes_events)
            return value
        if value is None:
            return value
        return Response(json_lines(value, keep), status, operation.headers, media_type)

    return respond


def filter_of_items(handler: Callable[..., Any], endpoint: Endpoint) -> Callable[[Any], Any] | None:
    """What makes the values of a generator be of their declared type; ``None`` for types without fields.

    Raises:
        ConfigError: The type does not say which fields are sent.
    """
    from citius.web.realtime.events import Event

    annotation = read_result(handler)
    if annotation is MISSING:
        return None
    found = kind_of(resolved(annotation, handler))
    item = found.parts[0] if found.kind in ("stream", "array") else Any
    if kind_of(item).cls is Event:
        return None
    keep = _filter(item, endpoint)  # refuses what is no type
    return keep if has_record(item) else None


def _kept_items(response: Response, keep: Callable[[Any], Any], *, takes_events: bool) -> Response:
    """A ``Response`` in place of an iterator, as declared: events, a list, or one value."""
    hold = getattr(response.body, "hold", None)
    if hold is not None:
        if takes_events:
            hold(keep)
        return response

    def keep_all(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [keep(one) for one in cast("list[Any]", value)]
        return keep(value)

    return kept_body(response, keep_all)


def declared_response(endpoint: Endpoint) -> DeclaredResponse | None:
    """The declaration for a route whose results go straight to the extension; ``None`` if they cannot."""
    operation = endpoint.operation
    respond = responder(endpoint)
    if respond is None or operation.headers or operation.content_type is not None:
        return None
    node = node_of(endpoint.result) if _is_converted(endpoint) else None
    return DeclaredResponse(
        respond,
        status=operation.status_code or 200,
        passes_responses=not endpoint.is_model and not operation.responses,
        node=node,
    )


def passed_values(endpoint: Endpoint) -> type | Callable[[Any], bool] | None:
    """Which values the route's `responder` returns as they are: those of a type, or what a function says."""
    operation, model = endpoint.operation, endpoint.result
    if operation.has_head or not isinstance(model, type) or not _is_converted(endpoint):
        return None
    if has_records_in_fields(model) or is_typed_dict(model):  # a dictionary may have more keys
        return None
    from citius.web.responses.declared.plain_parts import plain_check

    return plain_check(model) or model


def _is_converted(endpoint: Endpoint) -> bool:
    """Whether msgspec filters the values of a route."""
    return (
        endpoint.is_model
        and not endpoint.is_lines
        and _is_of_msgspec(endpoint.result, endpoint.operation.fields)
    )


def _is_of_msgspec(model: Any, options: FieldOptions) -> bool:
    if options != ALL_FIELDS or not is_known_to_msgspec(model) or is_open(model):
        return False
    return not pydantic_types.is_pydantic(model)


def has_records_in_fields(model: Any) -> bool:
    """Whether objects of exactly these types can have parts with more fields than their types declare.

    That is so if a field holds objects, whose class may have subclasses. Objects that are not in a field are
    converted.
    """
    import msgspec.inspect

    seen: set[int] = set()
    waiting = [(msgspec.inspect.type_info(model), False)]
    while waiting:
        node, is_in_field = waiting.pop()
        is_record = hasattr(node, "fields")
        if is_record and is_in_field:
            return True
        if id(node) not in seen:
            seen.add(id(node))
            waiting += [(part, is_in_field or is_record) for part in parts_of_node(node)]
    return False


def is_encoded(body: object) -> bool:
    """Whether a response's body is bytes, text or a stream already."""
    if isinstance(body, (bytes, str, bytearray, memoryview, type(None))):
        return True
    return hasattr(body, "__next__") or hasattr(body, "__aiter__") or _is_buffer(body)


def _is_buffer(body: object) -> bool:
    try:
        return memoryview(body).itemsize == 1  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    except TypeError:
        return False


def _filter(model: Any, endpoint: Endpoint) -> Callable[[Any], Any]:
    return type_filter(model, endpoint.handler, endpoint.operation.fields)


def type_filter(
    model: Any, function: object, options: FieldOptions = ALL_FIELDS
) -> Callable[[Any], Any]:
    """A function that makes values be of a type, without the fields that the type lacks.

    Args:
        model: The type.
        function: What returns the values.
        options: Which fields are left out.

    Raises:
        ConfigError: The type does not say which fields are sent.
    """
    try:
        keep = make_filter(model, options)
    except (Unfilterable, NameError) as error:
        raise ConfigError(
            f"the response of {describe(function)} is declared as {name_of(model)}, which cannot be "
            f"held: {error}"
        ) from None

    def kept(value: Any) -> Any:
        try:
            return keep(value)
        except Misfit as error:
            raise TypeError(
                f"{describe(function)} returned {value!r:.200}, which is not the declared "
                f"{name_of(model)}: {error}"
            ) from None

    return _converter(model, kept) if _is_of_msgspec(model, options) else kept


def _always(_value: Any) -> bool:
    return True


def _converter(model: Any, otherwise: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The filter of a type that msgspec knows; ``otherwise`` is for values that it refuses."""
    import msgspec

    from citius.web.responses.declared.plain_parts import plain_check

    convert: Callable[..., Any] = msgspec.convert
    is_deep, copy = has_records_in_fields(model), copier(model)
    # msgspec makes a record that needs no field of any object, of a coroutine too: not where there is one.
    from_attributes = not has_optional_record(model)
    passed = model if isinstance(model, type) and not is_deep else None
    has_plain = plain_check(model) or _always

    def keep(value: Any) -> Any:
        if type(value) is passed and has_plain(value):
            return value
        if copy is not None:
            try:
                copied = copy(value)
                if has_plain(copied):
                    return copied
            except (Unfit, AttributeError):
                pass
        try:
            kept = convert(value, model, from_attributes=from_attributes)
            if is_deep or not has_plain(kept):
                # Objects of exactly the declared types have come through with all that is in them.
                plain = msgspec.to_builtins(kept, enc_hook=pydantic_types.encodable)
                kept = convert(plain, model)
        except (msgspec.ValidationError, TypeError):
            # A set of what cannot be hashed, a subclass of a member of a union, other containers.
            return otherwise(value)
        # Not `body, status`: it is declared.
        return list(cast("tuple[Any, ...]", kept)) if type(kept) is tuple else kept

    return keep
