"""What clients are told of exceptions that functions raise for them. Tests: ``tests/mcp/test_tools.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from citius.mcp.faults import INVALID_PARAMS, Fault
from citius.web.responses.problems import detail_of

if TYPE_CHECKING:
    from citius.errors import HTTPError, RpcError


def text_of(error: HTTPError) -> str:
    """What a model reads of an error with a status."""
    mistakes = [f"{one.get('pointer', '')}: {one.get('detail', '')}" for one in error.errors]
    return "\n".join([detail_of(error), *mistakes])


def mistakes_of(error: RpcError) -> str:
    """All mistakes of arguments, for the model to mend."""
    data = cast("dict[str, Any]", error.data) if isinstance(error.data, dict) else {}
    errors = cast("list[dict[str, str]]", data.get("errors", []))
    lines = [f"{one['pointer']}: {one['detail']}" for one in errors]
    return "\n".join(["the arguments do not match:", *lines]) if lines else error.message


def fault_of_rpc(error: RpcError) -> Fault:
    """An error of a procedure as one of the protocol."""
    if error.type == "InvalidParams":
        return Fault(INVALID_PARAMS, error.message, error.data)
    code = error.code if error.code is not None else -32000
    return Fault(code, error.message, error.data)
