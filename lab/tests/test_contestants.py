from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from synthetic import own_experiments

from citius_lab import paths
from citius_lab.definitions import contestants
from citius_lab.definitions.workloads import contract
from citius_lab.errors import BuildError, DefinitionError

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
        (DEFINITION + "colour = 1\n", "unknown key 'colour'; expected one of name, language,"),
        (DEFINITION.replace('"a probe"', "7"), "label: expected a string, got 7"),
        (
            DEFINITION + "wires = 'h2'\n",
            "wires: expected a list, each item one of 'http/1.1', 'h2c',",
        ),
        (DEFINITION + "[python]\nversion = 3.12\n", "python.version: expected a string, got 3.12"),
        (
            DEFINITION.replace('["hello"]', '["helo"]'),
            "workloads[0]: unknown 'helo'; known: hello,",
        ),
        (
            DEFINITION + 'rules = "mine"\n',
            "rules: expected one of 'production', 'tuned', 'floor', got 'mine'",
        ),
        (
            DEFINITION + 'workers = "fibres"\n',
            "workers: expected one of 'processes', 'threads', got 'fibres'",
        ),
        (
            DEFINITION + 'lacks = ["reused"]\n',
            "lacks[0]: expected one of 'pipelined', got 'reused'",
        ),
        (
            DEFINITION + 'wires = ["ws"]\n',
            "a workload of requests needs wires of these alone, not 'hello' and ws",
        ),
        (DEFINITION + 'of = "nobody"\n', "it is a variant of 'nobody', but"),
        ("name = ", "contestant.toml: "),
    ],
)
def test_says_what_is_wrong_with_a_definition(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        define(tmp_path, text)
    assert message in str(raised.value)


def test_fills_the_placeholders(tmp_path: Path) -> None:
    command = define(tmp_path).command(port=81, workers=3)
    assert command[1:] == [f"{tmp_path}/probe/x.py", "--port", "81"]


def test_the_python_of_contestants_can_be_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands, the version and what a build is made from follow it; the lab stays where it is."""
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho Snake 9.8.7 9 8\n")
    other.chmod(0o755)
    text = DEFINITION + '[python]\nversion = "running"\n' + '[env]\nP = "{packages}"\n'
    here = define(tmp_path, text).fingerprint()
    monkeypatch.setenv(contestants.PYTHON, str(other))
    contestant = define(tmp_path, text)
    assert contestant.command(port=81, workers=3)[0] == str(other)
    assert contestant.environment()["P"].endswith("/lib/python9.8/site-packages")
    assert contestants.python_text() == "Snake 9.8.7"
    assert contestants.citius_command() is None
    assert contestant.fingerprint() != here


def test_threads_take_part_where_the_python_has_no_gil(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contestant = define(tmp_path, DEFINITION + 'needs = ["no-gil"]\n')
    reason = contestant.missing()
    assert reason is not None
    assert "needs a CPython without a GIL, which CITIUS_LAB_PYTHON names" in reason
    other = tmp_path / "python3.14t"
    other.write_text("#!/bin/sh\necho CPython 3.14.3 without a GIL 3 14\n")
    other.chmod(0o755)
    monkeypatch.setenv(contestants.PYTHON, str(other))
    assert contestant.missing() is None
    assert contestants.python_text() == "CPython 3.14.3 without a GIL"
    assert contestants.python_version() == (3, 14)


def test_what_is_no_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(contestants.PYTHON, "/bin/false")
    with pytest.raises(DefinitionError, match="CITIUS_LAB_PYTHON is '/bin/false', which is not"):
        contestants.python_text()


def test_a_missing_toolchain_is_named(tmp_path: Path) -> None:
    contestant = define(tmp_path, DEFINITION + 'needs = ["cobol-compiler"]\n')
    assert contestant.missing() == "needs cobol-compiler, which is not on PATH"
    with pytest.raises(BuildError, match="cobol-compiler"):
        contestant.make()


def test_a_missing_python_is_named(tmp_path: Path) -> None:
    text = DEFINITION + '[python]\nversion = "2.3"\nrequirements = "r.txt"\n'
    assert "needs Python 2.3" in str(define(tmp_path, text).missing())


def test_a_variant_takes_over_what_it_does_not_say_and_is_not_built_again(tmp_path: Path) -> None:
    base = define(tmp_path, DEFINITION + 'build = [["touch", "{build}/made", "{source}/here"]]\n')
    folder = tmp_path / "two"
    folder.mkdir()
    start = 'start = ["{build}/made", "{source}"]'
    (folder / "contestant.toml").write_text(f'of = "probe"\nname = "two"\n{start}\n')
    variant = contestants.load([tmp_path], tmp_path / "build")["two"]
    assert (variant.label, variant.workloads) == (base.label, base.workloads)
    assert variant.command(port=1, workers=1) == [f"{tmp_path}/build/probe/made", str(folder)]
    variant.make()
    assert base.built()
    assert (base.source / "here").exists()
    (base.source / "x.py").write_text("pass")
    assert not variant.built()


def test_a_variant_of_a_variant_is_refused(tmp_path: Path) -> None:
    define(tmp_path)
    for name, of in (("two", "probe"), ("three", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "contestant.toml").write_text(f'of = "{of}"\nname = "{name}"\n')
    with pytest.raises(DefinitionError, match="'two' is a variant itself; name 'probe'"):
        contestants.load([tmp_path])


def test_a_missing_pypy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = DEFINITION + '[python]\nversion = "pypy3"\nrequirements = "r.txt"\n'
    assert "pypy3-venv" in str(define(tmp_path, text).missing())


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
    with pytest.raises(
        BuildError, match=r"^probe does not build: sh ended with code 3: no such header; "
    ):
        contestant.make()
    assert not contestant.built()
    assert contestant.last_failure() == "no such header"


def test_a_build_command_that_is_missing_is_named(tmp_path: Path) -> None:
    contestant = define(tmp_path, DEFINITION + 'build = [["no-such-tool"]]\n')
    with pytest.raises(BuildError, match="no-such-tool"):
        contestant.make()


@pytest.fixture(scope="module")
def all_of_them() -> dict[str, contestants.Contestant]:
    return contestants.load([paths.lab_root() / "contestants"])


def test_every_definition_can_be_read_and_is_in_its_folder(
    all_of_them: dict[str, contestants.Contestant],
) -> None:
    assert {contestant.source.name.endswith(name) for name, contestant in all_of_them.items()} == {
        True
    }
    assert set(own_experiments()["quick"].contestants) <= set(all_of_them)


def test_all_but_the_floor_do_every_workload_or_say_why_not(
    all_of_them: dict[str, contestants.Contestant],
) -> None:
    for contestant in all_of_them.values():
        asked = {name for name, one in contract().workloads.items() if not one.is_optional}
        done = asked & set(contestant.workloads)
        if contestant.rules == "floor" or done in (asked, set()):
            continue  # or it takes part in an experiment that asks something else
        text = (contestant.build_source / "README.md").read_text()
        text += (contestant.source / "README.md").read_text()
        # One that sleeps keeps its worker from the other requests: that is not the workload.
        expected = {
            "`async` is left out": asked - {"async"},
            "Only `hello` is there": {"hello"},
            "Only `hello` and `transfer-data` are there": {"hello", "transfer-data"},
            "Only procedures are there": {
                name for name in asked if contract().workloads[name].is_procedure
            },
        }
        assert any(words in text and done == rest for words, rest in expected.items()), (
            contestant.name
        )


def test_no_start_passes_through_a_build_that_may_not_exist(
    all_of_them: dict[str, contestants.Contestant],
) -> None:
    """A contestant without build steps has no build folder: what is beside it is under {builds}."""
    for one in all_of_them.values():
        words = [*one.start, *one.start_tls, *one.start_h2c, *one.start_rpc, *one.version]
        assert not any("{build}/.." in word for word in words), one.name


def test_every_python_requirement_is_pinned(
    all_of_them: dict[str, contestants.Contestant],
) -> None:
    for contestant in all_of_them.values():
        if contestant.python is not None:
            lines = (contestant.build_source / contestant.python.requirements).read_text().split()
            assert all("==" in line for line in lines), contestant.name


def test_every_contestant_explains_itself(all_of_them: dict[str, contestants.Contestant]) -> None:
    for contestant in all_of_them.values():
        assert (contestant.source / "README.md").is_file(), contestant.name
