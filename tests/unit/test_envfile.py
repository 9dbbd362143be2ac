"""Environment files: what lines mean, who wins, and what a second reading may change."""

from __future__ import annotations

from pathlib import Path

import pytest
from citius.errors import ConfigError
from citius.settings.envfile import Environment, read, with_assignments, with_files


class EnvFiles:
    """Files that are applied, and applied again, as `Sources.read` does it."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths
        self.environment = Environment()

    def apply(self, environ: dict[str, str], assignments: tuple[str, ...] = ()) -> None:
        wanted = with_files(self.environment.original(environ), self._paths)
        self.environment.replace(environ, with_assignments(wanted, assignments))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"), ("A = b c ", "b c"), ("export A=b", "b"), ("A=", ""), ("A='b # c'", "b # c"),
        ('A="b\\n\\"c\\""', 'b\n"c"'), ("A=b # why", "b"), ("A=b#c", "b#c"), ("A=$HOME", "$HOME"),
        ("A=x=y", "x=y"), ("A='it\\'s \\n'", "it's \\n"), ('A="\\d\\t"', "\\d\t"), ("A='b\nc' # d", "b\nc"),
        ('A="b\nc"', "b\nc"), ("A= # why", ""), ("A=#b", "#b"), ("'A' = b", "b"), ("A=1\r\n", "1"),
        ("A=${OUT}", "outside"), ("A='${OUT}'", "outside"), ('A="-${OUT}-${OUT}-"', "-outside-outside-"),
        ("A=${NO}", ""), ("A=${NO:-b c}", "b c"), ("A=${OUT:-b}", "outside"), ("A=${OUT", "${OUT"),
        ("A=1\nA=${A}2", "12"), ("OUT", None), ("A=1\nA", None),
    ],
)  # fmt: skip
def test_lines(tmp_path: Path, line: str, value: str | None) -> None:
    (tmp_path / "env").write_text(f"# comment\n\n; too\n{line}\n", newline="")
    expected = {} if value is None else {"A": value}
    assert read(str(tmp_path / "env"), {"OUT": "outside"}) == expected


@pytest.mark.parametrize("line", ["A b", "=b", "A='b", 'A="b', "A='b'c'"])
def test_lines_that_are_none(tmp_path: Path, line: str) -> None:
    (tmp_path / "env").write_text(f"B=c\n{line}\n")
    with pytest.raises(ConfigError, match="line 2: expected NAME=value"):
        read(str(tmp_path / "env"), {})


def test_a_variable_stands_for_what_the_file_says_now(tmp_path: Path) -> None:
    path, other = tmp_path / "env", tmp_path / "other"
    path.write_text("A=one\nB=${A} ${OUT}\n")
    other.write_text("OUT=file\nA=other\nC=${A} ${OUT}\n")
    environ = {"OUT": "outside"}
    files = EnvFiles([str(path), str(other)])
    files.apply(environ)
    assert environ == {"OUT": "outside", "A": "one", "B": "one outside", "C": "one outside"}
    path.write_text("A=two\nB=${A} ${OUT}\n")
    files.apply(environ)
    assert environ == {"OUT": "outside", "A": "two", "B": "two outside", "C": "two outside"}


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read .*: no such file"):
        EnvFiles([str(tmp_path / "env")]).apply({})


def test_the_environment_wins_and_the_file_may_change(tmp_path: Path) -> None:
    path = tmp_path / "env"
    path.write_text("A=file\nB=file\nC=file\n")
    environ = {"A": "environment"}
    files = EnvFiles([str(path)])
    files.apply(environ)
    assert environ == {"A": "environment", "B": "file", "C": "file"}
    environ["C"] = "application"
    path.write_text("A=new\nB=new\nC=new\nD=new\n")
    files.apply(environ)
    assert environ == {"A": "environment", "B": "new", "C": "application", "D": "new"}
    path.write_text("")
    files.apply(environ)
    assert environ == {"A": "environment", "C": "application"}


def test_the_first_file_wins(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"A={name}\n")
    environ: dict[str, str] = {}
    EnvFiles([str(tmp_path / "one"), str(tmp_path / "two")]).apply(environ)
    assert environ == {"A": "one"}


def test_assignments_replace_and_go(tmp_path: Path) -> None:
    """Servers D5: a server that is started by this one gets the environment from before."""
    path = tmp_path / "env"
    path.write_text("A=file\nB=file\n")
    environ = {"C": "before", "D": "before"}
    files = EnvFiles([str(path)])
    files.apply(environ, ("A=said", "C=said", "E="))
    assert environ == {"A": "said", "B": "file", "C": "said", "D": "before", "E": ""}
    assert files.environment.original(environ) == {"C": "before", "D": "before"}
    path.write_text("F=file")
    files.apply(environ, ("D=said",))
    assert environ == {"C": "before", "D": "said", "F": "file"}
    assert files.environment.original(environ) == {"C": "before", "D": "before"}
