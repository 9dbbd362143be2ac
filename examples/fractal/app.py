"""The Mandelbrot set, computed on a Dask cluster (SCHEDULER) or in two processes, with progress."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from typing import Annotated, Any

import msgspec
import numba
import numpy as np
from citius import App, Progress, Query, Response, html_response

app = App()


def dask() -> Any:
    """The workers of the cluster; they import this module, too."""
    from distributed import Client

    return Client(os.environ["SCHEDULER"]).get_executor()


if "SCHEDULER" in os.environ:
    app.executor("heavy", dask, calls_max=64, deadline_s=120)
else:
    app.executor("heavy", processes=2, calls_max=64, deadline_s=120)


class Tile(msgspec.Struct):
    """A square of the picture."""

    png: str
    """In base64."""
    worker: str
    """Which process has computed it."""


@numba.njit(cache=False)
def row_of(y: float, left: float, width: float, size: int, steps: int) -> np.ndarray:
    """How many steps each point of a row takes to leave the circle; compiled, so without the interpreter."""
    counts = np.empty(size, np.uint8)
    for column in range(size):
        c = complex(left + width * column / size, y)
        z = 0j
        n = 0
        while n < steps and z.real * z.real + z.imag * z.imag < 4.0:
            z = z * z + c
            n += 1
        counts[column] = 0 if n == steps else 55 + 200 * n // steps
    return counts


def png_of(rows: list[bytes], size: int) -> bytes:
    """A grey picture as PNG (RFC 2083)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    head = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@app.get("/tile", executor="heavy")
def tile(
    left: float,
    top: float,
    width: float,
    progress: Progress,
    size: Annotated[int, Query(ge=1, le=1024)] = 256,
    steps: Annotated[int, Query(ge=1, le=5000)] = 500,
) -> Tile:
    rows: list[bytes] = []
    for line in range(size):
        rows.append(row_of(top - width * line / size, left, width, size, steps).tobytes())
        if line % 16 == 0:
            progress(line / size)
    return Tile(
        base64.b64encode(png_of(rows, size)).decode(), f"{os.uname().nodename}-{os.getpid()}"
    )


PAGE = """<!doctype html><meta charset="utf-8"><title>Fractal</title>
<style>body{background:#111;color:#eee;font-family:sans-serif}div{display:grid;grid-template-columns:repeat(4,160px)}
figure{margin:0;width:160px;height:160px;position:relative;background:#222}progress{position:absolute;top:70px;left:30px;width:100px}
img{width:160px;height:160px;display:block}</style>
<h1>Mandelbrot set</h1><div id="tiles"></div><p id="state">computing</p>
<script>
let left = 16;
for (let n = 0; n < 16; n++) {
  const figure = document.createElement("figure"), bar = document.createElement("progress");
  bar.value = 0;
  figure.append(bar);
  document.getElementById("tiles").append(figure);
  const x = -2.2 + 0.75 * (n % 4), y = 1.5 - 0.75 * Math.floor(n / 4);
  const events = new EventSource(`tile?left=${x}&top=${y}&width=0.75`);
  events.addEventListener("progress", (event) => (bar.value = JSON.parse(event.data).done));
  events.addEventListener("result", (event) => {
    events.close();
    const picture = document.createElement("img");
    picture.src = "data:image/png;base64," + JSON.parse(event.data).png;
    figure.replaceChildren(picture);
    if (!--left) document.getElementById("state").textContent = "done";
  });
}
</script>"""


@app.get("/")
def page() -> Response:
    return html_response(PAGE)
