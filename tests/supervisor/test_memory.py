"""Memory of workers: what they share, and the notice of one that the kernel kills for want of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from citius.serving.supervisor import memory
from rig import Server, children

EVENTS = "low 0\nhigh 0\nmax 7\noom 3\noom_kill {}\noom_group_kill 0\n"


@pytest.mark.parametrize(
    ("membership", "path", "text"),
    [
        ("0::/app\n", "app/memory.events", EVENTS),
        ("0::/\n", "memory.events", EVENTS),
        ("0::/../outside\n", "memory.events", EVENTS),
        (
            "7:memory:/docker/1\n0::/\n",
            "memory/docker/1/memory.oom_control",
            "under_oom 0\noom_kill {}\n",
        ),
        ("7:cpu:/\n6:memory:/docker/1\n", "memory/memory.oom_control", "oom_kill {}\n"),
    ],
)
def test_what_cgroups_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, membership: str, path: str, text: str
) -> None:
    (tmp_path / "cgroup").write_text(membership)
    monkeypatch.setattr(memory, "MEMBERSHIP", str(tmp_path / "cgroup"))
    monkeypatch.setattr(memory, "ROOT", str(tmp_path / "root"))
    assert memory.oom_kills() is None
    (tmp_path / "root" / path).parent.mkdir(parents=True)
    (tmp_path / "root" / path).write_text(text.format(5))
    assert memory.oom_kills() == 5


@pytest.mark.parametrize("is_told", [True, False])
def test_the_notice_of_a_killed_worker(tmp_path: Path, is_told: bool) -> None:
    """Scale S10."""
    (tmp_path / "cgroup").write_text("0::/\n")
    (tmp_path / "memory.events").write_text(EVENTS.format(1))
    (tmp_path / "launch.py").write_text(
        "import runpy\nfrom citius.serving.supervisor import memory\n"
        f"memory.ROOT, memory.MEMBERSHIP = {str(tmp_path)!r}, {str(tmp_path / 'cgroup')!r}\n"
        "runpy.run_module('citius', run_name='__main__')\n"
    )
    (tmp_path / "main.py").write_text("from citius import App\napp = App()\n")
    arguments = ["main.py", "--port", "0", "-w", "2"]
    server = Server(arguments, {}, tmp_path, launcher="launch.py")
    try:
        (worker, _) = children(server.wait_ready())
        if is_told:
            (tmp_path / "memory.events").write_text(EVENTS.format(2))
        os.kill(worker, signal.SIGKILL)
        server.wait_for_log(
            f"worker {worker} was killed by the kernel, because the memory of the cgroup was used up"
            if is_told
            else f"worker {worker} was ended by SIGKILL; replacing it"
        )
        assert ",;" not in server.err
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("options", "is_shared"),
    [
        ({}, True),
        ({"loop": "asyncio", "interface": "asgi"}, True),
        ({"interface": "wsgi"}, False),
        ({"loop": "none"}, False),
        # It replaces parts of the standard library before they are used.
        ({"loop": "gevent"}, False),
    ],
)
def test_workers_share_the_memory_of_asyncio(options: dict[str, str], is_shared: bool) -> None:
    program = (
        "import sys\n"
        "from citius.settings.config import Config\n"
        "from citius.serving.supervisor.worker import import_shared\n"
        "before = set(sys.modules)\n"
        f"import_shared(Config(**{options}))\n"
        "assert 'asyncio' not in before\n"
        "print('asyncio' in sys.modules)\n"
    )
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert said == f"{is_shared}\n"
