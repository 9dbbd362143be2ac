"""From the command line to the page, with a fake contestant and, where it says so, a fake load."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from synthetic import measurement, run_of
from test_launch import members, wait_for

from citius_lab import paths, record
from citius_lab.cli import lab
from citius_lab.errors import LoadError
from citius_lab.judge import analyse, figures
from citius_lab.measure import drive
from citius_lab.report import page as report
from citius_lab.report import terminal as report_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
OWN = ["--contestants", str(HERE / "contestants")]


def invoke(*words: str) -> Result:
    return CliRunner().invoke(lab, [*OWN, *words], prog_name="citius lab")


def own_copy(out: Path) -> list[str]:
    """Copy the fakes beside ``out``: then what they start is told from another run's by its path."""
    copy = out.parent / "contestants"
    shutil.copytree(HERE / "contestants", copy, dirs_exist_ok=True)
    return ["--contestants", str(copy)]


def quick(out: Path, *names: str, seconds: float = 4) -> Result:
    only = [word for name in names for word in ("--only", name)]
    own = own_copy(out)
    return invoke(*own, "run", "quick", "--out", str(out), "--time-budget", str(seconds), *only)


@pytest.mark.usefixtures("fake_load", "all_cpus", "short_windows")
def test_plans_launches_drives_records_analyses_and_reports(tmp_path: Path) -> None:
    done = quick(tmp_path / "out", "fake")
    assert done.exit_code == 0, done.output
    assert "requests/s (quick: closed loop)" in done.output
    results = record.load(tmp_path / "out")
    measured = results.of_kind("measurement")
    assert {(entry["case"], entry["pipeline"]) for entry in measured} == {
        ("hello", 1),
        ("hello", 24),
        ("fibonacci", 1),
    }
    (part,) = results.run["plan"]["parts"]
    assert part["rounds"] >= 3
    firsts = [entry for entry in measured if not entry["again"]]
    assert len(firsts) == 3 * part["rounds"]
    # The noise floor: a case of each class once more.
    assert len(measured) == 5 * part["rounds"]
    for entry in measured:
        assert entry["fault"] is None, entry
    # A window of 80 ms may see nothing on a busy machine; all those of a case together do.
    for case in {(entry["case"], entry["pipeline"]) for entry in measured}:
        ours = [entry for entry in measured if (entry["case"], entry["pipeline"]) == case]
        assert sum(entry["load"]["completed"] for entry in ours) > 0, ours
        assert sum(entry["usage"]["server_cpu_s"] for entry in ours) > 0, ours
    assert results.of_kind("end") == [results.records[-1]]
    page = (tmp_path / "out" / "report.html").read_text()
    # Two cases with four plots each; hello before and after, in two plots, in the pipelined section.
    assert page.count("<figure") == 12


@pytest.mark.usefixtures("all_cpus")
def test_the_real_generator_measures_the_fake_contestant(tmp_path: Path) -> None:
    try:
        drive.load_command()
    except LoadError as error:
        pytest.skip(str(error))
    done = quick(tmp_path / "out", "fake")
    assert done.exit_code == 0, done.output
    analysis = analyse.analyse(record.load(tmp_path / "out"))
    hello = analysis.figures["quick/closed", "hello", "fake"]
    assert hello.completed > 100
    assert hello.verdict.word != figures.FAILED, hello.verdict
    assert hello.p50_ms is not None
    assert 0.01 < hello.p50_ms < 1000


@pytest.mark.usefixtures("fake_load", "all_cpus", "brief")
def test_wrong_answers_are_failed_figures_and_the_rest_goes_on(tmp_path: Path) -> None:
    done = quick(tmp_path / "out", "wrong", "fake", seconds=3)
    assert done.exit_code == 0, done.output
    found = analyse.analyse(record.load(tmp_path / "out")).figures
    wrong = found["quick/closed", "fibonacci", "wrong"].verdict
    assert wrong.word == figures.FAILED
    assert "expected b'OK', got b'?'" in str(wrong.reasons[0])
    assert found["quick/closed", "hello", "wrong"].verdict.word != figures.FAILED
    assert found["quick/closed", "fibonacci", "fake"].verdict.word != figures.FAILED


@pytest.mark.usefixtures("fake_load", "all_cpus", "brief")
def test_a_contestant_that_dies_is_reported_and_leaves_nobody(tmp_path: Path) -> None:
    done = quick(tmp_path / "out", "dies", "fake", seconds=3)
    assert done.exit_code == 0, done.output
    assert "dies ended with code 7" in done.output
    found = analyse.analyse(record.load(tmp_path / "out")).figures
    assert all(
        figure.verdict.word == figures.FAILED
        for figure in found.values()
        if figure.contestant == "dies"
    )
    assert members(str(tmp_path)) == []


