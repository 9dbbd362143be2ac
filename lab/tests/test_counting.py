"""Instructions per request: counted under callgrind, kept beside the records, shown with CPU time."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from rich.console import Console
from synthetic import CLOSED, PIPELINED, SECTION, errors, own_experiments, results, rounds

from citius_lab import record
from citius_lab.answer import page as answer_page
from citius_lab.answer import tables
from citius_lab.cli import lab
from citius_lab.commands import count as counting
from citius_lab.commands import keep
from citius_lab.definitions import contestants
from citius_lab.definitions.protocols import Load, Series
from citius_lab.definitions.workloads import contract
from citius_lab.errors import LaunchError, LoadError
from citius_lab.judge import analyse, compare
from citius_lab.judge.figures import Count
from citius_lab.measure import drive
from citius_lab.measure.drive import Shot
from citius_lab.processes import callgrind
from citius_lab.report import page as report
from citius_lab.report import terminal
from citius_lab.report.sections import comparison

if TYPE_CHECKING:
    from citius_lab.record import Results

OWN = ["--contestants", str(Path(__file__).parent / "contestants")]
DUMP = "version: 1\nsummary: 177094\n\nfn=(1) main\n3 178263\ntotals: 178263\n"
# Two objects whose functions call each other.
CALLS = """\
positions: line
events: Ir
ob=(1) /usr/lib/libpython3.11.so
fn=(1) call
3 100
cob=(2) /x/citius/_core.cpython-311-x86_64-linux-gnu.so
cfn=(2) turn
calls=1 8
3 5000
ob=(2)
fn=(2)
8 40
+2 30
cob=(1)
cfn=(1)
calls=2 3
* 900
* 5
ob=(1)
fn=(3) other
-4 7
summary: 6082
"""


def count(
    contestant: str = "a", *each: float, fault: str | None = None, **more: Any
) -> dict[str, Any]:
    """A line of instructions.jsonl."""
    return {
        "kind": "instructions",
        "at": 0.0,
        "experiment": "trial",
        "series": "closed",
        "case": "hello",
        "contestant": contestant,
        "commit": "0123456789ab",
        "python": "CPython 3.14.3",
        "valgrind": "valgrind-3.19.0",
        "requests": 300,
        "per_request": list(each),
        "fault": fault,
        **more,
    }


def counted(*counts: dict[str, Any], names: str = "ab", **changes: Any) -> Results:
    found = results([one for name in names for one in rounds(name, **changes)])
    return replace(found, counts=list(counts))


def test_a_dump_counts_all_threads() -> None:
    assert callgrind.total_of(DUMP) == 177_094
    with pytest.raises(LaunchError, match="without its sum"):
        callgrind.total_of("version: 1\n")


def test_a_dump_counts_what_an_object_itself_executed() -> None:
    assert callgrind.within(CALLS, "/_core.") == 40 + 30 + 5


def test_go_sends_itself_no_signals_under_callgrind(tmp_path: Path) -> None:
    """Callgrind of valgrind 3.19 ended net/http in one count of three, at the signals of preemption."""
    words = callgrind.Callgrind(tmp_path).words()
    assert "GODEBUG=asyncpreemptoff=1" in words[: words.index("valgrind")]


def test_the_end_of_valgrind_itself_is_said(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("$ valgrind server\nlistening\n")
    assert callgrind.crash(log) is None
    said = "Callgrind: threads.c:247 (vgCallgrind_post_signal): Assertion 'x' failed."
    log.write_text(f"$ valgrind server\nBB# 1\n\n{said}\n\nhost stacktrace:\n==1==    at 0x58\n")
    assert callgrind.crash(log) == f"valgrind ended the server: {said}"


def test_what_a_machine_lacks_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert callgrind.missing() == (
        "counting instructions needs valgrind, which is not on PATH (Debian: valgrind)"
    )


def test_a_run_that_is_to_count_does_not_begin_without_valgrind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("citius_lab.processes.callgrind.missing", lambda: "no valgrind here")
    words = ["run", "quick", "--only", "fake", "--instructions", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(lab, [*OWN, *words])
    assert done.exit_code == 1
    assert "no valgrind here" in done.output
    assert not (tmp_path / "out").exists()


def test_a_figure_has_the_mean_of_two_counts_and_the_last_holds() -> None:
    found = counted(count("a", 1.0, 2.0), count("a", 10_000.0, 10_100.0), count("b", 9.0, 10.0))
    figures = analyse.analyse(found).figures
    own, other = (figures[SECTION, "hello", name].count for name in "ab")
    assert own is not None
    assert own.value == 10_050.0
    assert not own.is_doubtful
    assert other is not None
    assert other.is_doubtful
    assert analyse.analyse(counted()).figures[SECTION, "hello", "a"].count is None


@pytest.mark.parametrize("each", [(), (0.0, 5.0), (-3.0, 5.0)])
def test_no_count_has_a_reason(each: tuple[float, ...]) -> None:
    found = counted(count("a", *each)).counts
    figure = analyse.analyse(counted(*found)).figures[SECTION, "hello", "a"]
    assert figure.count is not None
    assert figure.count.value is None
    assert figure.count.fault == "nothing was counted"


def test_the_report_has_a_column_of_them_beside_cpu_time() -> None:
    found = counted(count("a", 14_451.0, 14_451.0), count("b", fault="it compiles while it serves"))
    page = report.html(found, analyse.analyse(found))
    assert '<th scope="col">instructions/request</th>' in page
    assert page.index(">CPU µs/request<") < page.index(">instructions/request<")
    assert 'data-label="instructions/request" data-sort="14451">14.5k</td>' in page
    assert 'data-label="instructions/request">–</td>' in page
    assert "No instructions of b (it compiles while it serves)." in page
    without = counted()
    assert "instructions/request" not in report.html(without, analyse.analyse(without))


def test_contestants_that_nobody_counted_are_named() -> None:
    found = counted(count("a", 14_451.0, 14_452.0))
    page = report.html(found, analyse.analyse(found))
    assert "No instructions of b (not counted yet)." in page


def test_counts_that_differ_are_marked() -> None:
    found = counted(count("a", 10_000.0, 11_000.0), count("b", 10_000.0, 10_050.0))
    page = report.html(found, analyse.analyse(found))
    assert "10.5k? <small>counts differ by 10%</small>" in page
    assert ">10.0k<" in page


def test_a_pipelined_series_has_a_count_of_its_own() -> None:
    found = results([*rounds("a"), *rounds("a", series="pipelined", pipeline=24)])
    found = replace(found, counts=[count("a", 900.0, 900.0, series="pipelined")])
    page = report.html(found, analyse.analyse(found))
    assert page.count('<th scope="col">instructions/request</th>') == 1
    assert ">900</td>" in page


def test_the_terminal_has_a_table_of_them() -> None:
    found = counted(count("a", 14_451.0, 14_451.0))
    out = io.StringIO()
    terminal.print_to(Console(file=out, width=100), found, analyse.analyse(found))
    table = out.getvalue().partition("instructions per request, server")[2]
    assert table.splitlines()[2].split() == ["hello", "14.5k", "–"]


def test_two_runs_are_compared_by_them_exactly() -> None:
    first = counted(count("a", 10_000.0, 10_000.0), count("b", 5_000.0, 5_000.0))
    second = counted(count("a", 10_100.0, 10_100.0), count("b", 5_500.0, 5_500.0))
    found = compare.runs(*map(analyse.analyse, (first, second)))
    by_name = {one.key[2]: one for one in found}
    assert by_name["a"].count_ratio == pytest.approx(1.01)
    assert by_name["a"].has_same_count
    assert not by_name["b"].has_same_count
    assert compare.same_counts(found) == (1, 2)
    page = comparison.html(first, second, found, ("first", "second"))
    assert "instructions per request, the second over the first" in page
    assert compare.same_counts(compare.runs(*map(analyse.analyse, (first, counted())))) == (0, 0)


def write(found: Results, folder: Path) -> Path:
    """Write a result folder."""
    folder.mkdir(parents=True)
    (folder / record.RUN).write_text(json.dumps(found.run))
    ended = [*found.records, {"kind": "end", "at": 0.0, "interrupted": False}]
    (folder / record.RECORDS).write_text("".join(record.line_of(one) + "\n" for one in ended))
    if found.counts:
        lines = (record.line_of(one) + "\n" for one in found.counts)
        (folder / record.COUNTS).write_text("".join(lines))
    return folder


def test_compare_says_how_many_are_the_same(tmp_path: Path) -> None:
    first = write(counted(count("a", 10_000.0, 10_000.0)), tmp_path / "first")
    second = write(counted(count("a", 10_090.0, 10_110.0)), tmp_path / "second")
    done = CliRunner().invoke(lab, ["compare", str(first), str(second)])
    assert done.exit_code == 0, done.output
    assert "1.010" in done.output
    assert "instructions per request: 1 of 1 are within 2 %" in done.output


def test_they_are_kept_with_a_result_and_a_line_that_was_cut_off_is_ignored(tmp_path: Path) -> None:
    own = write(counted(count("a", 10_000.0, 10_000.0)), tmp_path / "own")
    with (own / record.COUNTS).open("a") as file:
        file.write('{"kind":"instr')
    kept = keep.keep(own, tmp_path / "kept")
    assert len(record.load(kept).counts) == 1
    without = write(counted(), tmp_path / "without")
    assert record.load(keep.keep(without, tmp_path / "kept")).counts == []
    (own / record.COUNTS).write_text('[]\n{"kind":"instructions"}\n')
    done = CliRunner().invoke(lab, ["report", str(own)])
    assert done.exit_code == 1
    assert "instructions.jsonl, line 1: expected an object" in " ".join(done.output.split())


def test_the_page_has_a_table_of_them_with_the_reasons_of_dashes() -> None:
    experiment = own_experiments()["falcon-go"]
    assert experiment.answer is not None
    figure = analyse.analyse(counted()).figures[SECTION, "hello", "a"]

    def cell(name: str, one: Any) -> tables.Cell:
        return tables.Cell(name, replace(figure, contestant=name, count=one))

    cells = {
        "today": cell("gunicorn-falcon", Count(150_000.0, 0.001)),
        "native": cell("citius", Count(4_031.0, 0.5)),
        "go": cell("go-net-http", Count(fault="valgrind: it did not start")),
    }
    row = tables.Row("hello", "", "", cells)
    page = answer_page.counts(experiment, [row])
    assert "| `hello` | 150k | 4.03k? | – |" in page
    assert "No instructions of `go-net-http` (valgrind: it did not start) in `hello`." in page
    nothing = replace(row, cells={"today": cell("gunicorn-falcon", None)})
    assert answer_page.counts(experiment, [nothing]) == ""


# --- what is counted, and how ---------------------------------------------------------------------


def test_one_connection_asks_as_deep_as_the_series() -> None:
    hello = contract().cases["hello"]
    words = Shot.counted(PIPELINED, hello, 48, timeout_s=60).words(())
    assert words[words.index("--connections") + 1] == "1"
    assert words[words.index("--pipeline") + 1] == "24"
    assert words[words.index("--requests") + 1] == "48"
    assert words[words.index("--timeout") + 1] == "60s"
    users = Series("users", "users", "users", Load("users", users=6000, ramp_s=2.0), ("hello",))
    words = Shot.counted(users, hello, 10, timeout_s=60).words(())
    assert "--no-keepalive" in words
    assert "--users" not in words


def test_what_is_no_closed_loop_of_one_worker_is_not_counted() -> None:
    rate = Series("rate", "open", "rate", Load("constant", rate=100.0), ("hello",))
    many = replace(CLOSED, id="many", workers=0)
    wide = replace(CLOSED, id="wide", load=Load(connections=256))
    records = [
        *rounds("a"),
        *rounds("a", case="fibonacci", errors=errors(content=10_000)),
        *rounds("a", series="rate", asked=100.0),
        *rounds("a", series="many"),
        *rounds("a", series="wide"),
    ]
    found = results(records, CLOSED, rate, many, wide)
    wanted = counting.wanted_of(found, ())
    assert [one.key for one in wanted] == [
        ("trial", "closed", "hello", "a"),
        ("trial", "wide", "hello", "a"),
    ]
    # Over one connection both are the same: one count serves them.
    assert wanted[0].same() == wanted[1].same()
    assert counting.wanted_of(found, [one.key for one in wanted]) == []


def test_a_connection_cancels_in_the_difference_of_two_batches() -> None:
    assert counting._of_one(lambda requests: 5_000 + 100 * requests, 300) == 100
    # Of a few long requests one batch does.
    assert counting._of_one(lambda requests: 5_000 + 10**9 * requests, 1) == 1_000_005_000


@pytest.mark.skipif(callgrind.missing() is not None, reason="no valgrind")
@pytest.mark.usefixtures("all_cpus")
def test_a_contestant_is_counted_and_a_second_call_has_nothing_left_to_do(tmp_path: Path) -> None:
    try:
        drive.load_command()
    except LoadError as error:
        pytest.skip(str(error))
    found = results(
        [*rounds("fake"), *rounds("fake", series="pipelined", pipeline=24)], baseline="fake"
    )
    found.records.extend(rounds("never-listens"))
    found.run["contestants"] += [{**found.run["contestants"][0], "name": "never-listens"}]
    own = write(found, tmp_path / "own")
    done = CliRunner().invoke(lab, [*OWN, "count", str(own)])
    assert done.exit_code == 0, done.output
    figures = analyse.analyse(record.load(own)).figures
    plain, deep = (
        figures[f"trial/{series}", "hello", "fake"].count for series in ("closed", "pipelined")
    )
    assert plain is not None
    assert deep is not None
    # asyncio's streams take some hundred thousand; a turn for 24 of them costs each of them less.
    assert 10_000 < (deep.value or 0) < (plain.value or 0) < 1_000_000
    silent = figures["trial/closed", "hello", "never-listens"].count
    assert silent is not None
    assert "ended with code 1" in silent.fault
    again = CliRunner().invoke(lab, [*OWN, "count", str(own)])
    assert again.exit_code == 0, again.output
    assert "nothing is left to count" in again.output
    assert len(record.load(own).counts) == 3


@pytest.mark.usefixtures("all_cpus")
def test_a_contestant_that_cannot_be_counted_says_why(tmp_path: Path) -> None:
    fake = contestants.load([Path(__file__).parent / "contestants"])["fake"]
    jit = replace(fake, uncounted="it compiles while it serves")
    wanted = counting.wanted_of(results(rounds("fake"), baseline="fake"), ())
    counter = object.__new__(counting.Counter)
    ((one, fields),) = counter._counted(jit, "plain", wanted)
    assert one.key == ("trial", "closed", "hello", "fake")
    assert fields == {"requests": 0, "per_request": [], "fault": "it compiles while it serves"}


def test_a_process_that_does_not_answer_is_said_without_this_machines_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "vgdb"
    own.write_text("#!/bin/sh\nexec sleep 20\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(callgrind, "PATIENCE_S", 0.1)
    with pytest.raises(LaunchError, match=r"^vgdb: a process gave no answer in 0\.1 s$"):
        callgrind.Callgrind(tmp_path).begin([1])


def test_a_figure_that_is_counted_again_has_one_count(tmp_path: Path) -> None:
    path = tmp_path / "instructions.jsonl"
    of = {"experiment": "x", "series": "s", "case": "c"}
    counts = [
        {**of, "contestant": "a", "fault": "refused"},
        {**of, "contestant": "b", "per_request": [2, 2]},
        {**of, "contestant": "a", "per_request": [1, 1]},
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in counts))
    counting.drop_former(path)
    assert sorted(path.read_text().splitlines()) == sorted(map(json.dumps, counts[1:]))
    assert list(tmp_path.iterdir()) == [path]
