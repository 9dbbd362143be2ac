"""What is read of a command line without click is what click reads; all else is left to click."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import pytest
from citius.cli import cli
from citius.settings import compat
from citius.settings.commandline import read_plain
from citius.settings.config import OPTIONS
from citius.settings.option import Option
from rig import citius

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="click reads all of them there")


def by_click(*arguments: str) -> dict[str, Any]:
    """The values that click passes on."""
    command = cli.get_command(click.Context(cli), "serve")
    assert command is not None
    params = command.make_context("serve", ["x:app", *arguments]).params
    return {name: params[name] for name in OPTIONS if params.get(name) not in (None, ())}


def plain(*arguments: str) -> dict[str, Any] | None:
    found = read_plain(["serve", "x:app", *arguments])
    if found is None:
        return None
    assert found[0] == "x:app"
    return found[1]


def sample(option: Option) -> str:
    if option.choices:
        return option.choices[-1]
    least = max(1, int(option.minimum or 1))
    return {"int": f"{least}", "float": f"{least}.0"}.get(option.kind, "a")


def spellings(option: Option) -> list[list[str]]:
    first = option.flags[0]
    if option.kind == "bool":
        return [[first], [f"--no-{first[2:]}"]]
    value = sample(option)
    found = [[flag, value] for flag in option.flags if flag == first or len(flag) == 2]
    found.append([f"{first}={value}"])
    if option.kind == "list":
        found.append([first, value, first, "b"])
    return found


EVERY = [
    pytest.param(one, id=" ".join(one)) for option in OPTIONS.values() for one in spellings(option)
]


@pytest.mark.parametrize("arguments", EVERY)
def test_every_option(arguments: list[str]) -> None:
    found = plain(*arguments)
    assert found is not None
    assert found == by_click(*arguments)
    assert plain("--workers", "2", *arguments) in ({"workers": 2, **found}, None)


FOREIGN = sorted(
    {flag for flags in compat.FLAGS.values() for flag in flags.split()}
    - {flag for option in OPTIONS.values() for flag in option.flags[:1]}
)


@pytest.mark.parametrize("flag", FOREIGN)
def test_flags_of_other_servers_are_right_or_left(flag: str) -> None:
    for arguments in ([flag], [flag, "1"]):
        if (found := plain(*arguments)) is not None:
            assert found == by_click(*arguments)


LEFT = [
    [], ["serve"], ["dev", "x:app"], ["--version"], ["serve", "--help"], ["serve", "x:app", "-h"],
    ["serve", "x:app", "y:app"], ["serve", "--", "x:app"], ["serve", ""], ["serve", "x:app", "--port"],
    ["serve", "x:app", "--port", "x"], ["serve", "x:app", "--port="], ["serve", "x:app", "--port", "-1"],
    ["serve", "x:app", "--por", "1"], ["serve", "x:app", "--port", "1", "--port", "2"],
    ["serve", "x:app", "-w2"], ["serve", "x:app", "-w=2"], ["serve", "x:app", "--reload=yes"],
    ["serve", "x:app", "--config", "a.toml"], ["serve", "x:app", "--print-config"],
    ["serve", "x:app", "--loop", "twisted"], ["serve", "x:app", "--unknown", "1"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", LEFT, ids=" ".join)
def test_what_is_left_to_click(arguments: list[str]) -> None:
    assert read_plain(arguments) is None


def test_completion_is_left_to_click(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain() == {}
    monkeypatch.setenv("_CITIUS_COMPLETE", "bash_source")
    assert plain() is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ssl-keyfile", "a.pem"], "ssl_certfile"),
        (["--chdir", "missing"], "chdir"),
        (["--workers", "0"], "workers"),
    ],
)
def test_what_cannot_be_is_told_as_click_tells_it(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    # The first is read without click, the second, with an alias of the port, is not.
    read, left = (
        citius("serve", "x:app", *arguments, *more, cwd=tmp_path)
        for more in ([], ["--timeout-keep-alive", "5"])
    )
    assert read.returncode == left.returncode == 2
    assert read.stderr == left.stderr
    assert read.stderr.startswith("Usage: citius serve [OPTIONS] [TARGET]\n")
    assert says in read.stderr
