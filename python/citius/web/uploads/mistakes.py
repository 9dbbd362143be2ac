"""Which protocol a client of uploads speaks, and what it is told of a mistake. Tests: ``tests/uploads/``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from citius._core import Request, Response
from citius.errors import HTTPError
from citius.web.declarations.codecs import encode_json
from citius.web.responses.problems import problem

TUS: Final = "1.0.0"
"""The version of tus."""


class Wrong(HTTPError):
    """A mistake of the protocol, with fields that say how the upload stands."""

    members: dict[str, object] | None = None
    """Those of its problem, if that has a type."""


def refusal(request: Request, error: Wrong) -> Response:
    """The response to a mistake; those with a type of problem have it."""
    if error.members is None or is_tus_of(request, check=False):
        return problem(request, error)
    body = {"title": error.detail, "status": error.status_code, **error.members}
    headers: Any = error.headers
    return Response(encode_json(body), error.status_code, headers, "application/problem+json")


def is_tus_of(request: Request, *, check: bool = True) -> bool:
    """Whether a client speaks tus.

    Raises:
        HTTPError: Another version of it (412).
    """
    version = request.header("tus-resumable")
    if version is not None and version != TUS and check:
        raise Wrong(412, f"expected Tus-Resumable: {TUS}", {"tus-version": TUS})
    return version is not None


def with_field(error: HTTPError, name: str, value: str) -> HTTPError:
    """An error like this one with one field more: the application may keep it, and raise it elsewhere."""
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    fields: Any = error.headers or ()
    if isinstance(fields, Mapping):
        fields = fields.items()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    copy.headers = [*fields, (name, value)]
    return copy.with_traceback(error.__traceback__)
