from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from citius_lab.definitions import services as definitions
from citius_lab.definitions.contestants import read
from citius_lab.definitions.workloads import Response, WrongResponse, contract
from citius_lab.errors import LaunchError
from citius_lab.processes import launch, services

if TYPE_CHECKING:
    from pathlib import Path

needs_postgresql = pytest.mark.skipif(
    definitions.postgresql_binaries() is None, reason="PostgreSQL is not installed"
)

# Says how many rows the database of its environment has, on its port.
SERVER = """
import http.server, os, subprocess, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = os.environ["DATABASE_URL"]
        words = ["psql", "-X", "-A", "-t", "-d", url, "-c", "SELECT count(*) FROM world"]
        body = subprocess.run(words, capture_output=True, check=True).stdout.strip()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
DEFINITION = f"""
name = "probe"
language = "Python"
label = "a probe"
note = "for tests"
json = "none"
records = "none"
services = ["postgresql"]
start = ["{sys.executable}", "{{source}}/server.py", "{{port}}"]
workloads = ["db-one"]
"""


def answer(workload: str, body: str, target: str, content_type: str = "application/json") -> None:
    response = Response(200, content_type, body.encode(), 0.0)
    contract().workloads[workload].check(response, target)


@needs_postgresql
def test_a_contestant_finds_the_tables_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "contestant.toml").write_text(DEFINITION)
    contestant = read(tmp_path / "contestant.toml", tmp_path / "build")
    with services.Services(()) as running:
        with launch.Server(
            contestant, workers=1, cpus=(), log_path=tmp_path / "log", services=running
        ) as server:
            url = f"http://127.0.0.1:{server.port}/"
            said = subprocess.run(["curl", "-s", url], capture_output=True, text=True, check=True)
            assert said.stdout == "10000"
            assert len(server.service_pids) == 1
            pid = server.service_pids[0]
            assert launch.cpu_clocks_s(launch.tree(pid))
        assert launch.tree(pid) != [pid], "it serves the contestants that follow, too"
        folder = running.environment(["postgresql"])
    assert not os.path.exists(f"/proc/{pid}")
    port = int(folder["DATABASE_URL"].rpartition(":")[2].partition("/")[0])
    assert not launch.port_in_use(port)


@needs_postgresql
def test_only_who_knows_the_password_gets_in() -> None:
    with services.Services(()) as running:
        url = running.environment(["postgresql"])["DATABASE_URL"]
        wrong = url.replace(url.split(":")[2].split("@")[0], "wrong")
        done = subprocess.run(
            ["psql", "-X", "-d", wrong, "-c", "SELECT 1"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert "password authentication failed" in done.stderr


@pytest.mark.skipif(definitions.haproxy() is None, reason="HAProxy is not installed")
def test_the_service_has_the_profiles_of_the_contract() -> None:
    with services.Services(()) as running:
        where = running.environment(["upstream"])
        (pid,) = running.pids(["upstream"])
        for name, http in (
            ("UPSTREAM_URL", "1.1"),
            ("UPSTREAM_TLS_URL", "1.1"),
            ("UPSTREAM_H2_URL", "2"),
        ):
            words = [
                "curl",
                "-s",
                "--http2",
                "--cacert",
                where["SSL_CERT_FILE"],
                "-w",
                "%{http_version}",
            ]
            done = subprocess.run(
                [*words, f"{where[name]}/profiles/17"], capture_output=True, text=True, check=True
            )
            body, end, version = done.stdout.rpartition("}")
            assert version == http
            answer("call", body + end, "/call/17")
            with pytest.raises(WrongResponse, match="expected"):
                answer("call", body + end, "/call/18")
    assert not os.path.exists(f"/proc/{pid}")


def test_the_server_behind_gateways_gives_what_their_workloads_ask() -> None:
    workloads = contract().workloads
    with services.Services(()) as running:
        where = running.environment(["origin"])["ORIGIN_URL"]
        (pid,) = running.pids(["origin"])
        for name in ("hello", "download", "sse", "sse-paced"):
            target = workloads[name].case[0].target
            words = ["curl", "-s", "-w", "%{stderr}%{content_type} %{time_total}", where + target]
            done = subprocess.run(words, capture_output=True, check=True)
            content_type, elapsed_s = done.stderr.decode().rsplit(" ", 1)
            media_type = content_type.partition(";")[0]
            response = Response(200, media_type, done.stdout, float(elapsed_s))
            workloads[name].check(response, target)
            for wrong in (done.stdout + b"x", done.stdout[:-1]):
                with pytest.raises(WrongResponse, match="expected"):
                    workloads[name].check(replace(response, body=wrong), target)
        with pytest.raises(WrongResponse, match="100 ms or more"):
            workloads["sse-paced"].check(replace(response, elapsed_s=0.09), target)
    assert not os.path.exists(f"/proc/{pid}")


def test_without_the_database_the_contestant_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (definitions, services):
        monkeypatch.setattr(module, "postgresql_binaries", lambda: None)
    (tmp_path / "contestant.toml").write_text(DEFINITION)
    contestant = read(tmp_path / "contestant.toml", tmp_path / "build")
    assert contestant.missing() == "needs PostgreSQL's initdb and postgres (Debian: postgresql)"
    with services.Services(()) as running, pytest.raises(LaunchError, match="not installed"):
        running.environment(["postgresql"])


@pytest.mark.parametrize(
    ("workload", "target", "body", "message"),
    [
        ("db-one", "/db?id=17", '{"id": 17, "randomNumber": 1}', "expected .*4637"),
        ("db-one", "/db?id=17", "[", "expected JSON"),
        ("db-queries", "/queries?n=2", '[{"id": 17, "randomNumber": 4637}]', "rows: expected 2"),
        ("db-queries", "/queries?n=1", '[{"id": 17, "randomNumber": 1}]', "expected"),
        ("db-queries", "/queries?n=1", '[{"id": 20000, "randomNumber": 8000}]', "expected"),
        ("db-queries", "/queries?n=9", '{"a": 1}', "expected rows"),
        ("db-rows", "/async-db?min=1&max=2&limit=1", '{"items": [], "count": 0}', "expected"),
        ("db-rows", "/async-db?min=1&max=2&limit=1", '{"items": 1}', "expected items"),
        ("orm", "/orm?min=1&max=2&limit=1", '{"items": [], "count": 0}', "expected"),
        ("fortunes", "/fortunes", "<!DOCTYPE html><td>1</td>", "expected"),
        (
            "fortunes",
            "/fortunes",
            "<!DOCTYPE html><td><script>alert(1)</script></td>",
            "not escaped",
        ),
        ("fortunes", "/fortunes", "<td>1</td>", "begins with"),
    ],
)
def test_wrong_rows_are_refused(workload: str, target: str, body: str, message: str) -> None:
    content_type = "text/html" if workload == "fortunes" else "application/json"
    with pytest.raises(WrongResponse, match=message):
        answer(workload, body, target, content_type)


@needs_postgresql
def test_updates_are_those_of_the_table() -> None:
    """The check asks the database: a contestant that writes nothing, or something else, is found out."""
    wrong = {
        '[{"id": 17, "randomNumber": 4637}, {"id": 17, "randomNumber": 4637}]': "rows: expected 2",
        '[{"id": 17, "randomNumber": 4637}, {"id": 18, "randomNumber": 1}]': "the table afterwards",
        '[{"id": 0, "randomNumber": 1}, {"id": 18, "randomNumber": 1}]': "from 1 to 10000",
        '[{"id": "x; DROP TABLE changing"}]': "expected rows",
    }
    with services.Services(()) as running:
        running.environment(["postgresql"])
        right = '[{"id": 17, "randomNumber": 4637}, {"id": 18, "randomNumber": 2556}]'
        answer("db-updates", right, "/updates?n=2")
        for body, message in wrong.items():
            with pytest.raises(WrongResponse, match=message):
                answer("db-updates", body, "/updates?n=2")
        services.query("UPDATE changing SET randomnumber = 0 WHERE id = 5 RETURNING id")
        with pytest.raises(WrongResponse, match="the whole table"):
            answer("db-updates", right, "/updates?n=2")
        # The rows of other workloads are what they were.
        assert services.query("SELECT randomnumber FROM world WHERE id = 17") == [[4637]]
    with pytest.raises(LaunchError, match="does not run"):
        answer("db-updates", right, "/updates?n=2")


def test_right_rows_are_not() -> None:
    answer("db-one", '{"id":17,"randomNumber":4637}', "/db?id=17")
    code = contract().workloads["fortunes"].code
    rows = [(str(id), message.replace("<", "&lt;")) for id, message in code.golden()]  # pyright: ignore[reportOptionalMemberAccess]
    assert len(rows) == 13
    cells = "".join(f"<tr><td>{id}</td><td>{message}</td></tr>" for id, message in rows)
    answer("fortunes", f"<!DOCTYPE html><table>{cells}</table>", "/fortunes", "text/html")
