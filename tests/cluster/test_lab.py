"""The lab on many machines: a contestant on one, generators on two, a scheduler on a fourth."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import bed as beds
import pytest
from bed import Bed, Program, start_dask

LAB = Path(__file__).parents[2] / "lab"
pytest.importorskip("citius_lab", reason="the lab is not installed")
pytest.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.mark.slow
@pytest.mark.skipif(bool(beds.why_not()), reason=beds.why_not() or "a bed")
def test_generators_on_two_machines(tmp_path: Path) -> None:
    if not (LAB / "citius_lab/bin/citius-load").exists():
        pytest.skip("the load generator is not built")
    bed = Bed(tmp_path)
    programs: list[Program] = []
    env = {"PYTHONUNBUFFERED": "1", "CITIUS_LAB_LOCK": str(tmp_path / "lock")}
    try:
        scheduler, *workers, host = (bed.machine(name) for name in ("sched", "w1", "w2", "lab"))
        address = start_dask(programs, scheduler, workers, tmp_path, env)
        # The networks of the bed have no limit; any traffic is beyond a link of 0.01 Mbit/s.
        run = [
            sys.executable, "-m", "citius_lab", "--contestants", str(LAB / "tests/contestants"), "run",
            "quick", "--only", "fake", "--budget", "4", "--out", str(tmp_path / "out"), "--cluster", address,
            "--link-mbit", "0.01",
        ]  # fmt: skip
        lab = Program(host, run, tmp_path / "lab.log", env)
        programs.append(lab)
        assert lab.process.wait(150) == 0, lab.log.read_text()
    finally:
        for program in programs:
            program.close()
        bed.close()
    kept = json.loads((tmp_path / "out/run.json").read_text())
    assert kept["cluster"]["host"] == host.back
    lines = (tmp_path / "out/records.jsonl").read_text().splitlines()
    measured = [one for one in map(json.loads, lines) if one["kind"] == "measurement"]
    assert measured
    for entry in measured:
        assert entry["fault"] is None, entry["fault"]
        assert len({one["worker"] for one in entry["generators"]}) == 2
        assert sum(one["completed"] for one in entry["generators"]) == entry["load"]["completed"]
        # Namespaces share a kernel, and so a clock.
        assert all(
            abs(one["offset_us"]) <= one["uncertainty_us"] + 1 for one in entry["generators"]
        )
        assert any("bandwidth of back" in one for one in entry["network_limits"])
