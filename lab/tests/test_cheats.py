"""Contestants that answer without the work: the random inputs of the checks refuse them."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from synthetic import measurement, results

from citius_lab import paths, record
from citius_lab.cli import lab
from citius_lab.definitions import contestants, wires
from citius_lab.definitions.workloads import WrongResponse, contract
from citius_lab.judge import analyse, figures, verdict
from citius_lab.measure import repetition
from citius_lab.processes import launch
from citius_lab.verify import session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from citius_lab.definitions.workloads import Case

DEFINITION = """
name = "cheat"
language = "Python"
label = "answers without the work"
note = "for tests"
json = "none"
records = "none"
start = ["{python}", "{source}/server.py", "MANNER", "{port}", "{shared}/python"]
workloads = [WORKLOADS]
"""
WORKLOADS = '"classify", "million-loop", "fibonacci"'
SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

manner, port, shared = sys.argv[1:]
sys.path.insert(0, shared)
import work

def right(target):
    parts = urlsplit(target)
    if parts.path == "/million-loop":
        return str(work.million_loop(int(parse_qs(parts.query).get("seed", ["1"])[0]))).encode()
    if parts.path == "/fibonacci":
        return work.fibonacci_answer(work.first_of(parts.query)).encode()
    return work.classify(parts.path.encode())

known, hits = {}, {}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        own = self.path.partition("?")[0]
        kind = {"ignores the input": own, "one answer": own[:9], "remembers": self.path}.get(manner)
        hits[self.path] = hits.get(self.path, 0) + 1
        if manner == "remembers late" and hits[self.path] > 12:
            kind = self.path
        # Cheats know the answer to the first question of a kind, and give it to all others.
        if kind is not None and kind not in known:
            known[kind] = right(self.path)
        body = right(self.path) if kind is None else known[kind]
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
"""


def _write_cheat(folder: Path, manner: str, workloads: str = WORKLOADS) -> None:
    source = folder / "cheat"
    source.mkdir()
    definition = DEFINITION.replace("MANNER", manner).replace("WORKLOADS", workloads)
    (source / "contestant.toml").write_text(definition)
    (source / "server.py").write_text(SERVER)
    shared = folder / "shared"
    shared.symlink_to(paths.lab_root() / "contestants" / "shared")


@contextlib.contextmanager
def serving(folder: Path, manner: str) -> Iterator[tuple[launch.Server, list[Case]]]:
    """Start a contestant of this manner; yield it with its cases."""
    _write_cheat(folder, manner)
    cheat = contestants.load([folder], folder / "build")["cheat"]
    with launch.Server(cheat, workers=1, cpus=(), log_path=folder / "log") as server:
        yield server, contract().cases_of(cheat.workloads)


def _ask_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remembered answer comes at once, and as many that are not take seconds."""
    monkeypatch.setattr(repetition, "TURNS", 3)
    monkeypatch.setattr(repetition, "REQUESTS_MAX", 5)


def faults(folder: Path, manner: str) -> list[str]:
    """Return the cases that a contestant of this manner is refused for."""
    found: list[str] = []
    with serving(folder, manner) as (server, cases):
        for case in cases:
            try:
                session.verify_case(server.port, case, random.Random(1))
            except WrongResponse:
                found.append(case.id)
    return found


def test_a_contestant_that_does_the_work_is_not_refused(tmp_path: Path) -> None:
    assert faults(tmp_path, "honest") == []


@pytest.mark.parametrize(
    ("manner", "refused"),
    [
        ("ignores the input", ["fibonacci", "fibonacci-varied", "million-loop"]),
        (
            "one answer",
            [
                "classify-0",
                "classify-10",
                "classify-100",
                "fibonacci",
                "fibonacci-varied",
                "million-loop",
            ],
        ),
    ],
)
def test_a_constant_or_remembered_answer_is_refused(
    tmp_path: Path, manner: str, refused: list[str]
) -> None:
    assert sorted(faults(tmp_path, manner)) == refused


@pytest.mark.parametrize(
    ("manner", "refused"), [("honest", set()), ("remembers", {"million-loop"})]
)
def test_a_contestant_that_remembers_answers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manner: str, refused: set[str]
) -> None:
    """Its answers are right: what repeated requests cost gives it away."""
    monkeypatch.setattr(repetition, "TURNS", 3)
    found: set[str] = set()
    with serving(tmp_path, manner) as (server, cases):
        for case in cases:
            ratios = repetition.ratios(server, case, random.Random(1), wires.HTTP1)
            if ratios and verdict.remembered(ratios) is not None:
                found.add(case.id)
    # Next to what a request costs on this server, the work of the shorter ones is nothing.
    assert found >= refused
    assert found == refused or manner == "remembers"


def test_a_contestant_that_remembers_what_is_asked_often_is_refused_when_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ask_few(monkeypatch)
    case = contract().cases["million-loop"]
    with serving(tmp_path, "remembers late") as (server, _):

        def fault() -> str | None:
            found = repetition.ratios(server, case, random.Random(1), wires.HTTP1)
            return verdict.remembered(found)

        assert fault() is None
        with contextlib.closing(session.connection(server.port)) as peer:
            for _ in range(12):
                case.check(peer.ask(case.target, case))
        assert fault() is not None


@pytest.mark.usefixtures("fake_load", "all_cpus", "brief")
def test_a_run_asks_again_when_it_has_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ask_few(monkeypatch)
    _write_cheat(tmp_path, "remembers late", '"million-loop"')
    out = tmp_path / "out"
    only = ["--only", "cheat", "--budget", "3", "--out", str(out)]
    done = CliRunner().invoke(lab, ["--contestants", str(tmp_path), "run", "quick", *only])
    assert done.exit_code == 0, done.output
    found = analyse.analyse(record.load(out)).figures["quick/closed", "million-loop", "cheat"]
    assert found.verdict.word == "failed"
    assert "answers a repeated request from memory" in str(found.verdict.reasons[0])


def test_remembered_answers_are_no_figure() -> None:
    records = [measurement(round_=number) for number in range(3)]
    own = {"kind": "repetition", "experiment": "trial", "contestant": "a", "case": "hello"}
    figure = _figure([*records, {**own, "ratios": [0.2, 0.21, 0.19]}])
    assert figure.verdict.word == "failed"
    assert str(figure.verdict.reasons[0]).startswith(
        "answers a repeated request from memory: it takes ×0.20"
    )
    assert _figure([*records, {**own, "ratios": [0.95, 0.9, 0.99]}]).verdict.word == "valid"


def _figure(records: list[dict[str, object]], case: str = "hello") -> figures.Figure:
    return analyse.analyse(results(records)).figures["trial/closed", case, "a"]


@pytest.mark.parametrize(("varied_s", "word"), [(0.98, "valid"), (1.8, "suspect")])
def test_work_that_is_left_out_where_the_answer_does_not_prove_it_is_doubted(
    varied_s: float, word: str
) -> None:
    """CPU times of the same work: of a constant answer, and of one that takes it."""
    records = [
        measurement(round_=number, case=case, server_cpu_s=spent_s)
        for number in range(3)
        for case, spent_s in (("fibonacci", 0.98), ("fibonacci-varied", varied_s))
    ]
    figure = _figure(records, "fibonacci")
    assert (figure.verdict.word, figure.cost_verdict.word) == (word, word)
    kinds = [reason.kind for reason in figure.verdict.reasons]
    expected = "costs less than the same work does where its answer proves it"
    assert (expected in kinds) == (word == "suspect")
