"""What goes wrong around a run: a full disk, signals at any moment, a resumed run, odd requests."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from synthetic import own_experiments, results, rounds
from test_end_to_end import invoke, own_copy, quick
from test_launch import members, wait_for

from citius_lab import record
from citius_lab.commands import run as measure
from citius_lab.definitions import experiments, protocols
from citius_lab.errors import LabError, LaunchError, RecordError
from citius_lab.measure import plan
from citius_lab.measure.drive import NO_ANSWER
from citius_lab.measure.run import Run

if TYPE_CHECKING:
    from pathlib import Path

LAB = [sys.executable, "-m", "citius_lab"]


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    words = ["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.usefixtures("fake_load")
@pytest.mark.skipif(not can_mount(), reason="mounting a tmpfs in a namespace is not allowed here")
def test_a_full_disk_is_named_and_loses_no_record(tmp_path: Path) -> None:
    small, kept = tmp_path / "small", tmp_path / "kept"
    small.mkdir()
    words = " ".join(
        [*LAB, *own_copy(small), "run", "quick", "--only", "fake", "--budget", "8", "--out"]
    )
    script = (
        f"mount -t tmpfs -o size=40k tmpfs {small}\n"
        f"{words} {small}/out; code=$?\n"
        f"cp -r {small}/out {kept}; exit $code"
    )
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    # Where few rounds fit into the time, it is the report that does not fit any more.
    full = ("is full; what was recorded before is kept", "the report cannot be written")
    assert any(words in output for words in full), output
    assert "Traceback" not in output
    assert members(str(tmp_path)) == []
    lines = (kept / "records.jsonl").read_text().splitlines()
    assert lines
    assert next(json.loads(line)["kind"] for line in lines) == "start"
    again = invoke("report", str(kept))
    assert again.exit_code == 0, again.output


def test_a_line_that_does_not_fit_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with record.Recorder(tmp_path / "out") as recorder:
        recorder.head({"name": "trial"})
        recorder.write("start", contestant="a")
        whole = (tmp_path / "out" / "records.jsonl").read_bytes()
        real = os.write

        def half(descriptor: int, data: bytes) -> int:
            if len(data) < 20:
                raise OSError(28, "No space left on device")
            return real(descriptor, data[: len(data) // 2])

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(RecordError, match=r"is full; .* citius lab resume"):
            recorder.write("start", contestant="b" * 100)
        monkeypatch.undo()
        assert (tmp_path / "out" / "records.jsonl").read_bytes() == whole


@pytest.mark.usefixtures("fake_load")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = invoke("run", "quick", "--only", "fake", "--out", str(tmp_path / "file" / "out"))
    assert done.exit_code == 1
    assert "cannot be written" in done.output


def test_an_unknown_experiment_is_said_with_those_there_are() -> None:
    done = invoke("run", "techempower")
    assert done.exit_code == 1
    assert "no experiment is called 'techempower'; there are quick, rest" in done.output


def interrupted_run(out: Path, after_s: float) -> tuple[int, str]:
    words = [*LAB, *own_copy(out), "run", "quick", "--out", str(out)]
    process = subprocess.Popen(
        [*words, "--budget", "60", "--only", "fake"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


@pytest.mark.usefixtures("fake_load")
@pytest.mark.parametrize("after_s", [0.3, 0.9, 1.6, 2.6])
def test_an_interrupt_at_any_moment_leaves_nobody_and_whole_lines(
    tmp_path: Path, after_s: float
) -> None:
    out = tmp_path / "out"
    code, output = interrupted_run(out, after_s)
    assert code in (1, 130, -2), output
    # Before the interpreter has come to the lab's own code, Python itself says how it ended.
    assert "Traceback" not in output or "citius_lab" not in output.partition("Traceback")[2], output
    assert wait_for(lambda: members(str(tmp_path)) == [])
    if (out / "records.jsonl").exists():
        for line in (out / "records.jsonl").read_text().splitlines():
            json.loads(line)


@pytest.mark.usefixtures("fake_load", "all_cpus", "brief")
def test_an_interrupted_run_is_resumed_to_its_end(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = quick(out, "fake", seconds=2)
    assert done.exit_code == 0, done.output
    whole = record.load(out)
    lines = (out / "records.jsonl").read_text().splitlines(keepends=True)
    kept = lines[: len(lines) // 2]
    (out / "records.jsonl").write_text("".join(kept) + '{"kind":"measur')

    own = ["--contestants", str(tmp_path / "contestants")]
    again = invoke(*own, "resume", str(out))
    assert again.exit_code == 0, again.output
    resumed = record.load(out)
    assert (out / "records.jsonl").read_text().startswith("".join(kept))
    cells = [
        [
            (one["round"], one["series"], one["case"], one["again"])
            for one in results.of_kind("measurement")
        ]
        for results in (whole, resumed)
    ]
    assert sorted(cells[0]) == sorted(cells[1])
    third = invoke(*own, "resume", str(out))
    assert third.exit_code == 1
    assert "came to its end; nothing is left to do" in third.output


@pytest.mark.usefixtures("fake_load", "all_cpus", "brief")
def test_a_rerun_says_what_reproduced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert quick(out, "fake", seconds=2).exit_code == 0
    own = ["--contestants", str(tmp_path / "contestants")]
    done = invoke(*own, "rerun", str(out), "--out", str(tmp_path / "second"))
    assert done.exit_code == 0, done.output
    assert re.search(r"\d of \d figures reproduced, by their rates", done.output), done.output
    assert re.search(r"^first: .* CPUs, ", done.output, re.MULTILINE), done.output
    unknown = invoke(*own, "rerun", str(out), "--only", "wrong", "--out", str(tmp_path / "third"))
    assert unknown.exit_code == 1
    assert f"{out} has no figure of wrong; it has fake" in " ".join(unknown.output.split())
    compared = invoke("compare", str(out), str(tmp_path / "second"))
    assert compared.exit_code == 0, compared.output
    assert "figures are the same within their intervals, by their rates" in compared.output


def test_a_kept_result_is_repeated_with_its_contestants_and_its_workers() -> None:
    """What is kept has no blocks in its plan; `--workers` is in its series."""
    series = protocols.Series("wrk", "wrk", "w", protocols.Load(), ("hello",), workers=8)
    found = results([*rounds("b"), *rounds("a")], series)
    found.run["experiments"][0]["name"] = "rest"
    found.records.append({"kind": "left out", "contestant": "c", "reason": "no compiler"})
    kept = plan.Plan.from_record(found.run["plan"])
    assert measure._measured(found, kept) == ["b", "a"]
    assert experiments.workers_of(found.run, own_experiments()) == 8
    found.run["experiments"][0]["series"][0]["workers"] = 1
    assert experiments.workers_of(found.run, own_experiments()) is None


@pytest.mark.usefixtures("fake_load", "all_cpus", "brief")
def test_two_processes_cannot_write_to_one_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert quick(out, "fake", seconds=2).exit_code == 0
    path = out / "records.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    before = path.read_text()
    with record.Recorder(out, resume=True):
        again = invoke("--contestants", str(tmp_path / "contestants"), "resume", str(out))
    assert again.exit_code == 1
    assert "another citius lab writes to" in again.output
    assert path.read_text() == before


@pytest.mark.parametrize("line", ["7", "[]", "null", '"text"', "{}"])
def test_a_record_that_is_no_object_is_said_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"schema": record.SCHEMA}))
    (tmp_path / "records.jsonl").write_text('{"kind":"end"}\n' + line + "\n")
    with pytest.raises(LabError, match=r"records\.jsonl, line 2: expected an object"):
        record.load(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(LabError, match="expected an object, got list"):
        record.load(tmp_path)


def test_an_empty_list_of_contestants_is_said(tmp_path: Path) -> None:
    done = invoke("run", "quick", "--only", ",", "--out", str(tmp_path / "out"))
    assert done.exit_code == 1
    assert "expected the names of contestants" in done.output


def test_a_contestant_that_hangs_is_given_up_when_the_budget_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(left_s=lambda now: left_s)
    block = SimpleNamespace(contestant="slow")
    run = Run.__new__(Run)
    monkeypatch.setattr(run, "_clock", clock, raising=False)
    monkeypatch.setattr(run, "_hung", set[str](), raising=False)
    left_s = 0.0
    run._give_up_if_hung(block)  # it answers: the rounds that a verdict needs are made
    run._note_hang(block, f"{NO_ANSWER}: timed out")
    with pytest.raises(LaunchError, match="slow does not answer, and its time is over"):
        run._give_up_if_hung(block)
    left_s = 1.0
    run._give_up_if_hung(block)
    left_s = 0.0
    run._note_hang(block, None)
    run._give_up_if_hung(block)
