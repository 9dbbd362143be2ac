from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from citius_lab import contestants, experiments, workloads
from citius_lab.errors import BuildError, ContestantError

if TYPE_CHECKING:
    from pathlib import Path

DEFINITION = """
name = "probe"
language = "Python"
label = "a probe"
note = "for tests"
json = "none"
records = "none"
start = ["{python}", "{source}/x.py", "--port", "{port}"]
workloads = ["hello"]
"""


def define(folder: Path, text: str = DEFINITION) -> contestants.Contestant:
    source = folder / "probe"
    source.mkdir(exist_ok=True)
    (source / "contestant.toml").write_text(text)
    return contestants.load([folder], folder / "build")["probe"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DEFINITION.replace('json = "none"\n', ""), "the key 'json' is missing"),
        (DEFINITION + "colour = 1\n", "unknown key 'colour'"),
        (DEFINITION.replace('["hello"]', '["helo"]'), "unknown workload 'helo'; known: hello,"),
        (DEFINITION + 'rules = "mine"\n', "rules are 'mine', expected production, tuned, floor"),
        ("name = ", "contestant.toml: "),
    ],
)
def test_says_what_is_wrong_with_a_definition(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ContestantError) as raised:
        define(tmp_path, text)
    assert message in str(raised.value)


def test_fills_the_placeholders(tmp_path: Path) -> None:
    command = define(tmp_path).command(port=81, workers=3)
    assert command[1:] == [f"{tmp_path}/probe/x.py", "--port", "81"]


def test_a_missing_toolchain_is_named(tmp_path: Path) -> None:
    contestant = define(tmp_path, DEFINITION + 'needs = ["cobol-compiler"]\n')
    assert contestant.missing() == "needs cobol-compiler, which is not on PATH"
    with pytest.raises(BuildError, match="cobol-compiler"):
        contestant.make()


def test_a_missing_python_is_named(tmp_path: Path) -> None:
    text = DEFINITION + '[python]\nversion = "2.3"\nrequirements = "r.txt"\n'
    assert "needs Python 2.3" in str(define(tmp_path, text).missing())


def test_builds_once_and_again_when_a_source_changes(tmp_path: Path) -> None:
    contestant = define(tmp_path, DEFINITION + 'build = [["touch", "{build}/made"]]\n')
    assert not contestant.built()
    contestant.make()
    assert contestant.built()
    assert (contestant.build_dir / "made").exists()
    (contestant.source / "x.py").write_text("pass")
    assert not contestant.built()


def test_a_build_that_fails_shows_the_end_of_its_log(tmp_path: Path) -> None:
    command = '["sh", "-c", "echo no such header; exit 3"]'
    contestant = define(tmp_path, DEFINITION + f"build = [{command}]\n")
    with pytest.raises(BuildError, match=r"sh ended with code 3(.|\n)*no such header"):
        contestant.make()
    assert not contestant.built()
    assert contestant.last_failure() == "no such header"


def test_a_build_command_that_is_missing_is_named(tmp_path: Path) -> None:
    contestant = define(tmp_path, DEFINITION + 'build = [["no-such-tool"]]\n')
    with pytest.raises(BuildError, match="no-such-tool"):
        contestant.make()


@pytest.fixture(scope="module")
def all_of_them() -> dict[str, contestants.Contestant]:
    return contestants.load([contestants.lab_root() / "contestants"])


def test_every_definition_can_be_read_and_is_in_its_folder(
    all_of_them: dict[str, contestants.Contestant],
) -> None:
    assert {contestant.source.name.endswith(name) for name, contestant in all_of_them.items()} == {
        True
    }
    assert set(experiments.QUICK.contestants) <= set(all_of_them)


def test_all_but_the_floor_do_every_workload(
    all_of_them: dict[str, contestants.Contestant],
) -> None:
    for contestant in all_of_them.values():
        if contestant.rules != "floor":
            assert set(contestant.workloads) == set(workloads.WORKLOADS), contestant.name


def test_every_python_requirement_is_pinned(
    all_of_them: dict[str, contestants.Contestant],
) -> None:
    for contestant in all_of_them.values():
        if contestant.python is not None:
            lines = (contestant.source / contestant.requirements).read_text().split()
            assert all("==" in line for line in lines), contestant.name


def test_every_contestant_explains_itself(all_of_them: dict[str, contestants.Contestant]) -> None:
    for contestant in all_of_them.values():
        assert (contestant.source / "README.md").is_file(), contestant.name
