"""The entry for HttpArena: its profiles of gRPC, called by grpcurl over HTTP/2."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import rig
from rig import Server

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "lab/httparena/citius"
ENVIRONMENT = ROOT / ".tools/connect/environment/bin/python"
GRPCURL = ROOT / ".tools/grpcurl"

pytestmark = pytest.mark.skipif(
    not (ENVIRONMENT.exists() and GRPCURL.exists()),
    reason="`make .tools/connect/ready .tools/grpcurl` installs connectrpc and grpcurl",
)


@pytest.mark.parametrize("options", [(), ("--ssl-dev",)], ids=["clear", "tls"])
def test_sums(
    serve: Callable[..., Server],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: tuple[str, ...],
) -> None:
    monkeypatch.setattr(rig, "PYTHON", str(ENVIRONMENT))
    (tmp_path / "dataset.json").write_text("[]")
    env = {
        "PYTHONDEVMODE": "", "PYTHONWARNINGS": "", "DATASET_PATH": str(tmp_path / "dataset.json"),
        "STATIC_DIR": str(tmp_path), "CACHE_PATH": str(tmp_path / "cache"),
    }  # fmt: skip
    server = serve(ENTRY / "grpc_app.py", "--workers", "2", *options, env=env)
    transport = "-insecure" if options else "-plaintext"
    for a, b in ((1, 2), (-5, 5), (2**31 - 1, -1)):
        done = subprocess.run(
            [GRPCURL, transport, "-import-path", ENTRY / "proto", "-proto", "benchmark.proto",
             "-d", json.dumps({"a": a, "b": b}), f"127.0.0.1:{server.port}",
             "benchmark.BenchmarkService/GetSum"],
            capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert json.loads(done.stdout or "null") == ({"result": a + b} if a + b else {}), done
