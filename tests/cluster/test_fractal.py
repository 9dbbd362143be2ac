"""The example of heavy work: tiles of a picture on a Dask cluster of two machines, behind one Citius."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import sys
import zlib
from pathlib import Path

import bed as beds
import pytest
from bed import Bed, Machine, Program, start_dask
from citius.testing import Client
from clients import OnMachine

pytest.importorskip("numba", reason="numba is not installed")
EXAMPLE = Path(__file__).parents[2] / "examples/fractal"


def check_tile(event: dict[str, str], size: int) -> None:
    data = base64.b64decode(event["png"])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at = data.index(b"IDAT")
    length = int.from_bytes(data[at - 4 : at], "big")
    rows = zlib.decompress(data[at + 4 : at + 4 + length])
    assert len(rows) == size * (size + 1)
    # The set itself is black, what is around it is not.
    assert 0.05 < rows.count(0) / len(rows) < 0.95


def test_a_tile_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.delenv("SCHEDULER", raising=False)
    from app import app  # type: ignore[import-not-found]

    with Client(app, timeout_s=60) as client:
        got = client.get("/tile?left=-2.2&top=1.5&width=3&size=64")
        check_tile(got.json(), 64)
        assert client.get("/tile?left=-2.2&top=1.5&width=3&size=5000").status_code == 422


def look_at_the_page(machine: Machine, url: str, directory: Path) -> None:
    """In Chromium: what becomes of the page, and its picture."""

    def chromium(name: str, *options: str) -> Path:
        log = directory / name
        command = [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=700,800",
            "--virtual-time-budget=60000", "--timeout=60000",
            f"--user-data-dir={directory / 'profile'}", *options, url,
        ]  # fmt: skip
        shown = Program(machine, command, log, dict(os.environ))
        assert shown.process.wait(100) == 0, log.read_text()
        return log

    dom = chromium("page.html", "--dump-dom").read_text()
    assert '<p id="state">done</p>' in dom
    assert dom.count('<img src="data:image/png;base64,') == 16
    picture = directory / "page.png"
    chromium("chromium.log", f"--screenshot={picture}")
    assert picture.stat().st_size > 10_000
    if keep := os.environ.get("KEEP_PICTURE"):
        shutil.copy(picture, keep)


@pytest.mark.slow
@pytest.mark.skipif(bool(beds.why_not()), reason=beds.why_not() or "a bed")
def test_a_picture_of_two_machines(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    bed = Bed(tmp_path)
    programs: list[Program] = []
    loop = None
    env = {"PYTHONPATH": str(EXAMPLE), "PYTHONUNBUFFERED": "1"}
    try:
        scheduler, *workers, web = (bed.machine(name) for name in ("sched", "w1", "w2", "web"))
        loop = OnMachine(bed.machine("client"))
        address = start_dask(programs, scheduler, workers, tmp_path, env)
        serve = [
            sys.executable,
            "-m",
            "citius",
            "serve",
            str(EXAMPLE / "app.py"),
            "--bind",
            f"{web.front}:8000",
        ]
        log = tmp_path / "web.log"
        programs.append(
            Program(web, serve, log, {**env, "SCHEDULER": address}).wait_for("serves on")
        )

        async def tile(number: int) -> tuple[int, dict[str, str]]:
            reader, writer = await asyncio.open_connection(web.front, 8000)
            path = f"/tile?left={-2.2 + 0.75 * (number % 4)}&top=1.5&width=3&size=96"
            writer.write(
                f"GET {path} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n".encode()
            )
            reports = 0
            async with asyncio.timeout(100):
                while True:
                    event = await reader.readuntil(b"\n\n")
                    reports += event.count(b"event: progress\n")
                    if b"event: result\n" in event:
                        writer.close()
                        return reports, json.loads(event.partition(b"data: ")[2])

        async def tiles() -> list[tuple[int, dict[str, str]]]:
            return await asyncio.gather(*(tile(number) for number in range(8)))

        found = loop.call(tiles(), 120)
        for reports, event in found:
            assert reports >= 3
            check_tile(event, 96)
        assert len({event["worker"] for _, event in found}) == 2
        if shutil.which("chromium") is not None:
            look_at_the_page(bed.machine("browser"), f"http://{web.front}:8000/", tmp_path)
    finally:
        if loop is not None:
            loop.close()
        for program in programs:
            program.close()
        bed.close()