@pytest.mark.usefixtures("fake_load", "all_cpus", "brief")
def test_a_contestant_that_does_not_start_is_reported(tmp_path: Path) -> None:
    done = quick(tmp_path / "out", "never-listens", "fake", seconds=3)
    assert done.exit_code == 0, done.output
    assert "no licence found" in done.output
    assert "failed" in done.output


def command_of_a_run(out: Path) -> list[str]:
    words = [*own_copy(out), "run", "quick", "--out", str(out)]
    words += ["--time-budget", "60", "--only", "fake"]
    return [sys.executable, "-m", "citius_lab", *words]


def run_in_a_process(
    out: Path, *, at_sigint: signal.Handlers = signal.SIG_DFL
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command_of_a_run(out),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # Tests that run in the background of a shell inherit an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, at_sigint),
    )


def wait_for_a_figure(out: Path) -> bool:
    """Wait for a measurement that is not of the noise floor alone."""
    lines = out / "records.jsonl"
    pattern = re.compile(r'"kind":"measurement".*"again":false')
    return wait_for(lambda: lines.exists() and pattern.search(lines.read_text()), 60)


@pytest.mark.usefixtures("fake_load")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("records_before", [0, 2])
def test_an_interrupt_keeps_the_records_and_leaves_nobody(
    tmp_path: Path, number: signal.Signals, records_before: int
) -> None:
    out = tmp_path / "out"
    process = run_in_a_process(out)
    lines = out / "records.jsonl"
    assert wait_for(lambda: lines.exists() and lines.read_text().count("\n") >= records_before, 60)
    time.sleep(0.3)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in output
    assert wait_for(lambda: members(str(tmp_path)) == [])
    if records_before:
        assert process.returncode == 130
        assert "interrupted; the records are kept" in output
        assert record.load(out).of_kind("end")[0]["interrupted"]
        again = invoke("report", str(out))
        assert again.exit_code == 0, again.output


@pytest.mark.usefixtures("fake_load")
def test_sigint_ends_what_a_shell_runs_in_the_background(tmp_path: Path) -> None:
    """Such a process begins with SIGINT ignored: it measured to its end."""
    out = tmp_path / "out"
    process = run_in_a_process(out, at_sigint=signal.SIG_IGN)
    assert wait_for_a_figure(out)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "interrupted; the records are kept" in output
    assert (out / "report.html").is_file()


@pytest.mark.usefixtures("fake_load")
def test_ctrl_c_in_a_terminal_draws_what_there_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with terminal(*command_of_a_run(out)) as (process, keyboard, shown):
        assert wait_for_a_figure(out)
        os.write(keyboard, b"\x03")
        assert process.wait(60) == 130, shown
    said = shown.getvalue().decode().replace("\r\n", "\n")
    assert said.endswith(
        f"report: {out}/report.html\n"
        f"interrupted; the records are kept: citius lab resume {out} goes on\n"
    )
    assert "Traceback" not in said
    assert (out / "report.html").is_file()
    assert wait_for(lambda: members(str(tmp_path)) == [])
    # The line of progress fits, so that taking it away leaves nothing.
    progress = [line for line in re.split(r"\n|\x1b\[2K", said) if "≤" in line]
    assert progress
    assert all(re.search(r"\d left", line) for line in progress), progress


