"""Forms: the bytes of a body in, a ``FormData`` out (URL-encoded; multipart as RFC 7578 and RFC 2046 §5.1).

Works on a body that is there as a whole, so its size is already bounded (``body_bytes_max``); the
number of fields and the size of a part's head are bounded here. Imported when a form is first read.
Tests are in tests/unit/test_forms.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from citius._core import parse_parameters, parse_urlencoded
from citius.errors import BadRequest, ContentTooLarge, UnsupportedMediaType
from citius.web.headers import Headers, QueryParams

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius._core import Request

FIELDS_MAX = 1000
"""Fields of one form. Origin: Django, 1000. Exceeded: 413. Test: tests/unit/test_forms.py."""

PART_HEAD_BYTES_MAX = 8 * 1024
"""Bytes of one part's head. Origin: a quarter of a request's. Exceeded: 400. Test: the same."""

_BOUNDARY_CHARS_MAX = 70  # RFC 2046 §5.1.1


@dataclass(frozen=True, slots=True)
class Upload:
    """One file of a multipart form."""

    filename: str
    """As the client calls it; never use it as a path."""
    content_type: str
    data: bytes
    headers: Headers


class FormData(QueryParams):
    """The text fields of a form as a multi-mapping; its files are in ``files``."""

    __slots__ = ("_files",)

    def __init__(
        self, items: Iterable[tuple[str, str]], files: Iterable[tuple[str, Upload]] = ()
    ) -> None:
        super().__init__(items)
        self._files = list(files)

    @property
    def files(self) -> dict[str, Upload]:
        """The files by field name; of several with one name the last."""
        return dict(self._files)

    def files_list(self, name: str) -> list[Upload]:
        """All files of that field."""
        return [upload for key, upload in self._files if key == name]


def form_of(request: Request) -> FormData:
    """The form in the body of a request."""
    return parse_form(request.header("content-type") or "", request.body())


def parse_form(content_type: str, body: bytes) -> FormData:
    """Read a form.

    Raises:
        UnsupportedMediaType: The body is not a form.
        BadRequest: It is a broken one.
        ContentTooLarge: It has more fields than ``FIELDS_MAX``.
    """
    media_type, parameters = parse_parameters(content_type)
    if media_type == "application/x-www-form-urlencoded":
        if body.count(b"&") >= FIELDS_MAX:
            raise ContentTooLarge(f"a form may have {FIELDS_MAX} fields")
        return FormData(parse_urlencoded(body))
    if media_type == "multipart/form-data":
        boundary = parameters.get("boundary", "")
        if not 0 < len(boundary) <= _BOUNDARY_CHARS_MAX or not boundary.isascii():
            raise BadRequest("multipart/form-data needs a boundary of 1 to 70 characters")
        return _parse_multipart(boundary.encode(), body)
    raise UnsupportedMediaType(
        "expected application/x-www-form-urlencoded or multipart/form-data, "
        f"got {media_type or 'no Content-Type'}"
    )


def _parse_multipart(boundary: bytes, body: bytes) -> FormData:
    """Cut the body at its delimiters: preamble, parts, epilogue."""
    delimiter = b"\r\n--" + boundary
    # The first delimiter has no line break of its own when there is no preamble.
    sections = (b"\r\n" + body).split(delimiter, FIELDS_MAX + 1)
    if len(sections) < 2:
        raise BadRequest("the multipart body lacks its boundary")
    fields: list[tuple[str, str]] = []
    files: list[tuple[str, Upload]] = []
    for section in sections[1:]:
        if section.startswith(b"--"):
            return FormData(fields, files)
        padding, line_break, part = section.partition(b"\r\n")
        if not line_break or padding.strip(b" \t"):
            raise BadRequest("a multipart delimiter is followed by something other than a line end")
        name, value = _parse_part(part)
        if isinstance(value, Upload):
            files.append((name, value))
        else:
            fields.append((name, value))
    if len(sections) == FIELDS_MAX + 2:  # the last of them is an uncut rest
        raise ContentTooLarge(f"a form may have {FIELDS_MAX} fields")
    raise BadRequest("the multipart body ends before its last delimiter")


def _parse_part(part: bytes) -> tuple[str, str | Upload]:
    # A part without fields begins with the empty line itself.
    head, separator, data = (b"\r\n" + part).partition(b"\r\n\r\n")
    if not separator or len(head) > PART_HEAD_BYTES_MAX:
        raise BadRequest(f"the head of a part has no end within {PART_HEAD_BYTES_MAX} bytes")
    items: list[tuple[str, str]] = []
    for line in head.split(b"\r\n")[1:]:
        field, colon, value = line.decode("utf-8", "replace").partition(":")
        if not colon:
            raise BadRequest("a line in the head of a part has no colon")
        items.append((field.strip().lower(), value.strip()))
    headers = Headers(items)
    kind, parameters = parse_parameters(headers.get("content-disposition", ""))
    name = parameters.get("name")
    if kind != "form-data" or name is None:
        raise BadRequest('a part needs `Content-Disposition: form-data; name="…"`')
    name = _unescape(name)
    filename = parameters.get("filename")
    if filename is None:
        return name, data.decode("utf-8", "replace")
    content_type = headers.get("content-type", "application/octet-stream")
    return name, Upload(_unescape(filename), content_type, data, headers)


def _unescape(text: str) -> str:
    """Undo the three escapes of the WHATWG multipart encoder."""
    return text.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")
