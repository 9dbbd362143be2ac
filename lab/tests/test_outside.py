"""Other load generators: the words they get, what is read from what they print, and what is shown."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from synthetic import CLOSED, measurement, results, rounds

from citius_lab.definitions import contestants
from citius_lab.definitions.protocols import Load, Series
from citius_lab.definitions.workloads import contract
from citius_lab.judge import analyse
from citius_lab.measure import outside
from citius_lab.measure.drive import Shot
from citius_lab.processes import launch
from citius_lab.report import page as report

if TYPE_CHECKING:
    from citius_lab.measure.outside import Tool

HERE = Path(__file__).parent

WRK = """Running 1s test @ http://127.0.0.1:8000/
  Latency Distribution
     50%    1.02ms
  21608 requests in 1.00s, 4.12MB read
  Socket errors: connect 0, read 3, write 0, timeout 1
  Non-2xx or 3xx responses: 7
Requests/sec:  21601.66
"""
H2LOAD = """finished in 1.01s, 123456.78 req/s, 4.12MB/s
requests: 124691 total, 124700 started, 124691 done, 124690 succeeded, 1 failed, 1 errored, 0 timeout
"""
AB = """Complete requests:      10000
Failed requests:        2
Non-2xx responses:      3
Requests per second:    4888.35 [#/sec] (mean)
"""


@pytest.mark.parametrize(
    ("tool", "said", "requests", "rate", "errors"),
    [
        ("wrk", WRK, 21608, 21601.66, 11),
        ("h2load", H2LOAD, 124690, 123456.78, 2),
        ("ab", AB, 10000, 4888.35, 5),
    ],
)
def test_what_a_tool_prints_is_read(
    tool: Tool, said: str, requests: int, rate: float, errors: int
) -> None:
    assert outside.parse(tool, said) == {
        "requests": requests,
        "requests_per_s": rate,
        "errors": errors,
    }
    assert outside.parse(tool, "unable to connect") is None


def shot(case: str = "hello", **load: Any) -> Shot:
    series = dataclasses.replace(CLOSED, load=Load(**load))
    return Shot.of(series, contract().case_named(case), window_s=1, warmup_s=0, rate=None)


@pytest.mark.parametrize(
    ("tool", "load", "words"),
    [
        ("wrk", {"connections": 8}, "wrk -t 1 -c 8 -d 1s --latency http://127.0.0.1:9/"),
        (
            "wrk",
            {"connections": 8, "tls": True},
            "wrk -t 1 -c 8 -d 1s --latency https://127.0.0.1:9/",
        ),
        ("wrk", {"connections": 8, "requests": 10}, None),
        ("wrk", {"connections": 8, "http": "2"}, None),
        ("wrk", {"connections": 8, "keep_alive": False}, None),
        ("h2load", {"connections": 8}, "h2load -t 1 -c 8 -m 1 -D 1 --h1 http://127.0.0.1:9/"),
        (
            "h2load",
            {"connections": 8, "http": "2", "streams": 50, "tls": True},
            "h2load -t 1 -c 8 -m 50 -D 1 https://127.0.0.1:9/",
        ),
        (
            "ab",
            {"connections": 500, "requests": 10000, "keep_alive": False},
            "ab -q -c 500 -n 10000 http://127.0.0.1:9/",
        ),
        ("ab", {"connections": 8}, "ab -q -c 8 -k -t 1 -n 500000 http://127.0.0.1:9/"),
        ("ab", {"connections": 8, "tls": True}, None),
        ("ab", {"connections": 8, "pipeline": 4}, None),
        ("h2load", {"connections": 8, "rtt_ms": 80.0}, None),
        ("wrk", {"pace": "constant", "rate": 100.0}, None),
    ],
)
def test_a_tool_gets_the_load_in_its_own_words(
    tool: Tool, load: dict[str, Any], words: str | None
) -> None:
    found = outside.command(tool, shot(**load), 9)
    assert found == (None if words is None else words.split())


def test_requests_that_differ_are_asked_by_no_other_tool() -> None:
    for tool in outside.TOOLS:
        assert outside.command(tool, shot("fibonacci-varied", connections=8), 9) is None


def test_a_pipeline_is_a_script_of_wrk() -> None:
    *_, flag, script, url, dashes, depth = outside.command(
        "wrk", shot(connections=8, pipeline=24), 9
    )
    assert (flag, url, dashes, depth) == ("-s", "http://127.0.0.1:9/", "--", "24")
    assert Path(script).is_file()


def said(tool: str, round_: int, **changes: Any) -> dict[str, Any]:
    own = measurement(round_=round_)
    names = {
        name: own[name]
        for name in ("experiment", "series", "case", "contestant", "round", "workers")
    }
    counted = {
        "requests_per_s": 10_000.0,
        "cpu_us": 98.0,
        "tool_share": 0.5,
        "errors": 0,
        "fault": None,
    }
    return {"kind": "outside", **names, "tool": tool, **counted, **changes}


def test_agreement_is_a_sentence_and_a_table() -> None:
    """Ratios are paired by round; a tool that is its own limit says nothing of a rate."""
    own = [*rounds("a"), *rounds("b")]
    own += [said("wrk", number, requests_per_s=9_900.0, cpu_us=100.0) for number in range(3)]
    own += [said("ab", number, requests_per_s=4_000.0, tool_share=0.99) for number in range(3)]
    own += [said("h2load", number, fault="h2load is not installed") for number in range(3)]
    found = results(own)
    analysis = analyse.analyse(found)
    by_tool = {one.tool: one for one in analysis.outside}
    assert by_tool["wrk"].rate.value == pytest.approx(0.99)
    assert by_tool["wrk"].cpu.value == pytest.approx(100 / 98)
    assert by_tool["h2load"].rate is None
    page = report.html(found, analysis)
    assert (
        "wrk, on the same processes in the same rounds, finds ×1.02 of the CPU time and ×0.99 of"
        in page
    )
    assert (
        "ab, on the same processes in the same rounds, finds ×1.00 of the CPU time, where it is the"
        in page
    )
    assert "it keeps the server 39% busy: the rate is the tool&#39;s own" in page
    assert "h2load is not installed" in page


def test_a_series_of_an_older_record_has_none() -> None:
    record = CLOSED.as_record()
    del record["outside"]
    assert Series.from_record(record).outside == ()


@pytest.mark.parametrize("tool", outside.TOOLS)
def test_a_real_tool_counts_on_a_real_server(tmp_path: Path, tool: Tool) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool} here (Debian: wrk, nghttp2-client, apache2-utils)")
    fake = contestants.load([HERE / "contestants"])["fake"]
    with launch.Server(fake, workers=1, cpus=(), log_path=tmp_path / "log") as server:
        found = outside.ask(tool, shot(connections=4), server, ())
    assert found is not None
    assert found["fault"] is None, found
    assert found["requests"] > 100
    assert 0 < found["cpu_us"] < 100_000
    assert 0 < found["tool_share"] < 2
