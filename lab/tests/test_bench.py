from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_end_to_end import invoke
from test_launch import alive, wait_for

from citius_lab.bench import servers
from citius_lab.bench.worktree import of
from citius_lab.commands import bench
from citius_lab.errors import BuildError, DefinitionError

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
FAKE = f"{sys.executable} {HERE}/contestants/python-fake/server.py --port {{port}}"


@pytest.mark.usefixtures("fake_load", "all_cpus", "brief")
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
        (["--cmd", "serve 'a {port}"], "No closing quotation"),
        (["--cmd", FAKE, "--against", ","], "expected the names of contestants"),
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
    with pytest.raises(DefinitionError, match="mine:number is a int, which cannot be called"):
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


# --- interrupts -----------------------------------------------------------------------------------


def bench_in_a_process(words: list[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "citius_lab", "bench", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        start_new_session=True,
        # Tests that run in the background of a shell inherit an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def interrupted(
    process: subprocess.Popen[str], is_there: Callable[[], object], number: signal.Signals
) -> str:
    """Wait for a moment, interrupt the lab alone, and return what it said."""
    try:
        assert wait_for(is_there, 60)
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert "interrupted; " in output
    return output


def gone(mark: Path) -> bool:
    """Tell whether the process that has left its number there has ended."""
    pid = int(mark.read_text())
    return wait_for(lambda: not alive(pid))


def has_begun(mark: Path) -> Callable[[], bool]:
    return lambda: mark.exists() and mark.read_text().endswith("\n")


NUMBERS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@NUMBERS
def test_an_interrupt_while_it_asks_what_the_application_is(
    tmp_path: Path, number: signal.Signals
) -> None:
    mark = tmp_path / "imported"
    (tmp_path / "slow.py").write_text(
        "import os, time\n"
        f"with open({str(mark)!r}, 'w') as file: print(os.getpid(), file=file)\n"
        "time.sleep(60)\n"
    )
    process = bench_in_a_process(["slow:app", "--against", "uvicorn"], tmp_path)
    interrupted(process, has_begun(mark), number)
    assert gone(mark)


@NUMBERS
def test_an_interrupt_while_a_server_starts(tmp_path: Path, number: signal.Signals) -> None:
    mark = tmp_path / "started"
    never = f"sh -c 'echo $$ > {mark}; exec sleep 60 # {{port}}'"
    process = bench_in_a_process(["--cmd", f"one={FAKE}", "--cmd", f"two={never}"], tmp_path)
    interrupted(process, has_begun(mark), number)
    assert gone(mark)


@NUMBERS
@pytest.mark.usefixtures("fake_load")
def test_an_interrupt_while_it_measures(tmp_path: Path, number: signal.Signals) -> None:
    out, mark = tmp_path / "out", tmp_path / "started"
    one = f"sh -c 'echo $$ > {mark}; exec {FAKE}'"
    words = ["--cmd", f"one={one}", "--cmd", f"two={FAKE}", "--budget", "60", "--out", str(out)]
    process = bench_in_a_process(words, tmp_path)
    lines = out / "records.jsonl"
    output = interrupted(process, lambda: lines.exists() and lines.read_text(), number)
    assert "the records are kept" in output
    assert gone(mark)


@pytest.mark.usefixtures("fake_load", "all_cpus", "brief")
def test_an_interrupt_while_it_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "draw", draw)
    out = tmp_path / "out"
    words = ["--cmd", f"one={FAKE}", "--cmd", f"two={FAKE}", "--budget", "2", "--out", str(out)]
    done = invoke("bench", *words)
    assert done.exit_code == 130, done.output
    assert f"citius lab report {out} draws them" in done.output
    monkeypatch.undo()
    assert invoke("report", str(out)).exit_code == 0


def test_an_interrupt_ends_what_a_build_command_has_started(tmp_path: Path) -> None:
    mark, script = tmp_path / "begun", tmp_path / "build.py"
    script.write_text(
        "import pathlib, sys\n"
        "from citius_lab.commands.base import lab\n"
        "from citius_lab.definitions.contestants import run_read\n"
        "@lab.command()\n"
        "def deep():\n"
        f"    run_read(['sh', '-c', 'sleep 60 & echo $! > {mark}; wait'], cwd=pathlib.Path('.'))\n"
        "lab(['deep'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    interrupted(process, has_begun(mark), signal.SIGINT)
    assert gone(mark)
