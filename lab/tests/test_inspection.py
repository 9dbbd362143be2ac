from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from citius_lab.cli import lab
from citius_lab.definitions import contestants
from citius_lab.verify import inspection

SERVER = Path(__file__).parent / "contestants" / "python-fake" / "server.py"


def define(folder: Path, fault: str = "", more: str = "") -> contestants.Contestant:
    source = folder / "probe"
    source.mkdir(exist_ok=True)
    (source / "contestant.toml").write_text(f"""
name = "probe"
language = "Python"
label = "a probe"
note = "for tests"
json = "none"
records = "none"
start = [
    "{{python}}", "{SERVER}", "--port", "{{port}}", "--workers", "{{workers}}", "--fault", "{fault}",
]
workloads = ["hello", "fibonacci"]
{more}
""")
    return contestants.load([folder], folder / "build")["probe"]


def test_weighs_one_worker_and_two(tmp_path: Path) -> None:
    finding = inspection.inspect(define(tmp_path))
    assert finding.faults == ()
    assert 3_000 < (finding.one_worker_kib or 0) < 200_000
    assert 3_000 < (finding.two_workers_kib or 0) < 200_000


def test_a_server_that_cannot_have_two_workers_fails(tmp_path: Path) -> None:
    finding = inspection.inspect(define(tmp_path, "alone"))
    (fault,) = finding.faults
    assert fault.startswith("with 2 workers: ")
    assert "this edition has one worker" in fault
    assert finding.one_worker_kib is not None
    assert finding.two_workers_kib is None


def test_a_wrong_answer_is_found_with_either_number_of_workers(tmp_path: Path) -> None:
    one, *_, two = inspection.inspect(define(tmp_path, "wrong")).faults
    assert one.startswith("fibonacci: ")
    assert two == f"with 2 workers: {one}"


def test_a_server_that_has_what_it_is_said_to_lack_fails(tmp_path: Path) -> None:
    finding = inspection.inspect(define(tmp_path, more='lacks = ["pipelined"]'))
    assert finding.faults == ("pipelined: the definition says it lacks this, and it does not",)


def test_a_finding_holds_for_the_definition_it_was_made_of(tmp_path: Path) -> None:
    contestant = define(tmp_path)
    assert inspection.last(contestant) is None
    finding = inspection.inspect(contestant)
    assert inspection.last(contestant) == finding
    assert inspection.last(define(tmp_path, more='rules = "floor"')) is None


def test_a_damaged_finding_is_none(tmp_path: Path) -> None:
    contestant = define(tmp_path)
    inspection.inspect(contestant)
    (contestant.build_dir / "verify-probe.json").write_text('{"fingerprint"')
    assert inspection.last(contestant) is None


def test_list_shows_what_was_found(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    define(folder, "wrong")
    own = ["--contestants", str(folder)]
    try:
        assert CliRunner().invoke(lab, [*own, "verify", "probe"]).exit_code == 1
        output = CliRunner().invoke(lab, [*own, "list"]).output
    finally:
        contestant = contestants.load([folder])["probe"]
        for path in contestant.build_dir.iterdir():
            path.unlink()
        contestant.build_dir.rmdir()
    lines = output.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("probe "))
    # A narrow terminal folds the reason below the word.
    assert re.search(r"none +production +\d+ +fails:.*fibonacci", " ".join(lines[at : at + 3]))
    assert re.search(r"\+ \d+/process", lines[at + 1])
