"""Contestants that answer without the work: the random inputs of the checks refuse them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from citius_lab import contestants, launch, verify
from citius_lab.workloads import WrongResponse, contract

if TYPE_CHECKING:
    from pathlib import Path

DEFINITION = """
name = "cheat"
language = "Python"
label = "answers without the work"
note = "for tests"
json = "none"
records = "none"
start = ["{python}", "{source}/server.py", "MANNER", "{port}", "{shared}/python"]
workloads = ["classify", "million-loop"]
"""
SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

manner, port, shared = sys.argv[1:]
sys.path.insert(0, shared)
import work

def right(target):
    parts = urlsplit(target)
    if parts.path == "/million-loop":
        return str(work.million_loop(int(parse_qs(parts.query).get("seed", ["1"])[0]))).encode()
    return work.classify(parts.path.encode())

known = {}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        own = self.path.partition("?")[0]
        kind = own if manner == "ignores the input" else own[:9]
        # Cheats know the answer to the first question of a kind, and give it to all others.
        body = right(self.path) if manner == "honest" else known.setdefault(kind, right(self.path))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

HTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
"""


def faults(folder: Path, manner: str) -> list[str]:
    """Return the cases that a contestant of this manner is refused for."""
    source = folder / "cheat"
    source.mkdir()
    (source / "contestant.toml").write_text(DEFINITION.replace("MANNER", manner))
    (source / "server.py").write_text(SERVER)
    shared = folder / "shared"
    shared.symlink_to(contestants.lab_root() / "contestants" / "shared")
    cheat = contestants.load([folder], folder / "build")["cheat"]
    found: list[str] = []
    with launch.Server(cheat, workers=1, cpus=(), log_path=folder / "log") as server:
        for case in contract().cases_of(cheat.workloads):
            try:
                verify.verify_case(server.port, case, random.Random(1))
            except WrongResponse:
                found.append(case.id)
    return found


def test_a_contestant_that_does_the_work_is_not_refused(tmp_path: Path) -> None:
    assert faults(tmp_path, "honest") == []


@pytest.mark.parametrize(
    ("manner", "refused"),
    [
        ("ignores the input", ["million-loop"]),
        ("one answer", ["classify-0", "classify-10", "classify-100", "million-loop"]),
    ],
)
def test_a_constant_or_remembered_answer_is_refused(
    tmp_path: Path, manner: str, refused: list[str]
) -> None:
    assert sorted(faults(tmp_path, manner)) == refused
