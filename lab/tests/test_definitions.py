"""Workloads, contestants and experiments are files: added without a module, refused when wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_end_to_end import invoke

from citius_lab import record
from citius_lab.definitions import contestants, experiments, workloads
from citius_lab.definitions.workloads import Response, WrongResponse
from citius_lab.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent

WORKLOAD = """
noise_class = "handler"
[expect]
content_type = "text/plain"
[[case]]
id = "square-3"
target = "/square?n=3"
connections = 2
title = "squares a number"
"""
CODE = """
from citius_lab.definitions.workloads import expect, integer

def check(answer, target):
    n = int(target.partition("n=")[2])
    expect(f"the square of {n}", n * n, integer("square", answer.body))

def probe(random):
    return f"/square?n={random.randrange(1000)}"
"""
CONTESTANT = """
name = "squares"
language = "Python"
label = "http.server"
note = "For tests."
json = "none"
records = "none"
rules = "floor"
start = ["{python}", "{source}/server.py", "{port}"]
workloads = ["square"]
"""
SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = str(int(self.path.partition("n=")[2]) ** 2).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
EXPERIMENT = """
title = "Squares"
question = "What does a square cost?"
contestants = ["squares"]
baseline = "squares"
budget_s = 3

[[series]]
id = "closed"
protocol = "closed"
title = "closed loop"
cases = ["square-3"]
load = { connections = 2 }
"""


@pytest.fixture
def contract() -> Iterator[workloads.Contract]:
    """The lab's workloads, to be added to; the next test has them anew."""
    workloads.contract.cache_clear()
    yield workloads.contract()
    workloads.contract.cache_clear()


def define(folder: Path) -> None:
    for name, text in {
        "workloads/square.toml": WORKLOAD,
        "workloads/square.py": CODE,
        "contestants/squares/contestant.toml": CONTESTANT,
        "contestants/squares/server.py": SERVER,
        "experiments/squares.toml": EXPERIMENT,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def options(folder: Path) -> list[str]:
    kinds = ("workloads", "contestants", "experiments")
    return [word for kind in kinds for word in (f"--{kind}", str(folder / kind))]


@pytest.mark.usefixtures("fake_load", "all_cpus", "contract", "brief")
def test_files_alone_add_a_workload_a_contestant_and_an_experiment(tmp_path: Path) -> None:
    define(tmp_path)
    out = tmp_path / "out"
    done = invoke(*options(tmp_path), "run", "squares", "--out", str(out))
    assert done.exit_code == 0, done.output
    measured = record.load(out).of_kind("measurement")
    assert {entry["case"] for entry in measured} == {"square-3"}
    assert all(entry["fault"] is None and entry["load"]["completed"] > 0 for entry in measured)
    assert "squares a number" in (out / "report.html").read_text()
    assert "What does a square cost?" in invoke(*options(tmp_path), "experiments").output


@pytest.mark.usefixtures("contract")
def test_the_code_beside_a_workload_refuses_a_wrong_response(tmp_path: Path) -> None:
    define(tmp_path)
    workloads.contract().add(tmp_path / "workloads")
    case = workloads.contract().cases["square-3"]
    case.check(Response(200, "text/plain", b"9", 0.0))
    with pytest.raises(WrongResponse, match="the square of 3: expected 9, got 8"):
        case.check(Response(200, "text/plain", b"8", 0.0))
    with pytest.raises(WrongResponse, match="content type: expected 'text/plain'"):
        case.check(Response(200, "text/html", b"9", 0.0))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("budget_s = 3", "budget_s = '3'", "budget_s: expected a number, got '3'"),
        ("budget_s = 3", "", "the key 'budget_s' is missing; expected a number"),
        ("budget_s = 3", "budget = 3", "unknown key 'budget'; expected one of title, question,"),
        ("budget_s = 3", "budget_s = 3\nin_all = 1", "in_all: expected true or false, got 1"),
        ('["squares"]', '["circles"]', "contestants[0]: unknown 'circles'; known: "),
        ('["square-3"]', '["square-4"]', "series[0].cases: unknown 'square-4'; known: hello,"),
        ("connections = 2 }", "depth = 2 }", "series[0].load: unknown key 'depth'; expected one"),
        ("connections = 2 }", 'pace = "slow" }', "series[0].load.pace: expected one of 'closed',"),
        ("load = {", 'beside = "open"\nload = {', "series[0].beside: unknown 'open'; known: closed"),
        ("connections = 2 }", "ws = true }", "series[0].load: 'square-3' is of requests, and the wire is ws"),
        ("[[series]]", "[series]", "series: expected a list, each item a table"),
        ("title =", "title", "squares.toml: "),
    ],
)  # fmt: skip
def test_says_what_is_wrong_with_an_experiment(
    tmp_path: Path, contract: workloads.Contract, before: str, after: str, message: str
) -> None:
    define(tmp_path)
    contract.add(tmp_path / "workloads")
    path = tmp_path / "experiments" / "squares.toml"
    path.write_text(EXPERIMENT.replace(before, after, 1))
    with pytest.raises(DefinitionError) as raised:
        experiments.read(path, contestants.load([tmp_path / "contestants"]))
    assert str(path) in str(raised.value)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("square.toml", WORKLOAD.replace("connections = 2", ""), "case[0]: the key 'connections'"),
        ("square.toml", "order = 3", "the key 'case' is missing; expected a list, each item a table"),
        ("square.toml", "case = []", "case: expected one table [[case]] or more, got none"),
        ("square.toml", WORKLOAD.replace("square-3", "hello"), "both have a case 'hello'"),
        ("square.py", "import no_such_module", "square.py: ModuleNotFoundError: No module named"),
        ("square.py", "def check(:", "square.py: SyntaxError:"),
    ],
)  # fmt: skip
def test_says_what_is_wrong_with_a_workload(
    tmp_path: Path, contract: workloads.Contract, name: str, text: str, message: str
) -> None:
    define(tmp_path)
    (tmp_path / "workloads" / name).write_text(text)
    with pytest.raises(DefinitionError) as raised:
        contract.add(tmp_path / "workloads")
    assert message in str(raised.value)


def test_a_folder_without_workloads_is_named(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"no workload in .*; expected files NAME\.toml"):
        workloads.Contract().add(tmp_path)
