"""Constraints of files hold, or the start fails: they were not looked at, without a word (issue 32 A1)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from citius import App, ConfigError, File, UploadFile
from citius.testing import Client

DATA = b"a\x00\xff"
"""Bytes that are no text."""

OF_BYTES: list[tuple[Any, Any]] = [
    (bytes, File(min_length=2, max_length=3)),
    (bytes | None, File(min_length=2, max_length=3)),
    (Annotated[bytes, msgspec.Meta(min_length=2, max_length=3)], File()),
    (Annotated[bytes, pydantic.Field(min_length=2, max_length=3)], File()),
]


def status_of(annotation: Any, marker: Any, *files: bytes) -> tuple[int, Any]:
    app = App()

    def handler(x: Any) -> Any:
        seen.append(x)
        return "ok"

    handler.__annotations__ = {"x": Annotated[annotation, marker], "return": str}
    app.post("/")(handler)
    seen: list[Any] = []
    with Client(app) as client:
        response = client.post("/", files=[("x", (f"{n}.bin", one)) for n, one in enumerate(files)])
    return response.status_code, seen[0] if seen else response.json()["errors"]


@pytest.mark.parametrize(("annotation", "marker"), OF_BYTES, ids=range(len(OF_BYTES)))
def test_lengths_of_bytes(annotation: Any, marker: Any) -> None:
    assert status_of(annotation, marker, DATA) == (200, DATA)
    for wrong in (b"a", b"abcd"):
        status, errors = status_of(annotation, marker, wrong)
        assert status == 422
        assert [(one["in"], one["pointer"]) for one in errors] == [("file", "#/x")]


OF_LISTS: list[tuple[Any, Any]] = [
    (list[bytes], File(min_length=2, max_length=3)),
    (list[UploadFile], File(min_length=2, max_length=3)),
    (list[UploadFile] | None, File(min_length=2, max_length=3)),
    (Annotated[list[UploadFile], msgspec.Meta(min_length=2, max_length=3)], File()),
    (Annotated[list[UploadFile], pydantic.Field(min_length=2, max_length=3)], File()),
]


@pytest.mark.parametrize(("annotation", "marker"), OF_LISTS, ids=range(len(OF_LISTS)))
def test_numbers_of_files(annotation: Any, marker: Any) -> None:
    for count, expected in ((1, 422), (2, 200), (3, 200), (4, 422)):
        status, seen = status_of(annotation, marker, *[DATA] * count)
        assert status == expected
        assert expected == 422 or len(seen) == count


def test_each_of_several() -> None:
    annotation = list[Annotated[bytes, msgspec.Meta(max_length=3)]]
    assert status_of(annotation, File(), DATA, b"") == (200, [DATA, b""])
    assert status_of(annotation, File(), DATA, b"abcd")[0] == 422


REFUSED: list[tuple[Any, Any]] = [
    (UploadFile, File(max_length=3)),
    (UploadFile | None, File(max_length=3)),
    (Annotated[UploadFile, pydantic.Field(max_length=3)], File()),
    (list[Annotated[UploadFile, msgspec.Meta(max_length=3)]], File()),
    (list[UploadFile], File(ge=3)),
]


@pytest.mark.parametrize(("annotation", "marker"), REFUSED, ids=range(len(REFUSED)))
def test_what_nothing_checks_is_refused(annotation: Any, marker: Any) -> None:
    with pytest.raises(ConfigError, match="the parameter x of .*test_file_constraints.py"):
        status_of(annotation, marker, DATA)


def test_a_description_is_no_constraint() -> None:
    """Nor does the word "bytes" in it make bytes of an UploadFile."""
    described = Annotated[UploadFile, msgspec.Meta(description="some bytes")]
    status, upload = status_of(described, File(description="at most 9 bytes"), DATA)
    assert (status, upload.data) == (200, DATA)