@contextlib.contextmanager
def terminal(*command: str) -> Iterator[tuple[subprocess.Popen[bytes], int, io.BytesIO]]:
    """Run a command in a terminal of 80 columns: its process, what types, and what is shown."""
    keyboard, screen = os.openpty()
    termios.tcsetwinsize(screen, (25, 80))

    def become_its_foreground() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command,
        stdin=screen,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
        preexec_fn=become_its_foreground,
    )
    os.close(screen)
    shown = io.BytesIO()

    def copy() -> None:
        with contextlib.suppress(OSError):  # EIO: no process has the terminal open any more
            while piece := os.read(keyboard, 65536):
                shown.write(piece)

    copying = threading.Thread(target=copy)
    copying.start()
    try:
        yield process, keyboard, shown
    finally:
        process.kill()
        process.wait()
        copying.join(20)
        os.close(keyboard)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A result folder made of text alone."""
    run = run_of(["uvicorn", "go-net-http"], baseline="uvicorn")
    run["contestants"][0]["label"] = "U <&>"
    records = [
        measurement(name, number, rate=rate * (1 + number / 100))
        for name, rate in (("uvicorn", 20_000.0), ("go-net-http", 45_000.0))
        for number in range(3)
    ]
    records.append({"kind": "left out", "contestant": "rust-axum", "reason": "needs cargo"})
    records.append({"kind": "end", "interrupted": False})
    (tmp_path / "run.json").write_text(json.dumps(run))
    (tmp_path / "records.jsonl").write_text("\n".join(map(json.dumps, records)))
    return tmp_path


def test_a_report_is_a_function_of_the_records(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def page() -> str:
        results = record.load(folder)
        return report.html(results, analyse.analyse(results))

    first = page()
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert page() == first
    assert "1970-01-01 00:00 UTC" in first


def test_a_report_needs_nothing_from_elsewhere(folder: Path) -> None:
    results = record.load(folder)
    page = report.html(results, analyse.analyse(results))
    assert not re.search(r"https?://|//[a-z]|src=|<link|<script |@import|url\(", page)
    assert page.count("<script") == 1  # its own
    assert "U &lt;&amp;&gt;" in page
    assert "needs cargo" in page


def test_a_terminal_table_fits_into_100_columns(folder: Path) -> None:
    from rich.console import Console

    results = record.load(folder)
    console = Console(width=100, record=True, file=io.StringIO())
    report_terminal.print_to(console, results, analyse.analyse(results))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 100
    assert re.search(r"hello +20\.2k ±\d%\?? +45\.4k ±\d%", text), text
    assert re.search(r"hello +1 #2 +2.25 #1", text), text
    assert "left out: rust-axum: needs cargo" in text


def test_a_run_interrupted_after_one_measurement_has_a_report(folder: Path) -> None:
    results = record.load(folder)
    only = results.records[0] | {"series": "pipelined", "pipeline": 24}
    page = report.html(
        record.Results(results.run, [only]), analyse.analyse(record.Results(results.run, [only]))
    )
    assert page.count("<figure") == 2
    assert "interrupted" in page


def test_a_line_that_was_cut_off_is_ignored(folder: Path) -> None:
    whole = len(record.load(folder).records)
    path = folder / "records.jsonl"
    path.write_text(path.read_text() + '\n{"kind":"measur')
    assert len(record.load(folder).records) == whole


def test_says_what_is_no_result_folder(tmp_path: Path) -> None:
    done = invoke("report", str(tmp_path))
    assert done.exit_code == 1
    assert "is not a result folder of the lab" in done.output


def test_refuses_to_mix_two_runs(folder: Path, fake_load: Path) -> None:
    done = quick(folder, "fake")
    assert done.exit_code == 1
    assert "holds the records of another run" in done.output


def test_refuses_a_baseline_that_was_not_measured(folder: Path) -> None:
    done = invoke("report", str(folder), "--baseline", "nginx")
    assert done.exit_code == 1
    assert "nginx was not measured in this run" in done.output


def test_names_who_there_is_when_a_name_is_unknown() -> None:
    for words in (["start", "nobody", "--port", "1"], ["build", "nobody"], ["verify", "nobody"]):
        done = invoke(*words)
        assert done.exit_code == 1
        assert "no contestant is called 'nobody'; there are" in done.output
        assert "fake" in done.output


def test_says_that_a_port_is_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = invoke("start", "fake", "--port", str(port))
    assert done.exit_code == 1
    assert f"port {port} of 127.0.0.1 is in use" in done.output


def test_says_that_there_is_no_load_generator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITIUS_LOAD", "/no/such/load")
    done = quick(tmp_path / "out", "fake")
    assert done.exit_code == 1
    assert "CITIUS_LOAD is '/no/such/load', which is not a command" in done.output
    assert not (tmp_path / "out").exists()


def test_start_becomes_the_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "citius_lab", *OWN, "start", "fake", "--port", str(port)]
    )
    try:

        def answers() -> bool:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                return False
            return True

        assert wait_for(answers, 60)
        words = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
        assert any(word.endswith("python-fake/server.py") for word in words)
    finally:
        process.kill()
        process.wait()


def test_verify_names_what_is_wrong() -> None:
    done = invoke("verify", "fake", "wrong")
    assert done.exit_code == 1
    assert "fake: 3 cases, ok" in done.output
    assert "fibonacci: fibonacci: expected b'OK', got b'?'" in done.output
    assert "not verified: wrong" in done.output


def test_list_says_what_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What others built and verified decides on the widths of columns, and on what is said.
    monkeypatch.setattr(paths, "default_build_root", lambda: tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    done = invoke("list")
    assert done.exit_code == 0
    assert re.search(r"fake +none +floor +ready", done.output), done.output
    assert invoke("verify", "fake").exit_code == 0
    done = invoke("list")
    assert re.search(r"fake +none +floor +\d+ +verified", done.output), done.output
    assert "without parse-msgpack, encode-json" in re.sub(r"\s+", " ", done.output)
