"""Results: what a handler returned in, what its route declares out.

A type that is declared for the response (the return annotation, or ``response=``) filters: of a value with
more fields only the declared ones are sent. ``status_code=``, ``headers=`` and ``content_type=`` of a route
hold for what is not a ``Response`` already. Made once per route, and only for routes that declare something.
Tests: ``tests/gateway/test_results.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius._core import DeclaredResponse, Response
from citius.web import pydantic_types
from citius.web.annotations import name_of
from citius.web.checks import describe
from citius.web.copies import Unfit, copier, node_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import TypeAdapter

    from citius.web.endpoint import Endpoint


def responder(endpoint: Endpoint) -> Callable[[Any], Any] | None:
    """What is done with a handler's value before it is sent; ``None`` for nothing."""
    operation = endpoint.operation
    status = operation.status_code or 200
    headers, content_type = operation.headers, operation.content_type
    has_head = operation.has_head
    if not has_head and not endpoint.is_model and not operation.responses:
        return None
    own = _filter(endpoint.result, endpoint) if endpoint.is_model else None
    others = {
        code: _filter(model, endpoint)
        for code, model in operation.responses.items()
        if not isinstance(model, str) and model is not None
    }

    def respond(value: Any) -> Any:
        if type(value) is Response:
            model = others.get(value.status_code)
            if model is not None and not _is_encoded(value.body):
                value.body = model(value.body)
            return value
        if own is not None and value is not None:
            value = own(value)
        if not has_head:
            return value
        return Response(
            value, 204 if value is None and status == 200 else status, headers, content_type
        )

    return respond


def declared_response(endpoint: Endpoint) -> DeclaredResponse | None:
    """The same for a route whose values go from the handler to the extension; ``None`` if that cannot be."""
    operation = endpoint.operation
    respond = responder(endpoint)
    if respond is None or operation.headers or operation.content_type is not None:
        return None
    node = node_of(endpoint.result) if endpoint.is_model else None
    return DeclaredResponse(
        respond,
        status=operation.status_code or 200,
        passes_responses=not operation.responses,
        node=node,
    )


def passed_type(endpoint: Endpoint) -> type | None:
    """The type whose own values the route's `responder` returns as they are, if there is one."""
    operation, model = endpoint.operation, endpoint.result
    if operation.has_head or not endpoint.is_model or not isinstance(model, type):
        return None
    return None if pydantic_types.adapter_of(model) or has_records_in_fields(model) else model


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
            waiting += [(part, is_in_field or is_record) for part in _parts(node)]
    return False


def _parts(node: Any) -> list[Any]:
    """The types of a type's parts."""
    found = [getattr(node, name, None) for name in _PARTS]
    found += [*getattr(node, "types", ()), *getattr(node, "item_types", ())]
    found += [field.type for field in getattr(node, "fields", ())]
    return [one for one in found if one is not None]


_PARTS = ("type", "item_type", "key_type", "value_type")


def _is_encoded(body: object) -> bool:
    """Whether a response's body is bytes, text or a stream already."""
    return isinstance(body, (bytes, str, type(None))) or hasattr(body, "__next__")


def _filter(model: Any, endpoint: Endpoint) -> Callable[[Any], Any]:
    """A function that makes values be of a type, without the fields that the type lacks."""
    adapter = pydantic_types.adapter_of(model)
    if adapter is not None:
        return _of_pydantic(model, adapter, endpoint)
    import msgspec

    convert: Callable[..., Any] = msgspec.convert
    is_deep, copy = has_records_in_fields(model), copier(model)
    passed = model if isinstance(model, type) and not is_deep else None

    def keep(value: Any) -> Any:
        if type(value) is passed:
            return value
        if copy is not None:
            try:
                return copy(value)
            except (Unfit, AttributeError):
                pass
        try:
            kept = convert(value, model, from_attributes=True)
            if is_deep:
                # Objects of exactly the declared types have come through with all that is in them.
                plain = msgspec.to_builtins(kept, enc_hook=pydantic_types.encodable)
                kept = convert(plain, model)
        except msgspec.ValidationError as error:
            raise _misfit(value, model, endpoint, error) from None
        return kept

    return keep


def _of_pydantic(model: Any, adapter: TypeAdapter[Any], endpoint: Endpoint) -> Callable[[Any], Any]:
    from pydantic import ValidationError

    send = pydantic_types.sender(adapter)

    def keep(value: Any) -> Any:
        try:
            return send(value)
        except ValidationError as error:
            raise _misfit(value, model, endpoint, error) from None

    return keep


def _misfit(value: Any, model: Any, endpoint: Endpoint, error: Exception) -> TypeError:
    return TypeError(
        f"{describe(endpoint.handler)} returned {value!r:.200}, which is not the declared {name_of(model)}: "
        f"{error}"
    )
