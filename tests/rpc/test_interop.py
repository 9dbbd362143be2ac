"""Other people's clients: Neovim's in Python, and Go's net/rpc with ugorji's codec."""

from __future__ import annotations

import gc
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest
from pynvim.msgpack_rpc import tcp_session
from rpc_rig import rpc_address

GO = Path(__file__).with_name("go")


def test_neovims_client(procedures) -> None:
    host, _, port = rpc_address(procedures).rpartition(":")
    # It says first who it is, by a method that does not exist here, whose name is bytes.
    session = tcp_session(host, int(port))
    # It expects errors as Neovim sends them; the specification leaves that to the server.
    session.error_wrapper = lambda error: LookupError(error["type"])
    try:
        assert session.request("hello") == "Hello World!"
        assert session.request("sum", 1, 2) == 3
        assert session.request("users.get", 7) == {"id": 7, "name": "nobody"}
        with pytest.raises(LookupError, match="UnknownUser"):
            session.request("users.get", 101)
        session.request("note", "from neovim", async_=True)
        assert "from neovim" in session.request("seen")["noted"]
    finally:
        session.close()
        with warnings.catch_warnings():
            # It leaves the socket to the collector.
            warnings.simplefilter("ignore", ResourceWarning)
            del session
            gc.collect()


@pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go")
@pytest.mark.timeout(180)
def test_gos_client(procedures, tmp_path: Path) -> None:
    binary = tmp_path / "client"
    built = subprocess.run(
        ["go", "build", "-o", str(binary), "."], cwd=GO, capture_output=True, text=True, timeout=170
    )
    if built.returncode and "dial tcp" in built.stderr:
        pytest.skip("Go cannot download the codec")
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [str(binary), rpc_address(procedures)], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["Hello World!", "3", "{7 nobody}"]
    assert "1000 calls in flight: sum 1000" in done.stdout
