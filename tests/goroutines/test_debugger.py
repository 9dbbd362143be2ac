"""gdb shows what the goroutines of a running server wait for, and leaves them as they were."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import Server, wait_for

SCRIPT = Path(__file__).parents[2] / "scripts/gdb_goroutines.py"
CLIENTS = 3
PARKED = 5

pytestmark = [
    pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb here"),
    pytest.mark.timeout(180),
]


@pytest.mark.parametrize("pool", [False, True], ids=["reactor", "pool"])
def test_gdb_shows_the_goroutines_of_a_server(
    serve_library: Callable[..., Server], pool: bool
) -> None:
    names = ("waits", "opens", "tells_how", "parks_many")
    server = serve_library(pool=pool, more=f"for name in {names}: add(name)")
    peers = [server.connect() for _ in range(CLIENTS)]
    for waiting, peer in enumerate(peers, 1):
        peer.send(b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n")
        state = f"-1 {waiting}".encode()
        wait_for(lambda state=state: server.get("/tells_how").body == state, "its wait")
    assert server.get(f"/parks_many?count={PARKED}").body == str(PARKED).encode()

    shown = ask_gdb(server.process.pid)

    # They go on as if nothing had been.
    for _ in peers:
        assert server.get("/opens").body == b"sent"
    assert [peer.reply().body for peer in peers] == [b"received"] * CLIENTS
    assert server.stop() == 0

    assert f"{CLIENTS + PARKED} goroutines wait" in shown, shown
    listed = re.findall(r"^ +\d+ 0x[0-9a-f]+ (\w+)", shown, re.MULTILINE)
    assert sorted(listed) == ["parks"] * PARKED + ["waits"] * CLIENTS, shown
    traces = re.split(r"^goroutine \d+$", shown, flags=re.MULTILINE)[1:]
    assert len(traces) == CLIENTS + PARKED, shown
    for trace in traces:
        assert "citius_coroutine_suspend" in trace, trace
        assert len(re.findall(r" (?:in )?(?:waits|parks) \(", trace)) == 1, trace
        assert "corrupt stack" not in trace, trace


def ask_gdb(pid: int) -> str:
    """What the commands of the script print of a process."""
    done = subprocess.run(
        ["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-p", str(pid), "-x", SCRIPT,
         "-ex", "info goroutines", "-ex", "goroutine all"],
        capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    if "Operation not permitted" in done.stderr:
        pytest.skip("this user may not look at other processes")
    return f"{done.stdout}\n{done.stderr}"
