"""The entry for HttpArena: its profiles of HTTP/3."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from pathlib import Path

from h3peer import h3_client
from rig import Server

ENTRY = Path(__file__).parents[2] / "lab/httparena/citius"


def test_sums_and_files(serve_h3: Callable[..., Server], tmp_path: Path) -> None:
    (tmp_path / "dataset.json").write_text("[]")
    files = tmp_path / "files"
    files.mkdir()
    (files / "reset.css").write_bytes(b"a {}\n" * 100)
    (files / "reset.css.gz").write_bytes(gzip.compress(b"a {}\n" * 100))
    env = {
        "DATASET_PATH": str(tmp_path / "dataset.json"),
        "STATIC_DIR": str(files),
        "CACHE_PATH": str(tmp_path / "cache"),
    }
    server = serve_h3("--workers", "2", app=ENTRY / "app.py", env=env)

    async def main() -> None:
        async with h3_client(server) as client:
            streams = [client.begin(f"/baseline2?a={n}&b=1") for n in range(64)]
            for n, stream in enumerate(streams):
                assert (await client.response(stream)).body == str(n + 1).encode()
            accepts = [("accept-encoding", "br;q=1, gzip;q=0.8")]
            file = await client.response(client.begin("/static/reset.css", headers=accepts))
            assert file.headers["content-type"].startswith("text/css")
            assert file.headers["content-encoding"] == "gzip"
            assert gzip.decompress(file.body) == b"a {}\n" * 100
            assert (await client.get("/static/nowhere.css")).status == 404

    asyncio.run(main())
