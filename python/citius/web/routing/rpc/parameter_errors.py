"""Calls whose parameters do not match: every mistake with its place, as HTTP's 422 has them.

The decoders of a procedure stop at the first mistake. This is the second, slow pass, which runs only after
one of them has refused a call: it decodes the parameters without types and checks each alone. The place is a
JSON pointer into what was sent: ``#/1/name`` of positional parameters, ``#/user/name`` of named ones.
Tests: ``tests/rpc/test_mistakes.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from citius.errors import RpcError
from citius.web.declarations import pydantic_types
from citius.web.declarations.codecs import REFUSALS, UNDECODABLE, converter, is_refusal
from citius.web.declarations.validation_errors import MISTAKES_MAX, find_mistakes, mistake

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from citius.web.binding.signature import Parameter

    Mistakes = list[dict[str, str]]

PLACE: Final = "params"
"""Where mistakes of a call are, as ``body`` and ``query`` are of a request."""


def invalid_params(
    error: Exception, params: bytes, format: str, parameters: Sequence[Parameter]
) -> Exception:
    """What the caller is told; ``error`` itself if it was not the parameters' fault.

    Args:
        error: What the decoder raised.
        params: The parameters as they were sent.
        format: ``json`` or ``msgpack``.
        parameters: Those of the procedure, in order.
    """
    import msgspec

    if not isinstance(error, UNDECODABLE) or (
        not is_refusal(error) and isinstance(error, TypeError) and _is_decoded(params, format)
    ):
        return error
    errors: Mistakes = []
    if not isinstance(error, msgspec.DecodeError) or isinstance(error, msgspec.ValidationError):
        errors = _mistakes(params, format, parameters)
    if not errors:
        message, _, path = str(error).partition(" - at `")
        found = {"in": PLACE, "pointer": "#", "detail": message}
        errors = [found | {"path": path.rstrip("`")} if path else found]
    first = errors[0]
    message = f"the parameters do not match: {first['pointer']}: {first['detail']}"
    return RpcError(message, type="InvalidParams", data={"errors": errors})


def _is_decoded(params: bytes, format: str) -> bool:
    """Whether the parameters are well-formed, so that a ``TypeError`` is one of the application's code."""
    from citius.web.declarations.codecs import decoder

    try:
        decoder(format, None)(params)
    except UNDECODABLE:
        return False
    return True


def _mistakes(params: bytes, format: str, parameters: Sequence[Parameter]) -> Mistakes:
    from citius.web.declarations.codecs import decoder

    try:
        sent: Any = decoder(format, None)(params)
    except Exception:  # a decoder with types has taken so much only; its own words are left
        return []
    found: Mistakes = []
    if not isinstance(sent, (list, dict)):
        return []  # what the decoder says of it is enough
    reader: Any = _placed if isinstance(sent, list) else _named
    pairs: Iterator[tuple[Parameter, str, Any]] = reader(sent, parameters, found)
    for parameter, name, value in pairs:
        found += _mistakes_in(parameter, name, value)
        if len(found) >= MISTAKES_MAX:
            break
    return found[:MISTAKES_MAX]


def _named(
    sent: dict[Any, Any], parameters: Sequence[Parameter], found: Mistakes
) -> Iterator[tuple[Parameter, str, Any]]:
    """Parameters, their places and values; what is missing or unknown is noted."""
    known = {one.wire_name: one for one in parameters}
    for name, parameter in known.items():
        if name in sent:
            yield parameter, name, sent[name]
        elif parameter.is_required:
            found.append(mistake(PLACE, (name,), "missing"))
    found += [mistake(PLACE, (str(name),), "unknown parameter") for name in sent.keys() - known]


def _placed(
    sent: list[Any], parameters: Sequence[Parameter], found: Mistakes
) -> Iterator[tuple[Parameter, str, Any]]:
    if parameters and parameters[0].is_variable:
        for index, value in enumerate(sent):
            yield parameters[0], str(index), value
        return
    for index, parameter in enumerate(parameters):
        if index < len(sent):
            yield parameter, str(index), sent[index]
        elif parameter.is_required:
            found.append(mistake(PLACE, (str(index),), f"missing: {parameter.wire_name}"))
    if len(sent) > len(parameters):
        text = f"expected at most {len(parameters)} parameters, got {len(sent)}"
        found.append(mistake(PLACE, (str(len(parameters)),), text))


def _mistakes_in(parameter: Parameter, name: str, value: Any) -> Mistakes:
    """The mistakes in one parameter."""
    found: Mistakes = []
    adapter = pydantic_types.adapter_of(parameter.type)
    if adapter is not None:
        pydantic_types.value_reader(adapter, name, PLACE)(value, found)
        return found
    try:
        converter(parameter.type)(value, parameter.type, str_keys=True)
    except (*REFUSALS, TypeError) as error:
        if not is_refusal(error):
            raise
        found = find_mistakes(value, parameter.type, error, PLACE, path=(name,), strict=True)
    return found
