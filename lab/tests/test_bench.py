from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_end_to_end import invoke

from citius_lab import servers
from citius_lab.errors import BuildError, ContestantError
from citius_lab.worktree import of

HERE = Path(__file__).parent
FAKE = f"{sys.executable} {HERE}/contestants/python-fake/server.py --port {{port}}"


@pytest.mark.usefixtures("fake_load", "all_cpus")
def test_any_two_servers_side_by_side(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--cmd", f"one={FAKE}", "--cmd", f"two={FAKE}", "--budget", "3", "--out", str(out)]
    conditions = ["ratio<0.01", "errors>1%", "p50>1us"]
    done = invoke("bench", *words, *(word for one in conditions for word in ("--fail-if", one)))
    assert done.exit_code == 3, done.output
    assert "one is ×" in done.output
    assert (out / "report.html").exists()
    failed = [line for line in done.output.splitlines() if line.startswith("failed: ")]
    assert [line.partition(": ")[2].partition(":")[0] for line in failed] == ["p50>1us"]


def test_servers_that_answer_differently_are_not_compared(tmp_path: Path) -> None:
    other = f"{FAKE} --fault wrong"
    words = ["--cmd", f"one={FAKE}", "--cmd", f"two={other}", "--path", "/fibonacci"]
    done = invoke("bench", *words, "--out", str(tmp_path / "out"))
    assert done.exit_code == 1
    assert "two does not answer what one does: b'?', expected b'OK'" in done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to measure: name APP as module:attribute, or give --cmd"),
        (["--cmd", "sleep 9"], "does not say {port}"),
        (["--against", "uvicorn"], "name APP as module:attribute"),
        (["no_such_module:app"], "No module named 'no_such_module'"),
        (["--cmd", FAKE, "--fail-if", "speed>1"], "expected METRIC OP VALUE"),
        (["--cmd", FAKE, "--header", "nonsense"], 'a header is "Name: value"'),
        (["--cmd", FAKE, "--path", "/none"], "expected status 200, got 404"),
    ],
)
def test_says_what_cannot_be_benched(words: list[str], said: str) -> None:
    done = invoke("bench", *words)
    assert done.exit_code == 1
    assert said in done.output


APPS = """
async def coroutine(scope, receive, send): ...
def double(scope): ...
class Instance:
    async def __call__(self, scope, receive, send): ...
instance = Instance()
def plain(environ, start_response): ...
number = 7
"""


@pytest.mark.parametrize(
    ("name", "interface"),
    [("coroutine", "asgi"), ("double", "asgi"), ("instance", "asgi"), ("plain", "wsgi")],
)
def test_an_application_is_told_by_its_shape(tmp_path: Path, name: str, interface: str) -> None:
    (tmp_path / "mine.py").write_text(APPS)
    assert servers.interface_of(f"mine:{name}", tmp_path) == interface


def test_what_cannot_be_called_is_no_application(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(APPS)
    with pytest.raises(ContestantError, match="mine:number is a int, which cannot be called"):
        servers.interface_of("mine:number", tmp_path)


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def test_another_commit_is_checked_out_and_gone_afterwards(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "app").mkdir(parents=True)
    git(tmp_path, "init", "--quiet", str(repository))
    for text in ("old", "new"):
        (repository / "app" / "mine.py").write_text(text)
        git(repository, "add", "-A")
        git(repository, "commit", "--quiet", "-m", text)
    with of("HEAD~1", repository / "app") as (commit, folder):
        assert len(commit) == 40
        assert (folder / "mine.py").read_text() == "old"
    assert not folder.exists()
    assert (repository / "app" / "mine.py").read_text() == "new"
    with pytest.raises(BuildError, match="no-such-branch"), of("no-such-branch", repository):
        pass
