"""The exception tree."""

from __future__ import annotations

import inspect

import pytest
from citius import errors


def test_the_tree_in_the_module_doc_is_the_tree() -> None:
    assert errors.__doc__ is not None
    drawn = [
        line.replace("│", " ").replace("├", " ").replace("└", " ").replace("──", "  ")
        for line in errors.__doc__.splitlines()
        if "──" in line
    ]
    names = [line.split()[0] for line in drawn]
    public = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and value.__module__ == errors.__name__
        if not name.startswith("_") and name != "CitiusError"
    ]
    assert sorted(names) == sorted(public)
    for line in drawn:
        cls = getattr(errors, line.split()[0])
        assert issubclass(cls, errors.CitiusError)
        last = line.split()[-1]
        if last.isdecimal():
            assert cls.status_code == int(last)
            assert cls("x").status_code == int(last)


def test_str_says_status_and_detail() -> None:
    assert str(errors.NotFound("no such item")) == "404 Not Found: no such item"
    assert str(errors.HTTPError(418)) == "418 Client Error"
    assert str(errors.HTTPError(599)) == "599 Server Error"


@pytest.mark.parametrize("status", [200, 399, 600, 0])
def test_only_error_statuses(status: int) -> None:
    with pytest.raises(ValueError, match="400 to 599"):
        errors.HTTPError(status)
