"""Functions made of text have lines in tracebacks, each its own."""

from __future__ import annotations

import traceback
from typing import Any

import msgspec
import pytest
from citius.web.binding.generated import make_function
from citius.web.responses.declared.field_copies import copier


class Inner(msgspec.Struct):
    id: int


class Outer(msgspec.Struct):
    inner: Inner


def lines_of(error: BaseException) -> list[str]:
    return [frame.line or "" for frame in traceback.extract_tb(error.__traceback__)]


def test_a_traceback_shows_the_line() -> None:
    first = make_function("f", "def f():\n    return 1 // zero\n", {"zero": 0}, "a test of lines")
    second = make_function("f", "def f():\n    return missing\n", {}, "a test of lines")
    with pytest.raises(ZeroDivisionError) as failed:
        first()
    assert "return 1 // zero" in lines_of(failed.value)
    with pytest.raises(NameError) as unknown:
        second()
    assert "return missing" in lines_of(unknown.value)


def test_one_text_has_one_name() -> None:
    source = "def f():\n    return 1\n"
    names = {make_function("f", source, {}, "same").__code__.co_filename for _ in range(3)}
    assert names == {"<same>"}


def test_copies_of_records_have_lines() -> None:
    copy: Any = copier(Outer)
    broken = Outer(Inner(1))
    del broken.inner
    with pytest.raises(AttributeError) as failed:
        copy(broken)
    assert any("value.inner" in line for line in lines_of(failed.value))
